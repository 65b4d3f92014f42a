"""What an evaluation measures in a run, and how it compares senders."""
