"""What a flow did: its packets, delays, losses and shares."""
