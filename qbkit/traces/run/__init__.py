"""Captures and telemetry of a run, and the dataset made of them."""
