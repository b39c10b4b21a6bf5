"""Everything that a release must satisfy, checked in one pass."""
