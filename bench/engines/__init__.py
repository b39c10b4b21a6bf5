"""How each inference engine is asked, and how its answer is read. One file an engine."""
