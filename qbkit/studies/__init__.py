"""Questions asked of many runs: conformance, its causes, what an option would change."""
