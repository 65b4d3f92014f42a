"""Charts of many implementations in many networks."""
