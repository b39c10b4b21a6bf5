"""Grids of runs: files, points, what is run, and rows of what came out."""
