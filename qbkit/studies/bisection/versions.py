"""The versions between two ends: releases of a registry, or commits of a local clone."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from qbkit import stacks
from qbkit.errors import SpecError, StackNotReady
from qbkit.settings import writable_folder
from qbkit.stacks.base import Say
from qbkit.stacks.external.configured import from_table, stacks_file, tables_of
from qbkit.stacks.registry import register
from qbkit.stacks.release import Release, number
from qbkit.stacks.toolchains.build import run_tool

END = re.compile(r"(?P<stack>[^@:]+)@(?P<version>[^:]+)")
SHORT = 10
"""Digits of a commit that its stack is named by."""


class Version(Protocol):
    """One version of a stack."""

    @property
    def name(self) -> str:
        """What a person calls it: ``STACK@VERSION``."""

    @property
    def title(self) -> str:
        """The same, and what it is about, where that is known."""

    @property
    def stack(self) -> str:
        """The name of its stack."""

    def check(self, controller: str) -> None:
        """Raise SpecError for a controller that it does not have."""

    def prepare(self, say: Say) -> None:
        """Build it unless it is built; raises StackNotReady."""


@dataclass(frozen=True)
class Released:
    """A release."""

    stack: str

    @property
    def name(self) -> str:
        """As its stack: ``quinn@0.11.5``."""
        return self.stack

    title = name

    def check(self, controller: str) -> None:
        """Raise SpecError for a controller that it does not have."""
        stacks.get(self.stack).check(controller, {}, None)

    def prepare(self, say: Say) -> None:
        """Build it unless it is built; raises StackNotReady."""
        release = stacks.get(self.stack)
        if not release.status().ready:
            say(f"building {self.stack}")
            release.build(say)


@dataclass(frozen=True)
class Clone:
    """A clone of a stack of one's own, and how its program is built."""

    name: str
    """The stack, of which the user's ``stacks.toml`` has a table."""
    folder: Path
    command: str
    """Builds the program, in the folder of the clone."""

    def git(self, *words: str, folder: Path | None = None) -> str:
        """The output of git; raises StackNotReady."""
        return run_tool(["git", "-C", folder or self.folder, *words], self.name).strip()

    def table(self, place: Path) -> dict[str, Any]:
        """The table of the stack, with the paths of the clone replaced by those of a copy."""
        known = tables_of(stacks_file())
        if self.name not in known:
            raise SpecError(f"[stack.{self.name}] is not in {stacks_file()}; see qbkit new-stack")
        table = dict(known[self.name])
        program = Path(str(table.get("program"))).expanduser().resolve()
        if not program.is_relative_to(self.folder):
            raise SpecError(
                f"[stack.{self.name}]: its program {program} is not in the clone {self.folder}"
            )
        table["program"] = str(place / program.relative_to(self.folder))
        if "server" in table:
            server = Path(table["server"]).expanduser().resolve()
            if server.is_relative_to(self.folder):
                table["server"] = str(place / server.relative_to(self.folder))
        return table


@dataclass(frozen=True)
class Commit:
    """A commit of a clone."""

    clone: Clone
    sha: str
    subject: str

    @property
    def name(self) -> str:
        """Its first digits."""
        return f"{self.clone.name}@{self.sha[:SHORT]}"

    @property
    def title(self) -> str:
        """Its first digits and its subject."""
        return f"{self.name} ({self.subject})"

    @property
    def stack(self) -> str:
        """The name of the stack of this commit."""
        return f"{self.clone.name}-{self.sha[:SHORT]}"

    def check(self, controller: str) -> None:
        """Raise SpecError for a controller that its table does not have."""
        table = self.clone.table(self.clone.folder)
        from_table(self.clone.name, table, stacks_file()).check(controller, {}, None)

    def prepare(self, say: Say) -> None:
        """Check it out into a folder of its own, build it once, and register its stack."""
        key = hashlib.sha256(f"{self.clone.folder} {self.clone.command}".encode()).hexdigest()[:8]
        place = writable_folder() / "commits" / f"{self.clone.name}-{key}" / self.sha
        built = place / ".qbkit-built"
        if not built.exists():
            say(f"building {self.title}")
            if not place.exists():
                self.clone.git("clone", "-q", "--shared", ".", str(place))
            self.clone.git("checkout", "-q", "--detach", self.sha, folder=place)
            log = writable_folder() / "failures" / f"{self.stack}.log"
            run_tool(["sh", "-c", self.clone.command], self.title, cwd=place, log=log)
        stack = from_table(self.stack, self.clone.table(place), stacks_file())
        if not (status := stack.status()).ready:
            raise StackNotReady(
                f"{self.clone.command!r} ended well on {self.title}, but its program is not "
                f"there: {status.reason}"
            )
        built.touch()
        register(stack, replaces=True)  # another bisection may have built it by another command


def ends(good: str, bad: str) -> tuple[str, str, str]:
    """The stack and both versions of ``STACK@VERSION`` twice; raises SpecError."""
    found = []
    for word, text in (("good", good), ("bad", bad)):
        match = END.fullmatch(str(text))
        if not match:
            raise SpecError(f"{word} = {text}: write STACK@VERSION, as in quinn@0.11.2")
        found.append(match)
    first, last = found
    if first["stack"] != last["stack"]:
        raise SpecError(f"{good} and {bad} are two stacks; give two versions of one")
    if first["version"] == last["version"]:
        raise SpecError(f"{good} is both good and bad; give two versions")
    return first["stack"], first["version"], last["version"]


def releases(stack: str, good: str, bad: str) -> list[Released]:
    """The releases that the registry has from the good one to the bad one.

    Raises SpecError if good is the later one or qbkit builds no such release, and StackNotReady
    where the registry does not have an end or cannot be asked.
    """
    both = [stacks.get(f"{stack}@{version}") for version in (good, bad)]
    if number(good) > number(bad):
        raise SpecError(f"{stack}@{good} came after {stack}@{bad}; good is the earlier one")
    assert isinstance(both[0], Release)
    there = list(both[0].released())
    for version in (good, bad):
        if version not in there:
            raise both[0].of.unknown(version, there)
    fitting = both[0].of.fitting(there)
    between = [v for v in fitting if number(good) <= number(v) <= number(bad)]
    return [Released(f"{stack}@{version}") for version in between]


def commits(clone: Clone, good: str, bad: str) -> list[Commit]:
    """The commits from the good one to the bad one, along first parents.

    Raises SpecError for a folder that is no clone, an unknown commit, and a good one that is no
    ancestor of the bad one.
    """
    try:
        inside = clone.git("rev-parse", "--show-prefix")
    except StackNotReady:
        raise SpecError(
            f"{clone.folder} is no clone; give the folder of a git repository"
        ) from None
    if inside:
        raise SpecError(f"{clone.folder} is the folder {inside} of a clone; give the clone's own")
    clone.table(clone.folder)
    first, last = (_commit(clone, version) for version in (good, bad))
    if first == last:
        raise SpecError(f"{good} and {bad} are the same commit; give two")
    lines = clone.git("log", "--first-parent", "--reverse", "--format=%H %s", f"{first}..{last}")
    ancestors = clone.git("rev-list", "--first-parent", last).split()
    if first not in ancestors:
        raise SpecError(
            f"{good} is no earlier commit on the line of first parents of {bad}; good is the "
            f"earlier one, and not on a branch that was merged: git log --first-parent {bad}"
        )
    subject = clone.git("log", "-1", "--format=%s", first)
    rows: Sequence[tuple[str, str, str]] = [line.partition(" ") for line in lines.splitlines()]
    return [Commit(clone, first, subject), *(Commit(clone, sha, text) for sha, _, text in rows)]


def _commit(clone: Clone, version: str) -> str:
    """The full name of a commit."""
    try:
        return clone.git("rev-parse", "--verify", "--quiet", f"{version}^{{commit}}")
    except StackNotReady:
        raise SpecError(f"{clone.folder} has no commit {version}") from None
