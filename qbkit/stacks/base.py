"""The interface of a stack: its name, its controllers, and the two programs of a flow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, TypeVar

from qbkit.errors import SpecError
from qbkit.spec.flow import TEXT_FIELDS, option_text
from qbkit.stacks.about.option_values import require_value
from qbkit.suggestions import did_you_mean

Say = Callable[[str], None]
Options = Mapping[str, str | int | float | bool]

LEAST_WINDOW_BYTES = 128 << 20
"""Receive window that every driver offers by default."""
WINDOW = "QBKIT_WINDOW_BYTES"
"""Environment variable that asks a driver for another receive window: a larger one where path and
queue hold more, or the one that a flow sets."""
READ_MBPS = "QBKIT_READ_MBPS"
"""Environment variable that says how fast a receiver reads."""
APP, APP_OUT = "QBKIT_APP", "QBKIT_APP_OUT"
"""Environment variables that give a driver its application, and the folder of its tables."""
RESUME = "QBKIT_RESUME"
"""Environment variable that asks both drivers of a flow for a second connection that resumes the
first one's session (`qbkit.spec.resume`)."""
CERTIFICATE_MOUNT = "/run/qb/certificate"
"""Where the guest finds the test certificate, ``cert.pem`` and ``key.pem``."""


Kind = TypeVar("Kind", bound="Stack")


@dataclass(frozen=True)
class Status:
    """Whether a stack can run here; if not, ``reason`` says what to type."""

    ready: bool
    reason: str = ""


@dataclass(frozen=True)
class Transfer:
    """What the end that starts a flow must know; without a size, it lasts ``duration_s``."""

    address: str
    """``IP:PORT`` of the end that listens."""
    controller: str
    out: str
    """Folder of the guest for the tables and logs."""
    duration_s: float | None = None
    size_bytes: int | None = None
    options: Options = field(default_factory=dict)
    source: str | None = None
    """Source of a controller that a user brought."""

    def limit_words(self) -> list[str]:
        """``--bytes N``, or ``--duration-s S`` without a size."""
        if self.size_bytes:
            return ["--bytes", str(self.size_bytes)]
        return ["--duration-s", f"{self.duration_s:g}"]


class GuestProgram(ABC):
    """What this machine makes ready and the guest runs: a stack, or one end of a web load."""

    name: ClassVar[str]
    """Name as users write it: ``quic-go``."""
    source: ClassVar[str]
    """Where its code comes from, in a few words."""

    @abstractmethod
    def version(self) -> str:
        """Version of the program and of our files around it, as far as a result depends on them."""

    def status(self) -> Status:
        """Whether it can run here."""
        return Status(True)

    def build(self, say: Say = lambda _: None) -> None:  # noqa: B027 (nothing to do is common)
        """Make it ready; raises StackNotReady with a sentence that says what is missing."""

    def mounts(self) -> dict[str, Path]:
        """Folders of this machine that the guest must see: guest path → host path."""
        return {}

    def env(self) -> dict[str, str]:
        """Environment variables of its programs."""
        return {}


class Stack(GuestProgram):
    """A sender and a receiver that run in the guest.

    To add a stack, write a class with the three abstract methods, and register an instance of it
    (or name it as an entry point of the group ``qbkit.stacks``). qbkit calls a stack's program as

        PROGRAM recv --listen IP:PORT --cert FILE --key FILE --out DIR [--option K=V ...]
        PROGRAM send --connect IP:PORT --controller CC (--duration-s X | --bytes N) --out DIR ...

    ``recv`` prints ``ready`` when it listens and ends on SIGTERM; ``send`` ends by itself. A
    program whose connection dies reports how, and exits with status 3: then only its flow ends
    (`qbkit.traces.run.early_end`), as with a program that dies. At the end of a run, a status other
    than 0 (or that SIGTERM) fails it. They write
    ``receiver.csv`` and ``sender.csv`` to DIR (columns: `qbkit.traces.run.telemetry`). Override
    `send_argv` and `recv_argv` for a program with another command line.
    """

    reports: ClassVar[tuple[str, ...]] = ("cwnd_bytes", "bytes_in_flight", "srtt_ms")
    """Variables of its telemetry that every run has (names: `qbkit.traces.run.telemetry`)."""
    bulk: ClassVar[bool] = True
    """Whether it sends as much as the network carries; surveys leave out a stack that does not."""
    deterministic: ClassVar[bool] = True
    """Whether two runs of one spec and seed are identical to the byte."""
    certificate: ClassVar[str] = ""
    """Prefix of the test certificate that its receiver shows: "", or "browser-" where a client
    does not support Ed25519 (BoringSSL's does not)."""
    most_window_bytes: ClassVar[int] = LEAST_WINDOW_BYTES
    """The largest receive window it can offer: more than the least if it reads `WINDOW`."""
    apps: ClassVar[tuple[str, ...]] = ()
    """Kinds of applications that its sender can have above it (`qbkit.spec.app`): it reads `APP`,
    and its receiver writes down each read."""
    bulk_only: ClassVar[tuple[str, ...]] = ()
    """Controllers that need data without end, whatever is above the transport."""
    reads_slowly: ClassVar[bool] = False
    """Whether its receiver reads no faster than `READ_MBPS` says."""
    ip6: ClassVar[bool] = False
    """Whether the driver of `for_app` speaks IPv6, too."""
    serves: ClassVar[bool] = False
    """Whether it can send as the server, with the driver of `for_server` (`SendingServer`)."""
    resumes: ClassVar[bool] = False
    """Whether the driver of `for_app` can send over a second connection (`RESUME`)."""
    offers_window: ClassVar[bool] = False
    """Whether its receiver offers the window of `WINDOW`, and no more."""
    options: ClassVar[dict[str, str]] = {}
    """Options that a flow may set, and what they do."""
    counts_for: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Option → the controllers of which it changes runs; an option not named here, those of all."""

    @abstractmethod
    def controllers(self) -> tuple[str, ...]:
        """Names of its congestion controllers."""

    def surveyed(self) -> tuple[str, ...]:
        """The controllers that a survey of all stacks runs; all of a bulk stack by default."""
        return self.controllers() if self.bulk else ()

    def check(self, controller: str, options: Options, source: str | None) -> None:
        """Raise SpecError for an unknown controller or option, or a value that it cannot have.

        ``source`` is the source of a user's controller, which only the stack ``qbkit`` accepts.
        """
        if source is not None:
            raise SpecError(f"{self.name} takes no controllers from a cell; stack qbkit does")
        if controller not in self.controllers():
            near = did_you_mean(controller, self.controllers())
            raise SpecError(
                f"{self.name} has no controller {controller!r}{near}; "
                f"it has {', '.join(self.controllers())}"
            )
        unknown = {str(name) for name in options if name not in self.options}
        if fields := sorted(unknown & set(TEXT_FIELDS)):
            raise SpecError(
                f"{fields[0]} is a field of the flow, not an option of {self.name}; write it in "
                f"the flow, as {self.name}:{controller}?{fields[0]}=…"
            )
        if unknown:
            known = ", ".join(sorted(self.options)) or "none"
            words = [*self.options, *TEXT_FIELDS]
            named = ", ".join(f"{name}{did_you_mean(name, words)}" for name in sorted(unknown))
            raise SpecError(f"{self.name} has no option {named}; supported: {known}")
        for name in options:
            if controller not in self.controllers_of(name):
                counting = ", ".join(self.controllers_of(name))
                raise SpecError(
                    f"{self.name}'s option {name} changes nothing for {controller}; "
                    f"it counts for {counting}"
                )
        for name, value in options.items():
            require_value(self.name, name, self.options[name], value)

    def controllers_of(self, option: str) -> tuple[str, ...]:
        """The controllers whose runs an option changes."""
        counting = self.counts_for.get(option, self.controllers())
        return tuple(name for name in self.controllers() if name in counting)

    def transport(self) -> str:
        """Package and version of its transport, where `version` counts another package; else "".

        As in ``quinn-proto 0.11.19``, once the stack is ready.
        """
        return ""

    def sources_at_hand(self) -> list[Path]:
        """Folders of this machine with the stack's unpacked sources; nothing is fetched for it."""
        return []

    def for_app(self) -> Stack:
        """The stack whose programs do all of the above: itself, by default."""
        return self

    def for_server(self) -> Stack:
        """The stack whose program `serves`, and does all else: that of `for_app`, by default."""
        return self.for_app()

    def with_more(
        self, *, server: bool = False, app: bool = False, ip6: bool = False, resume: bool = False
    ) -> Stack:
        """The stack as the `SendingServer`, with something above its transport, over IPv6, or over
        a second connection."""
        if server:
            return as_server(self.for_server())
        return self.for_app() if app or ip6 or resume else self

    @abstractmethod
    def program(self) -> list[str]:
        """The command that starts the driver, with paths in the guest."""

    def driver_options(self, options: Options) -> Options:
        """Those that are the driver's: all, unless `sysctls` sets some."""
        return options

    def sysctls(self, options: Options) -> dict[str, str]:
        """Settings of the kernel's network on both hosts of a flow with these options."""
        return {}

    def receiver_options(self, controller: str, options: Options) -> Options:
        """The options for the receiver of a flow with this controller and these options."""
        return options

    def receiver_env(self) -> dict[str, str]:
        """Environment variables of the receiver alone, beside `env`."""
        return {}

    def recv_argv(self, *, address: str, out: str, options: Options) -> list[str]:
        """The command that receives on ``IP:PORT``."""
        command = [*self.program(), "recv", "--listen", address, *self.keys(), "--out", out]
        return command + option_words(options)

    def keys(self) -> list[str]:
        """The words that give a server its certificate."""
        cert, key = (
            f"{CERTIFICATE_MOUNT}/{self.certificate}{word}.pem" for word in ("cert", "key")
        )
        return ["--cert", cert, "--key", key]

    def send_argv(self, transfer: Transfer) -> list[str]:
        """The command that sends."""
        command = [*self.program(), "send", "--connect", transfer.address]
        command += ["--controller", transfer.controller, *transfer.limit_words()]
        command += ["--out", transfer.out]
        return command + option_words(transfer.options)


class ServingStack(Stack):
    """A stack that exists only as a server: it listens and sends, the receiver connects to it.

    ``serve`` starts before the flow and ends after it; ``fetch`` starts with the flow and ends by
    itself. They write the tables of `Stack`: ``serve`` those of a sender, ``fetch`` a receiver's.
    """

    @abstractmethod
    def serve_argv(self, transfer: Transfer) -> list[str]:
        """The command that listens on ``IP:PORT``, prints ``ready``, and sends to its client."""

    @abstractmethod
    def fetch_argv(self, transfer: Transfer) -> list[str]:
        """The command that receives."""


class SendingServer(ServingStack):
    """Before a stack that `serves`, in the order of bases: ``--listen`` and ``--connect`` change
    their places, and the receiver asks for data."""

    def serve_argv(self, transfer: Transfer) -> list[str]:
        """``send --listen``, which sends to its first client until that leaves."""
        command = [*self.program(), "send", "--listen", transfer.address, *self.keys()]
        command += ["--controller", transfer.controller, "--out", transfer.out]
        size = transfer.limit_words() if transfer.size_bytes else []
        return [*command, *size, *option_words(self.driver_options(transfer.options))]

    def fetch_argv(self, transfer: Transfer) -> list[str]:
        """``recv --connect``, which leaves when its time is over, or it has all."""
        command = [*self.program(), "recv", "--connect", transfer.address]
        command += ["--controller", transfer.controller, *transfer.limit_words()]
        options = option_words(self.driver_options(transfer.options))
        return [*command, "--out", transfer.out, *options]


def changed(stack: Kind, *before: type, **attributes: object) -> Kind:
    """A stack of the same class, but for these attributes and the classes ``before`` it."""
    made = copy(stack)
    made.__class__ = type(type(stack).__name__, (*before, type(stack)), attributes)
    return made


def as_server(stack: Kind) -> Kind:
    """A stack whose program `serves`, as the server that sends."""
    return changed(stack, SendingServer)


def option_words(options: Options) -> list[str]:
    """Every option as ``--option key=value``; Booleans as true and false."""
    named = (f"{name}={option_text(value)}" for name, value in sorted(options.items()))
    return [word for text in named for word in ("--option", text)]
