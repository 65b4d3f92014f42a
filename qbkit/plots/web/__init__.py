"""Charts of HTTP/3 against HTTP/2."""
