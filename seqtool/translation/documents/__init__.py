"""Documents in several formats: their texts are taken out, translated and put back, and all else stays as it is."""
