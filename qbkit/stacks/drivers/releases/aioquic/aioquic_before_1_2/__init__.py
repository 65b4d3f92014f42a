"""Runs the driver of aioquic with a release before 1.2."""
