"""Text in: reading, checking, cleaning, tokenizing, the memory-mapped prepared corpus and its batches."""
