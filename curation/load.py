"""Read a published split, strictly."""
