"""Commands of `speedbench bench` that have a file of their own."""
