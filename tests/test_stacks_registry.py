"""The registry of stacks: names, plug-ins of other packages, and what a broken one does."""

from __future__ import annotations

import compileall
import re
import shutil
from collections.abc import Iterator
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from qbkit import stacks
from qbkit.errors import SpecError
from qbkit.stacks import Transfer, chromium, registry
from qbkit.stacks.tcp import Tcp

GOOD = """
from qbkit.stacks import Stack


class Pigeon(Stack):
    name = "pigeon"
    source = "the roof"

    def controllers(self):
        return ("north", "south")

    def version(self):
        return "2"

    def program(self):
        return ["/bin/pigeon"]
"""


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of packages to import from, and a registry that has not looked there yet."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    registry._load_plugins.cache_clear()
    yield tmp_path
    registry._load_plugins.cache_clear()


def install(folder: Path, module: str, code: str, point: str) -> None:
    """What pip leaves of a package with one entry point."""
    (folder / f"{module}.py").write_text(code)
    info = folder / f"{module}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[qbkit.stacks]\n{point}\n")
    assert PathDistribution(info).version == "1"


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(SpecError, match=re.escape("no stack 'carrier'; known are aioquic, ")):
        stacks.get("carrier")


def test_a_missing_file_of_own_stacks_is_named(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("QBKIT_STACKS", str(tmp_path / "stack.toml"))
    with pytest.raises(SpecError, match=r"QBKIT_STACKS names .*stack\.toml, which does not exist$"):
        stacks.get("carrier")
    (tmp_path / "stack.toml").touch()
    with pytest.raises(SpecError, match=r"xquic$"):
        stacks.get("carrier")


def test_names_are_distinct() -> None:
    known = stacks.all_stacks()
    assert {"tcp", "aioquic"} <= {stack.name for stack in known}
    assert len({stack.name for stack in known}) == len(known)
    for stack in known:
        assert stack.controllers()
        assert stack.version()


def test_a_plug_in_is_found_and_can_be_called(plugins: Path) -> None:
    install(plugins, "pigeon_plugin", GOOD, "pigeon = pigeon_plugin:Pigeon")
    pigeon = stacks.get("pigeon")
    assert pigeon.status().ready
    argv = pigeon.send_argv(
        Transfer(
            address="10.2.0.1:4001",
            controller="north",
            out="/out",
            duration_s=1.5,
            size_bytes=None,
            options={"coo": True},
        )
    )
    assert argv[:4] == ["/bin/pigeon", "send", "--connect", "10.2.0.1:4001"]
    assert argv[4:8] == ["--controller", "north", "--duration-s", "1.5"]
    assert argv[8:] == ["--out", "/out", "--option", "coo=true"]


def test_a_broken_plug_in_warns_and_the_others_work(plugins: Path) -> None:
    install(plugins, "broken_plugin", "raise RuntimeError('no wings')", "ostrich = broken_plugin:X")
    with pytest.warns(UserWarning, match=r"plug-in ostrich \(broken_plugin:X\): no wings"):
        assert stacks.get("tcp").name == "tcp"


def test_a_plug_in_cannot_take_a_name(plugins: Path) -> None:
    install(plugins, "thief_plugin", GOOD.replace('"pigeon"', '"tcp"'), "x = thief_plugin:Pigeon")
    with pytest.warns(UserWarning, match="there is already a stack 'tcp'"):
        assert isinstance(stacks.get("tcp"), Tcp)


def test_two_classes_cannot_share_a_name() -> None:
    class Other(Tcp):
        """Another class with TCP's name."""

    with pytest.raises(ValueError, match="there is already a stack 'tcp': Tcp"):
        stacks.register(Other())
    stacks.register(Tcp())  # the same class again is no conflict


def test_byte_code_does_not_rename_a_browser(tmp_path):
    before = chromium.driver_fingerprint(chromium.SOURCES)
    copies = tuple(shutil.copytree(one, tmp_path / one.name) for one in chromium.SOURCES)
    assert compileall.compile_dir(tmp_path, quiet=2)
    assert list(tmp_path.rglob("*.pyc"))
    assert chromium.driver_fingerprint(copies) == before


def test_a_file_at_the_top_of_stacks_is_a_stack():
    top = Path(stacks.__file__).parent
    others = {"__init__.py", "base.py", "registry.py", "release.py"}
    found = {path.name for path in top.glob("*.py") if "register(" not in path.read_text()}
    assert found <= others
