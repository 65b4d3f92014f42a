"""The command line of a page load, and how it names its limit and what is missing."""

from dataclasses import dataclass, field

from process import Failed

USAGE = (
    "usage: main.py BROWSER CERTIFICATES --url URL --address IP:PORT --host NAME [--host NAME ...] "
    "--protocol h2|h3 --limit-s X --out DIR"
)

NAMED = 3
"""Most addresses in a sentence."""


@dataclass
class Arguments:
    """What to load, from where, and by which protocol."""

    browser: str
    certificates: str
    url: str = ""
    address: str = ""
    hosts: list = field(default_factory=list)
    protocol: str = ""
    limit_s: float = 0.0
    out: str = "."


def parse(words):
    """Parse the arguments; raises Failed when they do not match the usage."""
    if len(words) < 2 or len(words) % 2:
        raise Failed(USAGE)
    arguments = Arguments(words[0], words[1])
    for name, value in zip(words[2::2], words[3::2], strict=True):
        key = name.removeprefix("--").replace("-", "_")
        if key == "host":
            arguments.hosts.append(value)
        elif key == "limit_s":
            arguments.limit_s = float(value)
        elif key in ("url", "address", "protocol", "out"):
            setattr(arguments, key, value)
        else:
            raise Failed(f"unknown argument {name}; {USAGE}")
    if not (arguments.url and arguments.address and arguments.limit_s):
        raise Failed(USAGE)
    if arguments.protocol not in ("h2", "h3"):
        raise Failed(f"there is no protocol {arguments.protocol!r}; choose h2 or h3")
    return arguments


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
