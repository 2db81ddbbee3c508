"""Metrics with their signatures, comparison of systems, and the report."""
