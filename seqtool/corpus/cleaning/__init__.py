"""Which pairs are fit to train on: measures of lines, and the rules over them."""
