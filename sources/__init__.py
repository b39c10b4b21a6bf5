"""Public datasets, read as records."""
