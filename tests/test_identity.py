"""A run's name depends on all that can change its result, and on nothing else. No guest runs."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from qbkit import stacks
from qbkit.execution import identity
from qbkit.spec import Experiment
from qbkit.stacks import Stack
from qbkit.stacks.external import configured
from qbkit.testbed import engines

ENGINE = dataclasses.replace(engines.ENGINES["virtual"], version=lambda: "a kernel")
PLAIN = "int main(void) { return 0; }\n"
LINKED = "int lib(void); int main(void) { return lib(); }\n"


def name_of(stack: Stack, controller: str = "cubic") -> str:
    experiment = Experiment(flows=[f"{stack.name}:{controller}"])
    return identity.Identity(ENGINE).of(experiment, [stack])["hash"]


def compiled(source: str, target: Path, *flags: str) -> Path:
    """Compile C in place of what was there."""
    words = ["gcc", "-x", "c", "-o", str(target), *flags, "-"]
    subprocess.run(words, input=source, text=True, check=True)
    return target


def mine(program: Path, **more: object) -> Stack:
    """A stack of the user's, whose program always says the same version."""
    table = {"program": str(program), "controllers": ["cubic"], **more}
    return configured.from_table("mine", table, program)


def write_again(file: Path, text: str) -> None:
    """Write a file with a later time, as a real build does."""
    later_ns = file.stat().st_mtime_ns + 10**9
    file.write_text(text)
    file.chmod(0o755)
    os.utime(file, ns=(later_ns, later_ns))


@pytest.mark.parametrize("how", [{}, {"version_command": ["echo", "1.0"]}], ids=["", "version"])
def test_a_rebuilt_program_renames_runs(tmp_path: Path, how: dict):
    program = tmp_path / "driver"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    stack = mine(program, **how)
    before, version = name_of(stack), stack.version()
    assert name_of(stack) == before
    write_again(program, "#!/bin/sh\nexit 1\n")
    assert name_of(stack) != before
    assert stack.version() != version
    write_again(program, "#!/bin/sh\nexit 0\n")
    assert name_of(stack) == before
    elsewhere = shutil.copytree(tmp_path, tmp_path / "elsewhere")
    assert name_of(mine(elsewhere / "driver", **how)) == before


def test_a_rebuilt_library_of_a_program_renames_runs(tmp_path: Path):
    library = compiled("int lib(void) { return 0; }\n", tmp_path / "libown.so", "-shared", "-fPIC")
    links = ["-x", "none", str(library), "-Wl,-rpath,$ORIGIN"]
    words = ["gcc", "-o", str(tmp_path / "driver"), "-x", "c", "-", *links]
    subprocess.run(words, input=LINKED, text=True, check=True)
    stack = mine(tmp_path / "driver")
    before = name_of(stack)
    written_ns = library.stat().st_mtime_ns
    compiled("int lib(void) { return 1; }\n", library, "-shared", "-fPIC")
    os.utime(library, ns=(written_ns + 10**9,) * 2)
    assert name_of(stack) != before


def test_another_interpreter_renames_runs(tmp_path: Path):
    interpreter = compiled(PLAIN, tmp_path / "python")
    program = tmp_path / "driver"
    program.write_text(f"#!{interpreter} -S\n")
    program.chmod(0o755)
    before = name_of(mine(program))
    written_ns = interpreter.stat().st_mtime_ns
    compiled(PLAIN.replace("0", "1"), interpreter)
    os.utime(interpreter, ns=(written_ns + 10**9,) * 2)
    assert name_of(mine(program)) != before


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("traces/run/dataset.py", True),
        ("traces/run/match.py", True),
        ("spec/experiment.py", True),
        ("spec/flow.py", True),
        ("testbed/native/capture.c", True),
        ("testbed/guest/agent.py", True),
        ("plots/timeline.py", False),
        ("metrics/points.py", False),
    ],
)
def test_the_code_that_makes_a_dataset_is_in_the_name(
    file: str, counts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    before = name_of(stacks.get("tcp"))
    skip = shutil.ignore_patterns("__pycache__", "drivers")
    package = shutil.copytree(identity.PACKAGE, tmp_path / "qbkit", ignore=skip)
    monkeypatch.setattr(identity, "PACKAGE", package)
    assert name_of(stacks.get("tcp")) == before
    with (package / file).open("a") as changed:
        changed.write("\n")
    assert (name_of(stacks.get("tcp")) != before) == counts


@pytest.mark.parametrize("file", ["tc", "mininet/net.py"])
def test_what_builds_the_network_is_in_the_name(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    tool = tmp_path / file
    tool.parent.mkdir(exist_ok=True)
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setattr(identity, "GUEST_PATH", f"{tmp_path}:{identity.GUEST_PATH}")
    monkeypatch.setattr(identity, "MININET", tmp_path / "mininet")
    before = name_of(stacks.get("tcp"))
    write_again(tool, "#!/bin/sh\nexit 0\n")
    assert name_of(stacks.get("tcp")) != before


def test_settings_of_a_stacks_programs_are_in_the_name(monkeypatch: pytest.MonkeyPatch):
    tcp = stacks.get("tcp")
    before = name_of(tcp)
    monkeypatch.setattr(type(tcp), "env", lambda self: {"A_SETTING": "1"})
    assert name_of(tcp) != before


def test_a_changed_aioquic_of_the_same_version_renames_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from qbkit.stacks import aioquic

    before = aioquic.driver_fingerprint()
    copied = shutil.copytree(aioquic._site_packages() / "aioquic", tmp_path / "aioquic")
    monkeypatch.setattr(aioquic, "_site_packages", lambda: tmp_path)
    assert aioquic.driver_fingerprint() == before
    with (copied / "quic/recovery.py").open("a") as changed:
        changed.write("\n")
    assert aioquic.driver_fingerprint() != before
