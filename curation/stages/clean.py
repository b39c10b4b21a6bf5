"""Normal form and filters."""
