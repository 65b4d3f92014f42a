"""Public functions say in one sentence, before anything, that an argument is of the wrong kind.

And they take a run of which some flows were chosen as a run of these alone. `guarded` goes round
the ``__getattr__`` of a package of public names. Calls among qbkit's own modules do not pass here.
"""

from __future__ import annotations

import inspect
import operator
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import cache, wraps
from os import PathLike
from pathlib import Path
from reprlib import repr as short
from typing import Any

from qbkit.errors import SpecError
from qbkit.suggestions import did_you_mean

NUMBERS: Mapping[type, Callable[[Any], object]] = {int: operator.index, float: float}
"""Numbers, and what takes those of Python and of NumPy, but not texts that look like them."""
DATA = ("Dataset", "DataArray", "DataFrame")
TEXTS, TABLES = (str, bytes), ("Dataset", "DataFrame")
"""What one can iterate over, but nobody means as a list."""
WORDS: Mapping[str, str] = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "True or False",
    "Path": "the name of a file or folder",
    "Dataset": "a dataset (of a run, a sweep or a study)",
    "DataArray": "an array with names (xarray)",
    "DataFrame": "a table (pandas)",
    "Sequence": "a list",
    "Iterable": "a list",
    "Mapping": "a dict",
    "tuple": "a pair",
    "ndarray": "an array (NumPy)",
    "_SupportsArray": "a number or an array of numbers",
}
ARRAY_LIKE = {"_Buffer", "_NestedSequence", "complex", "bytes", "str"}
"""What NumPy's ArrayLike has beside arrays, and a sentence leaves out."""


def guarded(lookup: Callable[[str], Any], package: str) -> Callable[[str], Any]:
    """The lookup of a package's names, whose functions check the kinds of their arguments."""

    def find(name: str) -> Any:
        known = dir(sys.modules[package])
        if name not in known:
            raise AttributeError(f"{package} has no {name}{did_you_mean(name, known)}")
        found = lookup(name)
        if inspect.isfunction(found):
            found = _checked(found, package)
            setattr(sys.modules[package], name, found)  # the next access asks the package only
        return found

    return find


def _checked(function: Callable[..., Any], package: str) -> Callable[..., Any]:
    """The function, with its arguments checked; pickles and help know it by its public name."""
    signature = inspect.signature(function)
    asked = {name: a for name, a in function.__annotations__.items() if name != "return"}
    asker = types.SimpleNamespace(__annotations__=asked)
    hints = cache(lambda: typing.get_type_hints(asker, function.__globals__))

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            given = signature.bind(*args, **options)
        except TypeError:
            if not any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
                _require_places(function, options, hints())
                require_settings(options, function)
            return function(*args, **options)  # Python says which argument is missing
        _require_kinds(function, given, hints())
        for name, value in given.arguments.items():
            given.arguments[name] = _of_chosen_flows(value)
        try:
            return function(*given.args, **given.kwargs)
        except KeyError as error:
            data = [name for name, value in given.arguments.items() if _is_data(value)]
            if not data:
                raise
            xarrays = re.match(r"No variable named ('.*?')", str(error.args[0]))
            missing = xarrays[1] if xarrays else repr(error.args[0])
            raise SpecError(
                f"{function.__name__}: {' or '.join(data)} has no {missing}; give all "
                "variables and attributes that the function's help says, as qbkit makes them"
            ) from error

    call.__module__ = package
    return call


def require_settings(
    given: Iterable[str], function: Callable[..., Any], *to: Callable[..., Any]
) -> None:
    """Raise SpecError for what a function does not take by name, nor hands on to another one."""
    own, *handed = [inspect.signature(each).parameters.values() for each in (function, *to)]
    known = [p.name for p in own if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    known += [p.name for several in handed for p in several if p.kind is p.KEYWORD_ONLY]
    for name in given:
        if name not in known:
            near = did_you_mean(name, known)
            raise SpecError(
                f"{function.__name__} has no setting {name}{near}; it has {', '.join(known)}"
            )


def _require_places(
    function: Callable[..., Any], given: Iterable[str], hints: Mapping[str, Any]
) -> None:
    """Raise SpecError for a setting that is a field of an argument, as the rate of a bottleneck."""
    for argument, hint in hints.items():
        for kind in typing.get_args(hint):
            for name in given:
                if name not in hints and name in getattr(kind, "model_fields", {}):
                    raise SpecError(
                        f"{function.__name__} has no setting {name}; it belongs in {argument}, a "
                        f"qb.{kind.__name__}"
                    )


def _require_kinds(
    function: Callable[..., Any], given: inspect.BoundArguments, hints: Mapping[str, Any]
) -> None:
    """Raise SpecError for an argument whose kind is another than the function's types say."""
    for name, value in given.arguments.items():
        parameter = given.signature.parameters[name]
        several: Mapping[str, Any] = {name: value}
        if parameter.kind is parameter.VAR_POSITIONAL:
            several = {f"{name}[{place}]": one for place, one in enumerate(value)}
        elif parameter.kind is parameter.VAR_KEYWORD:
            several = value
        for word, one in several.items():
            if one is not parameter.default and not _fits(one, hints.get(name, Any)):
                raise SpecError(
                    f"{function.__name__}: {word} = {_shown(one)} is of the wrong kind; "
                    f"give {_wanted(hints[name])}"
                )


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the kind that a type says; kinds it cannot tell fit."""
    kind, parts = typing.get_origin(hint) or hint, typing.get_args(hint)
    if kind in (typing.Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if kind in (Any, object):
        return True
    if value is None and isinstance(kind, type):
        return kind is type(None)
    if kind is typing.Literal:  # which of them, the function itself says
        return type(value) in map(type, parts)
    if kind is Path:
        return isinstance(value, PathLike)
    if kind in NUMBERS:
        return _is_number(value, NUMBERS[kind])
    if kind is bool:
        return isinstance(value, bool) or type(value).__name__ == "bool"  # NumPy's
    if not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return True
    if issubclass(kind, Mapping) and parts:
        return isinstance(value, kind) and all(_fits(one, parts[-1]) for one in value.values())
    if issubclass(kind, Iterable) and parts and kind.__module__ in ("collections.abc", "builtins"):
        if not isinstance(value, Iterable) or isinstance(value, TEXTS):
            return False
        if type(value).__name__ in TABLES:
            return False
        if isinstance(value, Mapping):  # a list of its keys
            return kind is Iterable and all(
                any(_fits(one, part) for part in parts) for one in value
            )
        if kind is tuple and ... not in parts:
            return isinstance(value, list | tuple) and len(value) == len(parts)
        several = value if isinstance(value, list | tuple) else ()
        return all(any(_fits(one, part) for part in parts) for one in several)
    return isinstance(value, kind)


def _of_chosen_flows(value: Any) -> Any:
    """Runs with their chosen flows alone, in a list or a dict, too; anything else as it is."""
    if type(value) in (list, tuple):
        changed = type(value)(_of_chosen_flows(one) for one in value)
        return changed if any(a is not b for a, b in zip(value, changed, strict=True)) else value
    if type(value) is dict:
        return {name: _of_chosen_flows(one) for name, one in value.items()}
    if type(value).__name__ != "Dataset" or not {"label", "flow"} <= {*value.coords}:
        return value
    if "sweep" in value.attrs or "duration_s" not in value.attrs:
        return value
    from qbkit.chosen_flows import chosen_flows  # needs NumPy and xarray, as the value does

    return chosen_flows(value)


def _is_data(value: Any) -> bool:
    """Whether it is a dataset or a table, or a list or a dict of these."""
    if isinstance(value, Mapping) and not hasattr(value, "variables"):
        value = list(value.values())
    first = value[0] if isinstance(value, list | tuple) and value else value
    return type(first).__name__ in DATA


def _is_number(value: Any, convert: Callable[[Any], object]) -> bool:
    if isinstance(value, str | bytes | bytearray):
        return False
    try:
        convert(value)
    except (TypeError, ValueError):
        return False
    return True


def _shown(value: Any) -> str:
    """A value in a sentence: of tables and objects the name of their kind."""
    plain = value is None or type(value).__module__ == "builtins"
    return short(value) if plain else f"a {type(value).__name__}"


def _wanted(hint: Any) -> str:
    """What a type asks for, in words."""
    kind, parts = typing.get_origin(hint) or hint, typing.get_args(hint)
    if kind in (typing.Union, types.UnionType):
        wanted = dict.fromkeys(_wanted(part) for part in parts if part is not type(None))
        if Path in parts:
            wanted.pop(WORDS["str"], None)
        if any(_name(part) == "_SupportsArray" for part in parts):
            wanted = dict.fromkeys(_wanted(p) for p in parts if _name(p) not in ARRAY_LIKE)
        return " or ".join(wanted)
    if kind is typing.Literal:
        return " or ".join(map(str, parts))
    name = _name(hint)
    words = WORDS.get(name, f"a value of {name}")
    inner = _wanted(parts[-1]) if parts and name in ("Sequence", "Iterable", "Mapping") else ""
    return f"{words}, each {inner}" if inner else words


def _name(hint: Any) -> str:
    """Of a type, without its parameters."""
    kind = typing.get_origin(hint) or hint
    return str(getattr(kind, "__name__", kind))
