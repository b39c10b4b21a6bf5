"""Candidates that a reference set already holds."""
