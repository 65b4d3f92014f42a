"""Where is an implementation at its worst? Search, shrink, confirm, and write a case."""
