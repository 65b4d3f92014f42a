"""Web servers and clients, their sites and pages."""
