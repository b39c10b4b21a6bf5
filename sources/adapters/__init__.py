"""One module a source: facts (`SPEC`) and a pure `parse`."""
