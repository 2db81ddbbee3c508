"""The grammar, the lexicon and the sentence patterns of the demo corpus."""
