"""The doctor for corpora behind `seqtool check`."""
