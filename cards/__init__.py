"""Facts turned into pages that people read."""
