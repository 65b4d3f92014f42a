"""Where experiments run: the engines, their kernel, and the network."""
