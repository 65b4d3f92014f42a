"""Evaluations of a controller along a book of questions, such as RFC 9743."""
