"""Charts of Performance Envelopes."""
