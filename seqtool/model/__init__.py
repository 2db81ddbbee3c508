"""The one model package that training, translation and scoring share: the encoder-decoder Transformer.

Read in this order: attention, positions, layers, transformer, cache. Nothing here knows of text, files or search.
"""
