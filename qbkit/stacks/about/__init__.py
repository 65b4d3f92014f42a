"""What stacks say of themselves: their table, and what the values of their options may be."""
