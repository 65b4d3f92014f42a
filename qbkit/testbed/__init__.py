"""Where experiments run: the engines, the kernel they boot, the network they build."""
