"""Hypercorn serves the files of a folder."""
