"""Measures the published splits on inference engines."""
