"""What a message to a user must not say, and structured damage to what a reader reads."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from qbkit.errors import QbkitError

OF_PYTHON = re.compile(
    r"\w(Error|Exception)\b|Traceback|NoneType|has no attribute|Expecting |Expected `|"
    r"\bindices\b|unhashable|invalid literal|subscriptable|could not convert|codec|"
    r"\(char \d|<class|<built-in|\bint\(\)|\bfloat\(\)|\bdict\b|\bstr\b|iterable|\barg(ument)?s?\b|"
    r"keyword|__|lambda|NaN to integer|truth value|unpack|broadcast|dtype|h5py|pydantic|msgspec|"
    r"object at 0x"
)
OTHERS = (None, True, -1, 0, 0.5, 1e308, 2**70, "", "x", "nan", "-1", [], {}, [[1]], [None],
          {"a": 1}, "\ud800")  # fmt: skip


def check_words(error: BaseException | str) -> None:
    """One sentence, in the words of the file's format, of a length to be read."""
    text = str(error)
    assert text.strip()
    assert "\n" not in text
    assert len(text) < 1000
    found = OF_PYTHON.search(text)
    assert found is None, f"{found[0]!r} in {text!r}"


def read_or_say_why(read: Callable[[], Any]) -> Any:
    """What a reader returns; an error must be one of qbkit's, in words."""
    try:
        return read()
    except QbkitError as error:
        check_words(error)
        return None


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to each value in a document."""
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [at, *(p for key, part in inner for p in places(part, (*at, key)))]


def changed(data: st.DataObject, document: Any, most: int = 3) -> Any:
    """The document with some values replaced by other types, taken out, or doubled."""
    document = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, most), label="changes")):
        *path, last = data.draw(st.sampled_from(places(document)[1:] or [(0,)]), label="place")
        inside = document
        for key in path:
            inside = inside[key]
        if not isinstance(inside, dict | list) or not inside:
            continue
        how = data.draw(st.sampled_from(["other", "other", "other", "out", "double"]), label="how")
        if how == "other":
            inside[last] = copy.deepcopy(data.draw(st.sampled_from(OTHERS), label="value"))
        elif how == "out":
            del inside[last]
        elif isinstance(inside, list):
            inside.append(copy.deepcopy(inside[last]))
        else:
            inside[f"{last} again"] = copy.deepcopy(inside[last])
    return document
