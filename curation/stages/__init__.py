"""Tables in, tables and reasons out; each wires one or two kernels."""
