"""A flow: one sender and its receiver, and the text that stands for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote, unquote

from pydantic import (
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from qbkit.cca.own import registry
from qbkit.errors import SpecError
from qbkit.spec.app import App, without_bulk
from qbkit.spec.base import OptionValue, Spec, boolean
from qbkit.spec.misbehaving import Receiver
from qbkit.spec.resume import Resume

TEXT_FIELDS = (
    "start_s",
    "stop_s",
    "bytes",
    "app",
    "receive_window_kb",
    "read_mbps",
    "receiver",
    "role",
    "resume",
    "extra_rtt_ms",
    "direction",
    "label",
)
"""Fields that the text of a flow may set."""
LATER_FIELDS = (*("source", "app", "receive_window_kb", "read_mbps", "receiver", "role", "resume"),)
"""Fields that are part of a flow's JSON only where they are set: names of older runs stay."""
PATHS = ("/", "./", "../", "~/")
"""How the path of a program begins."""
FORM = "stack:controller?name=value&name=value"
NUMBER = re.compile(r"-?\d{1,300}(\.\d+)?([eE][-+]?\d+)?")


class Flow(Spec):
    """One sender and its receiver: ``Flow("tcp:bbr")``, or ``Flow("quic-go", "cubic")``.

    The text may set options and fields, here and wherever a flow is named (experiments, studies,
    sweeps, the command line): ``Flow("quinn:cubic?initial_window_packets=20&start_s=5")``. A name
    of `TEXT_FIELDS` sets that field, any other name an option of the stack. Numbers, true and false
    are read as such; ``%26`` is an ``&``.
    """

    stack: str = Field(
        min_length=1,
        max_length=1024,
        pattern=r"^([A-Za-z0-9][A-Za-z0-9_.+-]{0,63}(@[A-Za-z0-9.+-]{1,32})?|/[^:?&\n]+)$",
    )
    """Name of the stack, as ``qbkit stacks`` lists it; a release of it, ``quinn@0.8.4``; or the
    path of a program that speaks the contract of a driver, ``./build/mine``."""
    controller: str = Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$")
    """Name of its congestion controller."""
    start_s: float = Field(default=0.0, ge=0.0, le=86_400.0)
    """When the flow starts, in seconds of the experiment."""
    stop_s: float | None = Field(default=None, gt=0.0, le=86_400.0)
    """When it stops sending; by default at the end of the experiment."""
    bytes: int | None = Field(default=None, gt=0, le=2**45)
    """How many bytes it transfers; by default as many as it can until it stops."""
    app: Annotated[App | None, BeforeValidator(without_bulk)] = None
    """What it has to send, and when; by default as much as it can. A text, as in
    ``app=rate mbps=5 fps=30`` (`qbkit.spec.app`)."""
    receive_window_kb: float | None = Field(default=None, ge=4, le=2**17)
    """Receive window in kB that its receiver offers; by default one that never limits the sender.
    It is that of the transport: congestion control decides below it."""
    read_mbps: float | None = Field(default=None, gt=0, le=1e5)
    """How fast the application at its receiver reads, in Mbit/s; by default at once."""
    receiver: Receiver | None = None
    """A receiver in place of the sender's own: another QUIC stack's by its name, or for TCP one
    that misbehaves, as ``withholds every_ms=200`` (`qbkit.spec.misbehaving`)."""
    role: Literal["client", "server"] | None = None
    """What the sender is: a client that connects to its receiver, or a server, whose receiver
    connects and asks for data. By default a client, of stacks that can be one."""
    resume: Resume | None = None
    """Transfer over a second connection, which resumes the session of a short first one, as
    ``0rtt kb=100 pause_s=1`` (`qbkit.spec.resume`)."""
    extra_rtt_ms: float = Field(default=0.0, ge=0.0, le=10_000.0)
    """Round-trip time in ms that this flow adds to the bottleneck's."""
    direction: Literal["forward", "reverse"] = "forward"
    """``reverse``: the data go the other way, beside the ACKs of the forward flows. See
    `Experiment.has_reverse_traffic`."""
    label: str | None = Field(default=None, max_length=200)
    """Name of the flow in tables and charts; by default ``stack:controller``, followed by
    "(reverse)" for a reverse flow."""
    options: dict[str, OptionValue] = Field(default_factory=dict)
    """Options of the stack, as ``qb.list_stacks()`` lists them."""
    source: str | None = Field(default=None, repr=False)
    """Source of a controller that `qbkit.controller` registered. It is filled in when the flow is
    created, and only then part of its JSON."""

    def __init__(
        self, stack: str | None = None, controller: str | None = None, *others: Any, **data: Any
    ) -> None:
        positional = {"stack": stack, "controller": controller}
        super().__init__(*others, **{k: v for k, v in positional.items() if v is not None}, **data)

    @model_validator(mode="before")  # after the next: pydantic begins with the last
    @classmethod
    def _with_source(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("stack") == registry.STACK and "source" not in data:
            return {**data, "source": registry.source_of(str(data.get("controller")))}
        return data

    @model_serializer(mode="wrap")
    def _without_empty_source(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data = dump(self)
        for name in LATER_FIELDS:
            if data.get(name) is None:
                data.pop(name, None)
        return data

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, data: Any) -> Any:
        """A text, alone or as the stack, stands for both names and what it sets."""
        fields = {"stack": data} if isinstance(data, str) else data
        if not isinstance(fields, dict) or "controller" in fields:
            return data
        text = fields.get("stack")
        if not isinstance(text, str):
            return data
        return _merged(parsed(text), {k: v for k, v in fields.items() if k != "stack"})

    @model_validator(mode="after")
    def _in_order(self) -> Flow:
        if self.label is not None and not (self.label.isprintable() and self.label.strip()):
            raise ValueError(f"the label {self.label!r} cannot be shown; give a line of text")
        if self.stop_s is not None and self.stop_s <= self.start_s:
            raise ValueError(
                f"the flow stops at {self.stop_s:g} s, before it starts at {self.start_s:g} s"
            )
        if self.app and self.bytes:
            raise ValueError("an app decides how much it sends; leave out bytes")
        if self.role == "server" and (self.app or self.receiver):
            other = "app" if self.app else "receiver"
            raise ValueError(f"a server that sends is asked for bytes; leave out {other}, or role")
        if self.receiver and (self.app or self.read_mbps):
            other = "app" if self.app else "read_mbps"
            raise ValueError(f"a receiver of its own has no application; leave out {other}")
        if self.receiver and not self.receiver.stack and self.options.get("ecn"):
            raise ValueError("a receiver that misbehaves has no ECN; leave out ecn, or receiver")
        if self.receiver and self.receiver.stack and self.receive_window_kb:
            raise ValueError(
                "another stack's receiver has its own window; leave out receive_window_kb"
            )
        return self

    @model_validator(mode="after")
    def _one_client_resumes(self) -> Flow:
        has = {"app": self.app, "receiver": self.receiver, "role": self.role == "server"}
        if self.resume and any(has.values()):
            other = next(name for name, value in has.items() if value)
            raise ValueError(
                f"a flow that resumes is a client's bulk transfer; leave out {other}, or resume"
            )
        return self

    @property
    def total_bytes(self) -> int | None:
        """Bytes that all its connections transfer; None without a size."""
        first_bytes = self.resume.first_bytes if self.resume else 0
        return None if self.bytes is None else self.bytes + first_bytes

    @property
    def name(self) -> str:
        """``stack:controller``."""
        return f"{self.stack}:{self.controller}"

    @property
    def text(self) -> str:
        """The flow as a text: ``stack:controller?name=value&…`` with all that is not a default."""
        words = [f"{key}={_word(value)}" for key, value in self.settings.items()]
        return self.name + ("?" + "&".join(words) if words else "")

    @property
    def title(self) -> str:
        """The label, or else the name and the options: what a study calls the flow."""
        return self.label or self.name_with(self.options)

    def name_with(self, shown: Mapping[str, object]) -> str:
        """The default label, followed by ``?name=value&…``."""
        words = "&".join(f"{key}={_word(value)}" for key, value in shown.items())
        return f"{self.default_label}?{words}" if words else self.default_label

    @property
    def settings(self) -> dict[str, object]:
        """Options and fields that a text sets beside them, where they are not the defaults."""
        fields = {name: getattr(self, name) for name in TEXT_FIELDS if name in self._changed}
        return {**self.options, **fields}

    @property
    def chosen(self) -> dict[str, object]:
        """The options, a receiver of its own, a role, and a second connection."""
        fields = {name: getattr(self, name) for name in ("receiver", "role", "resume")}
        return {**self.options, **{name: value for name, value in fields.items() if value}}

    @property
    def _changed(self) -> set[str]:
        """Names of the fields that differ from their defaults."""
        return {n for n, f in type(self).model_fields.items() if getattr(self, n) != f.default}

    @property
    def default_label(self) -> str:
        """Label of a flow that has no ``label``."""
        name = f"{Path(self.stack).name}:{self.controller}"
        return f"{name} (reverse)" if self.direction == "reverse" else name


def as_flow(flow: str | Flow) -> Flow:
    """The flow that ``stack:controller`` describes; a `Flow` as it is; SpecError for others."""
    if isinstance(flow, Flow):
        return flow
    if isinstance(flow, str):
        return Flow(flow)
    raise SpecError(f"{flow!r} is no flow; give a Flow, or its text, such as 'tcp:cubic'")


def parsed(text: str) -> dict[str, Any]:
    """The fields that the text of a flow sets; ValueError says what is wrong with it."""
    name, mark, query = text.partition("?")
    stack, colon, controller = name.partition(":")
    if not (stack and colon and controller):
        raise ValueError(f"{text!r} is not a flow; write stack:controller, such as tcp:cubic")
    if "/" in stack and not stack.startswith(PATHS):
        raise ValueError(f"{stack!r} names no stack; the path of a program begins with ./ or /")
    if stack.startswith(PATHS):
        stack = str(Path(stack).expanduser().absolute())
    fields: dict[str, Any] = {"stack": stack, "controller": controller}
    for word in query.split("&") if mark else []:
        key, _, value = word.partition("=")
        if not (key and value):
            raise ValueError(f"{text!r} has {word!r} after the ?; write {FORM}")
        if key in Flow.model_fields and key not in TEXT_FIELDS:
            raise ValueError(
                f"{text!r} sets {key}; a text sets options and {', '.join(TEXT_FIELDS)}"
            )
        chosen = fields if key in TEXT_FIELDS else fields.setdefault("options", {})
        if key in chosen:
            raise ValueError(f"{text!r} sets {key} twice")
        chosen[key] = unquote(value) if key in TEXT_FIELDS else option_value(unquote(value))
    return fields


def controller_of(name: str) -> str:
    """The controller in the text of a flow; "" if the text names none."""
    return name.partition("?")[0].partition(":")[2]


def option_value(word: str) -> str | int | float | bool:
    """The value of an option as YAML would read it."""
    found = boolean(word)
    if isinstance(found, bool):
        return found
    if not NUMBER.fullmatch(word):
        return word
    return int(word) if word.lstrip("-").isdigit() else float(word)


def option_text(value: object) -> str:
    """The inverse of `option_value`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _word(value: object) -> str:
    """A value in the text of a flow."""
    return quote(option_text(value), safe=" /:,()[]{}'*+=")


def _merged(from_text: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a text and fields given beside it; ValueError for one that both set."""
    options = {**from_text.get("options", {})}
    others = given.get("options")
    if options and isinstance(others, Mapping):
        _refuse_twice(options.keys() & others.keys())
        given = {**given, "options": {**options, **others}}
    _refuse_twice((from_text.keys() & given.keys()) - {"options"})
    return {**from_text, **given}


def _refuse_twice(names: set[str]) -> None:
    if names:
        raise ValueError(f"{min(names)} is set twice, in the text of the flow and beside it")
