"""Records turned into the published splits."""
