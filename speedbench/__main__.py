"""`python -m speedbench`."""

from speedbench.cli import main

main()
