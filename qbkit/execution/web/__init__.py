"""Loads of web objects and pages, in virtual time and of URLs in real time."""
