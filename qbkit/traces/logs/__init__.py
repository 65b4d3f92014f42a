"""Logs of stacks, browsers and tcpdump, read into event tables."""
