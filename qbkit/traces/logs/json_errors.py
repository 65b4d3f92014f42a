"""What is wrong with a JSON file, in the words of JSON instead of Python's."""

from __future__ import annotations

import re

import ijson
import msgspec

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
    if isinstance(error, msgspec.ValidationError):
        return f"{name} is out of range"
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    if isinstance(error, UnicodeError):
        return "a text is not in UTF-8"
    if isinstance(error, ijson.JSONError):
        return "a brace, a comma or a quote is missing or out of place"
    return "a number is out of range"


def _kind(name: str) -> str:
    return KINDS.get(name, "another value")
