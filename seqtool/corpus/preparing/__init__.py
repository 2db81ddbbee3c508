"""From text to the memory-mapped corpus of token ids that training reads."""
