"""The one exception that the driver raises on purpose."""


class FlowFailed(Exception):
    """The flow cannot be carried out; the message is a sentence for the user."""
