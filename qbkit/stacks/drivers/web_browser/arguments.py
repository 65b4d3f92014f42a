"""The command line of a page load."""

from dataclasses import dataclass, field

from failure import Failed

USAGE = (
    "usage: main.py BROWSER CERTIFICATES --url URL --address IP:PORT --host NAME [--host NAME ...] "
    "--protocol h2|h3 --limit-s X --out DIR"
)


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
