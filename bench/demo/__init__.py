"""The demo: a toy pair on llama.cpp, from rows that are built on the spot to the page of the report."""
