"""The page of a result: `write_report` reads the folders of runs and sweeps and writes one file."""
