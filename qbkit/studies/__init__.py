"""Questions asked of many runs: conformance, its causes, what a knob would change."""
