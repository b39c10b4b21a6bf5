"""Whether speculation changed the outputs: greedy ones by token, sampled ones in distribution."""
