"""Beam search and sampling over any model: token ids in, ranked hypotheses out."""
