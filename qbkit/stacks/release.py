"""The releases of a stack, grouped by the interface that our driver programs against."""

from __future__ import annotations

import re
import shutil
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

from qbkit.errors import SpecError, StackNotReady
from qbkit.files import write_whole
from qbkit.settings import cache_folder
from qbkit.stacks.base import Say, Stack
from qbkit.stacks.toolchains.above import name_below

VERSION = re.compile(r"\d{1,9}(\.\d{1,9}){1,3}")
SOURCES = Path(__file__).parent / "drivers/releases"
"""Our drivers of earlier releases, as far as they differ from the present one."""
NONE_ABOVE: dict[str, object] = {
    "apps": (),
    **dict.fromkeys(("reads_slowly", "offers_window", "ip6", "serves", "resumes"), False),
}
"""A stack whose driver has nothing above its transport: attribute → value."""
ALL_ABOVE = tuple(NONE_ABOVE)


@dataclass(frozen=True)
class Generation:
    """The releases from ``since`` to the next generation: one adapter of our driver fits them."""

    since: str
    """First version that was built with it."""
    sources: tuple[Path, ...]
    """Folders of the driver's files, as `toolchains.sources.put_together` takes them."""
    controllers: tuple[str, ...]
    options: tuple[str, ...] = ()
    """The options of the present driver that also this one has."""
    reports: tuple[str, ...] = ("cwnd_bytes", "bytes_in_flight", "srtt_ms")
    others: tuple[tuple[str, str], ...] = ()
    """Further crates of the driver, each with the version that its releases need."""
    above: tuple[str, ...] = ()
    """Those of `ALL_ABOVE` that the driver of ``for_app`` has like the present one."""
    sources_above: tuple[Path, ...] = ()
    """Further folders of that driver."""
    without: tuple[str, ...] = ()
    """Kinds of the present stack's applications that it does not have."""


class Releases(NamedTuple):
    """How to make a stack of a release of the stack ``name``."""

    name: str
    package: str
    """What a version counts: ``crate quinn-proto``."""
    generations: tuple[Generation, ...]
    """Oldest first."""
    built: tuple[str, ...]
    """Versions that were built, oldest first."""
    make: Callable[[Releases, str, Generation], Stack]

    def stack(self, version: str) -> Stack:
        """The stack of a version, built or not; raises SpecError for one that cannot be built."""
        wanted = f"{self.name}@{version}"
        last = self.built[-1]
        if not VERSION.fullmatch(version) or version.count(".") != last.count("."):
            raise SpecError(
                f"{wanted}: {version!r} is no version; write one such as {self.name}@{last}"
            )
        fit = [g for g in self.generations if number(g.since) <= number(version)]
        if not fit:
            raise SpecError(
                f"{wanted}: qbkit's driver fits {self.package} {self.generations[0].since} and "
                f"later; built so far are {', '.join(self.built)}"
            )
        return self.make(self, version, fit[-1])

    def unknown(self, version: str, there: Iterable[str]) -> StackNotReady:
        """The error for a version that is not among those that the registry has."""
        near = self.nearest(version, there)
        where = f"; near it {'are' if near[1:] else 'is'} {', '.join(near)}" if near else ""
        return StackNotReady(
            f"there is no version {version} of the {self.package} for this machine{where}"
        )

    def nearest(self, version: str, there: Iterable[str]) -> list[str]:
        """Of the versions that are there, and that the driver fits, those before and after one."""
        known = self.fitting(there)
        before = [v for v in known if number(v) < number(version)]
        after = [v for v in known if number(v) > number(version)]
        return before[-1:] + after[:1]

    def fitting(self, versions: Iterable[str]) -> list[str]:
        """Those of some versions that the driver fits, oldest first; no release candidates."""
        oldest = number(self.generations[0].since)
        known = {v for v in versions if VERSION.fullmatch(v) and number(v) >= oldest}
        return sorted(known, key=number)


class Release(Stack):
    """A release of a stack, before the stack's own class in the order of bases."""

    of: ClassVar[Releases]
    number: ClassVar[str]
    generation: ClassVar[Generation]
    origin: ClassVar[str]
    """Its `source`, with ``{version}`` in place of the version."""
    lock_name: ClassVar[str] = "requirements.lock"
    """Name of its lock file."""

    @classmethod
    def make(cls, releases: Releases, version: str, generation: Generation) -> Release:
        """The stack of a version, of a class of its own below this one."""
        attributes = {
            "name": f"{releases.name}@{version}",
            "of": releases,
            "number": version,
            "generation": generation,
            "source": cls.origin.format(version=version),
            "apps": tuple(kind for kind in cls.apps if kind not in generation.without),
            **{name: none for name, none in NONE_ABOVE.items() if name not in generation.above},
            **cls.own(version, generation),
        }
        made: Release = type(cls.__name__, (cls,), attributes)()
        return made

    @classmethod
    def own(cls, version: str, generation: Generation) -> dict[str, object]:
        """What else differs between the releases of this stack: attribute → value."""
        return {}

    def build(self, say: Say = lambda _: None) -> None:
        """Lock the release at the first build, then as the stack's own class; may raise."""
        self.lock()
        super().build(say)

    def controllers(self) -> tuple[str, ...]:
        """The controllers that this release has."""
        return self.generation.controllers

    @abstractmethod
    def released(self) -> Iterable[str]:
        """The versions that the registry has for this machine; raises StackNotReady."""

    def lock(self) -> None:
        """Choose what the release is built from, once; raises StackNotReady.

        The error for a version that does not exist names its neighbours.
        """
        if self._lock_file().exists():
            return
        folder = self._lock_file().parent
        folder.mkdir(parents=True, exist_ok=True)
        try:
            self._choose()
        except StackNotReady as error:
            shutil.rmtree(folder)
            raise self._unknown() or error from None

    @abstractmethod
    def _choose(self) -> None:
        """Write the lock file, into a folder that exists; raises StackNotReady."""

    def _unknown(self) -> StackNotReady | None:
        """The error for this version, if the registry can be asked, and does not have it."""
        try:
            there = list(self.released())
        except StackNotReady:
            return None
        return None if self.number in there else self.of.unknown(self.number, there)

    def _lock_file(self) -> Path:
        return release_folder(name_below(self.name)) / self.lock_name

    def _write_lock_file(self, text: str) -> None:
        write_whole(self._lock_file(), text.encode())


class LockedRelease(Release):
    """A release whose version has a fingerprint that its lock file is a part of."""

    def _key(self) -> str:
        """A fingerprint; none before the first build writes the lock file."""
        return self._locked_key() if self._lock_file().exists() else "unlocked"

    def _locked_key(self) -> str:
        """The fingerprint, by default that of the stack's own class."""
        key: str = super()._key()  # type: ignore[misc]
        return key


def number(version: str) -> tuple[int, ...]:
    """A version as numbers, which compare as versions do."""
    return tuple(int(part) for part in version.split("."))


def release_folder(name: str) -> Path:
    """Where a release keeps its lock file, and what else its build needs: ``quinn@0.8.4``."""
    return cache_folder() / "releases" / name


def locked_names() -> list[str]:
    """The releases that have a folder in the cache."""
    return sorted(path.name for path in release_folder("").glob("*@*") if path.is_dir())
