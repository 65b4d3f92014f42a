"""Specs as files: JSON if the name ends in .json, otherwise YAML."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from qbkit.arguments import as_path
from qbkit.errors import SpecError
from qbkit.json_words import in_words
from qbkit.spec.words import repeated

YAML = (".yaml", ".yml")
ENDINGS = (*YAML, ".json")
"""Of the names of spec files."""


@contextmanager
def of_file(path: str | Path) -> Iterator[None]:
    """Put the path of a spec file before each SpecError about its content."""
    try:
        yield
    except SpecError as error:
        raised = SpecError(f"{path}: {error}")
        raised.mistakes = error.mistakes
        raise raised from None


def read_fields(path: str | Path, what: str) -> dict[str, Any]:
    """The fields of a spec file, by name; SpecError says what is wrong with the file.

    ``what`` is the name of the spec in errors.
    """
    file = as_path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SpecError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SpecError(f"{path} is not a text file; give {what} in YAML or JSON") from None
    data = _parsed_json(text, path) if file.suffix == ".json" else _parsed_yaml(text, path)
    if not isinstance(data, dict):
        raise SpecError(f"{path} has no fields; {what} needs names and values")
    _require_words(data, path)
    return data


def _require_words(data: object, path: str | Path) -> None:
    """Raise SpecError for a key that is not a text: YAML allows any key."""
    if isinstance(data, dict):
        for key, value in data.items():
            if not isinstance(key, str):
                raise SpecError(f"{path}: {key!r} is not a field name; put it in quotation marks")
            _require_words(value, path)
    elif isinstance(data, list):
        for value in data:
            _require_words(value, path)


def _parsed_json(text: str, path: str | Path) -> object:
    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if twice := repeated([name for name, _ in pairs]):
            raise SpecError(f"{path}: {twice[0]} is given twice; keep one")
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=unique)
    except SpecError:
        raise
    except (ValueError, RecursionError) as error:
        raise SpecError(f"{path} is not JSON: {in_words(error)}") from None


def _parsed_yaml(text: str, path: str | Path) -> object:
    import yaml

    try:
        return _words_kept(text, path)
    except SpecError:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise SpecError(f"{path} is not YAML: {where}{error.problem or error.context}") from None
    except yaml.YAMLError:
        raise SpecError(f"{path} is not YAML: it has characters that are no text") from None
    except (ValueError, RecursionError, OverflowError) as error:
        raise SpecError(f"{path} is not YAML: {in_words(error)}") from None


def _words_kept(text: str, path: str | Path) -> object:
    """YAML's values; YAML 1.1 reads ``5:0.2`` as a number to base 60, which here stays a text."""
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_object(self, node: Any, deep: bool = False) -> Any:
            is_number = node.tag.endswith((":int", ":float"))
            return (
                node.value
                if is_number and ":" in node.value
                else super().construct_object(node, deep)
            )

    loader = Loader(text)
    document = loader.get_single_node()
    _require_unique(document, path)
    return loader.construct_document(document) if document else None


def _require_unique(node: Any, path: str | Path) -> None:
    """Raise SpecError for a field that is given twice: YAML's loader would keep the last alone."""
    from yaml import MappingNode, SequenceNode

    if isinstance(node, MappingNode):
        names: set[str] = set()
        for key, value in node.value:
            if not isinstance(key.value, str):
                continue  # `_require_words` reports it
            if key.value in names:
                line = key.start_mark.line + 1
                raise SpecError(f"{path}, line {line}: {key.value} is given twice; keep one")
            names.add(key.value)
            _require_unique(value, path)
    elif isinstance(node, SequenceNode):
        for value in node.value:
            _require_unique(value, path)
