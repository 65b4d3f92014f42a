"""Captures and telemetry of a run, and the dataset built from them."""
