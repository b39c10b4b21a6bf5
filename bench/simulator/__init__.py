"""A loopback server that speaks each engine's dialect with a known acceptance process: ground truth without a GPU."""
