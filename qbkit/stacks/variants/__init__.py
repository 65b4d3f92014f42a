"""Stacks in some experiments: with another receiver, with IPv6, or crafting their packets."""
