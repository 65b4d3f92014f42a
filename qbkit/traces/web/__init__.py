"""What a web client measured, beside the packets of its run."""
