"""The sections of the page; `bench.report.registry` says in which order they stand."""
