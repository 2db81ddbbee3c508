"""Text in: opening files, naming corpora, and reading them as blocks of pairs."""
