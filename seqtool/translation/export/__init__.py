"""A trained model in the forms of other engines."""
