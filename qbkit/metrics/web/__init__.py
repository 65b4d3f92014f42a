"""HTTP/3 against HTTP/2: objects and pages."""
