"""What a controller of a user would do in vain, found when it is registered.

The checks are here and not in `qbkit.cca.Controller`, whose text is part of the name of each run of
a controller: runs that are stored keep their names.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from qbkit.cca.controller import Controller
from qbkit.cca.options import Option
from qbkit.errors import SpecError
from qbkit.suggestions import did_you_mean

EVENT, ASKS = "on_", "uses_"
AT_START = ("packet_bytes", "option", "window_bytes", "logged")
"""What each instance sets at its start, whatever its class says."""
REPLACED = ("min_rtt_ms", "delivery_rate_mbps")
"""Values that qbkit records, and that a controller may log in its place."""
RECORDED = (
    *("cwnd_bytes", "bytes_in_flight", "ssthresh_bytes", "srtt_ms", "latest_rtt_ms"),
    *("pacing_rate_mbps", "lost_packets", "spurious_losses", "retransmits"),
)
"""Other values that qbkit records of a sender."""
OF_DATASET = (
    *("ack", "bottleneck", "bottleneck_direction", "controller", "direction", "flow", "label"),
    *("object", "packet", "sample", "stack", "state", "time", "time_ns", "time_s"),
)
"""Names of a dataset's dimensions and coordinates, and of the columns that each sample has."""
TAKEN = {*RECORDED, *OF_DATASET}
"""Names that a controller cannot log."""

READ = ("window_bytes", "pacing_rate_bytes_per_s", "ssthresh_bytes", "is_sending_less")
"""What the connection reads of a controller, beside what it asks for."""

OPTION = re.compile(r"[a-z][a-z0-9_]*")
NOT_NEEDED = "hystart"
"""An option that a class may leave out, and has no HyStart then, as Vegas does."""
OF_FLOW = (
    *("stack", "controller", "start_s", "stop_s", "bytes", "app", "receive_window_kb", "read_mbps"),
    *("receiver", "role", "resume", "extra_rtt_ms", "direction", "label", "options", "source"),
    *("qlog", "companion", "ack_every_packets"),
)
"""Names that no option can have: fields of a flow, and options that are not the controller's."""


def require_events(kind: type[Controller], name: str) -> None:
    """Raise SpecError for a method that begins with ``on_`` and is no event."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("qbkit.cca.")]
    known = {method for base in ours for method in _handlers(base)}
    events = [*_handlers(Controller)]
    for base in kind.__mro__:
        for method in _handlers(base):
            if method not in known:
                raise SpecError(
                    f"controller {name!r} has a method {method}, which is no event"
                    f"{did_you_mean(method, events)}; events are {', '.join(events)}, and a "
                    f"method that is none has a name without {EVENT}"
                )
            call = inspect.unwrap(getattr(kind, method))
            if inspect.iscoroutinefunction(call) or inspect.isgeneratorfunction(call):
                raise SpecError(
                    f"controller {name!r} would never run {method}, because it has an async or a "
                    "yield; write it without"
                )


def require_methods(kind: type[Controller], name: str) -> None:
    """Raise SpecError for a method that its base leaves to it, and that it has not."""
    for method in dir(kind):
        if getattr(getattr(kind, method, None), "__isabstractmethod__", False):
            own = [word for word, value in vars(kind).items() if callable(value)]
            raise SpecError(
                f"controller {name!r} has no {method}, which its base class leaves to it"
                f"{did_you_mean(method, own)}; write it"
            )


def require_attributes(kind: type[Controller], name: str) -> None:
    """Raise SpecError for an attribute of the class that does nothing."""
    asks = [word for word in vars(Controller) if word.startswith(ASKS)]
    for base in kind.__mro__:
        if base.__module__.startswith("qbkit.cca."):
            continue
        for word in vars(base):
            if word in AT_START:
                raise SpecError(
                    f"controller {name!r} sets {word} in its class, where its start replaces it; "
                    "set it in __init__, after super().__init__(settings)"
                )
            if word.startswith(ASKS) and word not in asks:
                raise SpecError(
                    f"controller {name!r} has {word}, which means nothing"
                    f"{did_you_mean(word, asks)}; a controller may ask for {' and '.join(asks)}"
                )


def require_options(kind: type[Controller], name: str) -> None:
    """Raise SpecError for options of which one cannot be set, or has a default that cannot be."""
    owner = f"controller {name!r} has options"
    if not isinstance(kind.options, Mapping):
        raise SpecError(
            f"{owner} that are no dictionary; write options = {{'gain': qb.cca.number(…)}}"
        )
    for word, option in kind.options.items():
        if not (isinstance(word, str) and OPTION.fullmatch(word)):
            raise SpecError(f"{owner} named {word!r}; use a-z, 0-9 and _, beginning with a letter")
        if word in OF_FLOW:
            raise SpecError(
                f"{owner} named {word}, a name of qbkit's own; choose another name, such as "
                f"my_{word}"
            )
        if not isinstance(option, Option):
            raise SpecError(
                f"{owner} of which {word} is {option!r}; write qb.cca.number, whole or switch"
            )
        if not _is_allowed(option):
            raise SpecError(
                f"{owner} of which {word} has the default {option.default!r}; it must be "
                f"{option.allowed}"
            )
    bases = (base for base in kind.__mro__ if issubclass(base, Controller))
    base = next(base for base in bases if base.__module__.startswith("qbkit.cca."))
    if lacking := sorted({*base.options} - {*kind.options} - {NOT_NEEDED}):
        raise SpecError(
            f"{owner} without {' and '.join(lacking)} of its base class {base.__name__}, which "
            f"needs them; write options = {{**{base.__name__}.options, 'gain': qb.cca.number(…)}}"
        )


def _is_allowed(option: Option) -> bool:
    """Whether a flow could set the default; None is a number's for the controller's own choice."""
    if option.default is None:
        return True
    text = str(option.default)
    try:
        option.read(text.lower() if isinstance(option.default, bool) else text)
    except (TypeError, ValueError):
        return False
    return True


def require_free_names(text: str, name: str) -> None:
    """Raise SpecError for a ``log(NAME=…)`` in the source of a controller whose name is taken."""
    for word in _logged(text):
        if word in TAKEN:
            raise SpecError(f"controller {name!r} {taken(word)}")


def require_effect(text: str, there: type[Controller], name: str) -> None:
    """Raise SpecError for an attribute that nothing reads, named almost as one that qbkit reads.

    Python makes a new attribute of ``self.window_byte = …``, and the window stays as it is.
    ``there`` is the class in the source of a controller.
    """
    own = {base.__name__ for base in there.__mro__}
    read = {word for base in there.__mro__[1:] for word in vars(base)} | {*AT_START}
    made: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef) and node.name in own:
            made |= {*_bound(node)}
        elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            read.add(node.attr if isinstance(node, ast.Attribute) else node.id)
        elif isinstance(node, ast.Constant):
            read.add(str(node.value))  # as in getattr(self, "gain")
    asks = [word for word in vars(Controller) if word.startswith(ASKS)]
    for word in sorted(made - read):
        if meant := did_you_mean(word, [*READ, *asks]):
            raise SpecError(
                f"controller {name!r} sets {word}, which nothing reads{meant}; what a controller "
                f"sets is {', '.join(READ)}"
            )


def require_silence(text: str, name: str) -> None:
    """Raise SpecError for a ``print`` in the source of a controller.

    Nobody reads what it prints in the guest, and one that prints much waits for a reader for ever.
    """
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(ast.Name("print"), _, words) if "file" not in [one.arg for one in words]:
                raise SpecError(
                    f"controller {name!r} prints, which nobody sees; record numbers with "
                    "self.log(name=number), and a run has them over time"
                )


def require_modules(text: str, name: str) -> None:
    """Raise SpecError for a module in the source of a controller that the guest does not have.

    It has the standard library and the folder that aioquic is installed in, and no other.
    """
    if (site := _folder_of("aioquic")) is None:
        return  # no run either: the stack is not ready
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            words = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            words = [node.module]
        else:
            continue
        for word in {word.partition(".")[0] for word in words} - {*sys.stdlib_module_names}:
            folder = None if word in ("qbkit", name) else _folder_of(word)
            if folder not in (None, site):
                raise SpecError(
                    f"controller {name!r} imports {word} from {folder}, which does not go into the "
                    "guest; write what it uses into its cell or file, or install it"
                )


def _folder_of(module: str) -> Path | None:
    """The folder that a module is imported from; None where it cannot be found, or is built in."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    places = [*(spec.submodule_search_locations or ()), spec.origin] if spec else []
    return Path(places[0]).parent if places and places[0] else None


def require_values(
    text: str,
    there: type[Controller],
    known: Mapping[str, object],
    name: str,
    *,
    has_ended: bool = False,
) -> None:
    """Raise SpecError for a value of the cell that is another one in the guest.

    Only definitions travel, so what a loop, a condition, a method or a later cell made of a value
    does not. ``there`` is the class in the source of a controller, ``known`` are the globals of its
    cell, which made what follows the class if it ``has_ended``.
    """
    functions = [value for value in vars(there).values() if inspect.isfunction(value)]
    sent = functions[0].__globals__ if functions else {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef) and node.name == there.__name__ and not has_ended:
            return
        if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            continue
        for word in {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & {*known} & {*sent}:
            here, in_guest = known[word], sent[word]
            if not _is_same(here, in_guest):
                raise SpecError(
                    f"controller {name!r} uses {word}, which is {here!r:.40} here and would be "
                    f"{in_guest!r:.40} in the guest: only imports, functions, classes and "
                    f"assignments of its cell go there; assign {word} in one statement of that "
                    "cell, and run it again"
                )


def _is_same(here: object, in_guest: object) -> bool:
    """Whether two values are equal, as far as they can be compared: literals, and arrays."""
    both = here, in_guest
    if any(map(_is_literal, both)):
        return all(map(_is_literal, both)) and here == in_guest
    raw = [value.tobytes() for value in both if hasattr(value, "tobytes")]
    return len(raw) < len(both) or raw[0] == raw[1]


def _is_literal(value: object) -> bool:
    """Whether it is made of numbers, texts, lists and the like, and so can be compared."""
    try:
        ast.literal_eval(repr(value))
    except (ValueError, SyntaxError):
        return False
    return True


def taken(word: str) -> str:
    """That a controller logs a name which it cannot log, as what follows its own name."""
    return f"logs {word}, a name that qbkit uses itself; choose another name, such as my_{word}"


def _handlers(kind: type) -> Iterator[str]:
    return (n for n, value in vars(kind).items() if n.startswith(EVENT) and callable(value))


def _bound(kind: ast.ClassDef) -> Iterator[str]:
    """The attributes that the text of a class sets, of itself and of ``self``."""
    for statement in kind.body:
        if isinstance(statement, ast.Assign):
            yield from (t.id for t in statement.targets if isinstance(t, ast.Name))
    for node in ast.walk(kind):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), ctx=ast.Store()):
                yield node.attr


def _logged(text: str) -> Iterator[str]:
    """The names in the calls of a method ``log``."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(ast.Attribute(_, "log"), _, words):
                yield from (one.arg for one in words if one.arg and one.arg != "state")
