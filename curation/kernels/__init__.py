"""Arrays and strings in, arrays out."""
