"""The command line of every stack's sender."""

from dataclasses import dataclass, field

from process import Failed

USAGE = (
    "usage: main.py chromium|firefox CERTIFICATES send --connect IP:PORT --controller CC "
    "(--duration-s X | --bytes N) --out DIR [--option K=V ...]"
)


@dataclass
class Arguments:
    """What to upload, where and how."""

    browser: str
    certificates: str
    address: str = ""
    controller: str = ""
    duration_s: float = 0.0
    size_bytes: int = 0
    out: str = "."
    options: dict = field(default_factory=dict)

    @property
    def host(self):
        """IP address of the receiver."""
        return self.address.rpartition(":")[0]

    @property
    def port(self):
        """UDP port of the receiver."""
        return int(self.address.rpartition(":")[2])

    def choice(self, controllers):
        """The controller's entry in a table; raises Failed when there is none."""
        if self.controller not in controllers:
            known = ", ".join(controllers)
            raise Failed(f"{self.browser} has no controller {self.controller!r}; choose {known}")
        return controllers[self.controller]


def parse(words):
    """Parse the arguments; raises Failed when they do not match the usage."""
    if len(words) % 2 == 0 or words[2:3] != ["send"] or words[0] not in ("chromium", "firefox"):
        raise Failed(USAGE)
    arguments = Arguments(words[0], words[1])
    for name, value in zip(words[3::2], words[4::2], strict=True):
        try:
            take(arguments, name, value)
        except ValueError:
            raise Failed(f"{name} {value} is not a number") from None
    if not arguments.address or not (arguments.duration_s or arguments.size_bytes):
        raise Failed(USAGE)
    return arguments


def take(arguments, name, value):
    """Store one pair of words; raises ValueError for a malformed number."""
    if name == "--connect":
        arguments.address = value
    elif name == "--controller":
        arguments.controller = value
    elif name == "--duration-s":
        arguments.duration_s = float(value)
    elif name == "--bytes":
        arguments.size_bytes = int(value)
    elif name == "--out":
        arguments.out = value
    elif name == "--option":
        key, _, setting = value.partition("=")
        arguments.options[key] = setting
    else:
        raise Failed(f"unknown argument {name}; {USAGE}")
