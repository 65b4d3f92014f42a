"""What is wrong with a JSON file, in the words of JSON instead of Python's; and rows for JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

KINDS = {
    "int": "a whole number",
    "float": "a number",
    "decimal": "a number",
    "str": "a text",
    "bool": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}
"""msgspec's names of types → those of JSON."""
EXPECTED = re.compile(r"Expected `(?P<wanted>.*?)`, got `(?P<found>.*?)`")
MISSING = re.compile(r"missing required field `(?P<name>.*?)`")
PLACE = re.compile(r" - at `\$\.?(?P<path>.*?)`")


MALFORMED = "a brace, a comma or a quote is missing or out of place"


def in_words(error: Exception) -> str:
    """Why a reader rejects JSON: a part of a sentence, without the name of an exception."""
    text = str(error)
    place = PLACE.search(text)
    name = (place["path"] if place else "") or "it"
    if wrong := EXPECTED.search(text):
        wanted = " or ".join(_kind(kind) for kind in wrong["wanted"].split(" | ") if kind != "null")
        return f"{name} is {_kind(wrong['found'])}, not {wanted}"
    if missing := MISSING.search(text):
        return f"{name} has no {missing['name']}"
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    if isinstance(error, UnicodeError):
        return "a text is not in UTF-8"
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}, column {error.colno}: {MALFORMED}"
    if type(error).__name__ in ("JSONError", "IncompleteJSONError", "DecodeError"):
        return MALFORMED
    return f"{name} is out of range" if place else "a number or a date is out of range"


def object_of(text: str | bytes) -> dict[str, Any]:
    """The members of a JSON object; raises ValueError with a few words for anything else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not valid JSON: {in_words(error)}") from None
    except TypeError:
        raise ValueError("it must be the text of a JSON object") from None
    if not isinstance(found, dict):
        raise ValueError("it must be a JSON object")
    return found


def plain_rows(rows: Iterable[Mapping[Any, Any]]) -> list[dict[str, Any]]:
    """Rows of a table for JSON (`plain`)."""
    return [plain(row) for row in rows]


def plain(value: Any) -> Any:
    """A value for JSON, which has neither NaN nor infinity (they are null), nor tuples."""
    if isinstance(value, Mapping):
        return {str(name): plain(member) for name, member in value.items()}
    if isinstance(value, tuple | list):
        return [plain(member) for member in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _kind(name: str) -> str:
    return KINDS.get(name, "another value")
