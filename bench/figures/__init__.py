"""The figures: small classes, each with its formula, its unit and what it needs. None when undefined."""
