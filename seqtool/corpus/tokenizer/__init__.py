"""Text to token ids and back, and the training of a tokenizer."""
