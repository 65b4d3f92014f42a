"""Charts of what flows did over time."""
