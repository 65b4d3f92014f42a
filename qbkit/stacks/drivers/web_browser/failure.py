"""The one exception of this driver, and how it names its limit and what is missing."""

NAMED = 3
"""Most addresses in a sentence."""


class Failed(Exception):
    """The load cannot be measured; the message is a sentence for the user."""


def within(limit_s):
    """The limit in words: nine tenths of the load's, so that there is time to report."""
    return f"within {limit_s:g} s, nine tenths of limit_s (raise it; --duration-s as an option)"


def incomplete(url, limit_s, pending):
    """The failure of a page that waits for resources, or for its load event."""
    if pending:
        more = f" and {len(pending) - NAMED} more" if len(pending) > NAMED else ""
        what = f"{len(pending)} of its resources had not come: {', '.join(pending[:NAMED])}{more}"
    else:
        what = "its resources had come, but its load event had not"
    return Failed(f"{url} was not complete {within(limit_s)}; {what}")
