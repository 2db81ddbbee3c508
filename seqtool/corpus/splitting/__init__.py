"""A corpus divided into training, validation and test sets without overlap."""
