"""The one exception of this driver."""


class Failed(Exception):
    """The load cannot be measured; the message is a sentence for the user."""
