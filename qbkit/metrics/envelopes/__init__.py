"""Operating points, Performance Envelopes, and how well two of them agree."""
