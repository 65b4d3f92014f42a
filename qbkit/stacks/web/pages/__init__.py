"""Web pages that a server serves: generated from a seed, or recorded elsewhere."""
