"""Token ids to text: search, sampling, the translator, its engines, and export."""
