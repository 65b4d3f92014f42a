"""One controller per file, named as users name it (``-`` becomes ``_``)."""
