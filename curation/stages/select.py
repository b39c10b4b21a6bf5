"""The rows of each category."""
