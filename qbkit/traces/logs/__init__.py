"""Logs that stacks, browsers and tcpdump write, and the event tables made of them."""
