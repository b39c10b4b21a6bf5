"""Finished runs held against one another, against a prediction, and against a golden table."""
