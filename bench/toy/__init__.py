"""A toy target and drafter that ship with the package: real weights for a real engine, and nothing to fetch."""
