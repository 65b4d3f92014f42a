"""Execution of experiments: one run, many runs and sweeps on Dask, notebooks in batch."""
