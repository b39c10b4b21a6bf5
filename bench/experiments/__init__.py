"""The experiments of the papers: a sweep file and a pure module each."""
