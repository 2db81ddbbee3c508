"""Scores of translations: metrics, significance, diagnosis of what went wrong."""
