"""Streams of lines: blocks in, translated lines out, in order, to a pipe, a file or several processes."""
