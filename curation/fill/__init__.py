"""Placeholder rows given their text: each rebuilt alone from its source, by its src_id, and checked."""
