"""The one exception of this driver, and how it names its limit."""


class Failed(Exception):
    """The load cannot be measured; the message is a sentence for the user."""


def within(limit_s):
    """The limit in words: nine tenths of the load's, so that there is time to report."""
    return f"within {limit_s:g} s, nine tenths of limit_s (raise it)"
