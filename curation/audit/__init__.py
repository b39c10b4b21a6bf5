"""Is the benchmark in a corpus? Evidence for each pair of document and prompt."""
