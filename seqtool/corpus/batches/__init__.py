"""Which pairs form which batch, and the padded batches themselves."""
