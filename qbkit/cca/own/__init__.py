"""Controllers that users bring: from notebook cells, files, and entry points of other packages."""
