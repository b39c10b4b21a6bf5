"""Exact, near and semantic duplicates."""
