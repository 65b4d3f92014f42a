"""The one exception of this driver."""


class Failed(Exception):
    """The flow cannot go on; the text is the sentence for the user."""
