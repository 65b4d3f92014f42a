"""The one exception of this driver."""


class Failed(Exception):
    """The flow cannot continue; the message is a sentence for the user."""
