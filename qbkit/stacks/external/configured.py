"""Users' own stacks, listed in a TOML file: programs with or without a command line of their own.

The file is ``QBKIT_STACKS``, else ``$XDG_CONFIG_HOME/qbkit/stacks.toml``, else
``~/.config/qbkit/stacks.toml``, with a table for each stack. docs/howto/own-stack.md describes the
keys:

    [stack.mine]
    program = "/home/me/mine/client"
    controllers = ["cubic", "bbr"]
    connect = ["--cc={controller}", "{ip}", "{port}"]     # without these two lines the program
    listen = ["--port={port}"]                            # speaks the contract of a driver

A path that begins with ./ or ../ starts at the folder of the file. The guest sees the folders of
the programs, and this machine's files except /tmp, all read-only.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qbkit.errors import SpecError
from qbkit.json_words import in_words
from qbkit.settings import chosen_path
from qbkit.stacks.base import Stack
from qbkit.stacks.external.commands import VALUES, Commands, ServingCommands, unknown_values
from qbkit.stacks.external.program import Configured
from qbkit.stacks.registry import register
from qbkit.suggestions import did_you_mean

REQUIRED: dict[str, Any] = {"program": str, "controllers": list | dict}
OPTIONAL = {
    "version_command": list,
    "options": dict,
    "connect": list,
    "listen": list,
    "server": str,
    "sender": str,
}
WORDS = ("version_command", "connect", "listen")
"""Keys whose values are lists of words."""
EXAMPLES = {
    "program": '"/path/of/the/program"',
    "controllers": '["cubic", "reno"]',
    "connect": '["--cc={controller}", "{ip}", "{port}"]',
    "listen": '["--port={port}", "--cert={cert}", "--key={key}"]',
    "server": '"/path/of/the/server"',
    "sender": '"connect"',
    "version_command": '["/path/of/the/program", "--version"]',
    "options": '{name = "what it does"}',
}
"""Known keys, each with an example."""


def stacks_file() -> Path:
    """Where the user's stacks are listed."""
    if chosen := chosen_path("QBKIT_STACKS"):
        return chosen
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "qbkit/stacks.toml"


def load(path: Path) -> list[Stack]:
    """The stacks of a file; none if there is no such file.

    Raises SpecError, which says what is wrong in which table.
    """
    return [from_table(name, table, path) for name, table in tables_of(path).items()]


def tables_of(path: Path) -> dict[str, Any]:
    """The tables of a file by the name of the stack."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SpecError(f"{path} cannot be read: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{path} cannot be read as TOML: {error}") from None
    except (ValueError, RecursionError) as error:
        raise SpecError(f"{path} cannot be read as TOML: {in_words(error)}") from None
    tables = content.pop("stack", {})
    if content or not isinstance(tables, dict):
        raise SpecError(f"{path} may only have tables named [stack.NAME]")
    return tables


def from_table(name: str, table: Any, path: Path) -> Stack:
    """The stack of one table; raises SpecError, which says what is missing or wrong in it."""
    where = f"[stack.{name}] in {path}"
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", name):
        raise SpecError(f"{where}: a name may have lower-case letters, digits, - and _")
    table = _anchored(table, path.parent)
    _check(table, where)
    names = table["controllers"]
    attributes = {
        "__doc__": f"{where}.",
        "name": name,
        "source": f"external: {table['program']}",
        "options": dict(table.get("options", {})),
        "file": _file(table["program"]),
        "names": dict(names) if isinstance(names, Mapping) else {word: word for word in names},
        "version_command": tuple(table.get("version_command", ())),
    }
    kind: type[Configured] = Configured
    if "connect" in table:
        kind = ServingCommands if table.get("sender") == "listen" else Commands
        attributes |= {key: tuple(table[key]) for key in ("connect", "listen")}
        attributes["server"] = _file(table.get("server", table["program"]))
    made: type[Configured] = type(f"Configured_{name}", (kind,), attributes)
    return made()


def _anchored(table: Any, folder: Path) -> Any:
    """The table, with the absolute path of a program that is given from the file's folder on."""
    if not isinstance(table, Mapping):
        return table
    near = {
        key: str(folder.absolute() / value)
        for key in ("program", "server")
        if isinstance(value := table.get(key), str) and value.startswith(("./", "../"))
    }
    return {**table, **near}


def _file(program: str) -> Path:
    """The file of a program, without the links in its path (/bin is one)."""
    return Path(program).expanduser().resolve()


def _check(table: Any, where: str) -> None:
    """Check that required keys exist, and that every key is known and of its type."""
    if not isinstance(table, Mapping):
        raise SpecError(f"{where} is not a table")
    for key, kind in REQUIRED.items():
        if not isinstance(table.get(key), kind) or not table[key]:
            raise SpecError(f"{where} needs {key} = {EXAMPLES[key]}")
    for key in table.keys() - EXAMPLES.keys():
        near = did_you_mean(key, EXAMPLES)
        raise SpecError(f"{where} has an unknown key {key}{near}; known are {', '.join(EXAMPLES)}")
    for key, kind in OPTIONAL.items():
        if not isinstance(table.get(key, kind()), kind):
            raise SpecError(f"{where}: write {key} as {EXAMPLES[key]}")
    _check_words(table, where)
    for key in ("program", "server"):
        if key in table:
            _check_program(table[key], f"{where}: {key}")
    _check_commands(table, where)


def _check_words(table: Mapping[str, Any], where: str) -> None:
    """Check the entries of all lists, and of the table of controllers."""
    names = table["controllers"]
    words = [*(names.values() if isinstance(names, Mapping) else names)]
    words += [word for key in WORDS for word in table.get(key, [])]
    if not all(isinstance(word, str) and word for word in words):
        raise SpecError(f"{where}: lists must hold words in quotation marks")


def _check_program(program: str, what: str) -> None:
    file = Path(program).expanduser()
    if not file.is_absolute():
        found = shutil.which(program)
        advice = f", such as {found}" if found else ""
        raise SpecError(
            f"{what} must be an absolute path{advice}, or begin with ./, not {program!r}"
        )
    path, space, arguments = program.partition(" ")
    if space and not file.exists() and Path(path).expanduser().exists():
        raise SpecError(
            f"{what} is a path without arguments, not {program!r}; put {arguments!r} into connect "
            "and listen"
        )


def _check_commands(table: Mapping[str, Any], where: str) -> None:
    """Check what only programs with a command line of their own have."""
    given = [key for key in ("connect", "listen") if key in table]
    if len(given) == 1:
        (missing,) = {"connect", "listen"} - set(given)
        raise SpecError(f"{where} has {given[0]} and needs {missing} = {EXAMPLES[missing]} too")
    if table.get("sender", "connect") not in ("connect", "listen"):
        raise SpecError(f'{where}: sender is "connect" or "listen", not {table["sender"]!r}')
    for key in ("server", "sender"):
        if key in table and not given:
            raise SpecError(f"{where} has {key}, which needs connect and listen too")
    if given and table.get("options"):
        raise SpecError(
            f"{where}: options are for programs that speak qbkit's contract; with connect and "
            "listen, write a table per set of options, or a class (docs/howto/own-stack.md)"
        )
    for key in given:
        for word in table[key]:
            for name in unknown_values(word):
                near = did_you_mean(name, VALUES)
                raise SpecError(
                    f"{where}: {key} has {{{name}}}{near}; known are "
                    f"{', '.join(f'{{{value}}}' for value in VALUES)}, and {{{{ for a brace"
                )


def register_all() -> None:
    """Register the user's stacks; a mistake in the file, or in one of its tables, only warns."""
    path = stacks_file()
    try:
        tables = tables_of(path)
    except SpecError as error:
        warnings.warn(str(error), stacklevel=2)
        return
    for name, table in tables.items():
        try:
            register(from_table(name, table, path))
        except SpecError as error:
            warnings.warn(str(error), stacklevel=2)
        except ValueError as error:
            where = f"[stack.{name}] in {path}"
            warnings.warn(f"{where}: {error}; choose another name", stacklevel=2)
