"""The models that training, translation and scoring share, with one file for each architecture.

Read in this order: interface, attention, positions, layers, transformer, cache. Nothing here knows of text or search.
"""
