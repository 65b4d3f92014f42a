"""The command ``qbkit web``."""
