"""Released versions of a stack as stacks of their own: ``quinn@0.8.4``."""
