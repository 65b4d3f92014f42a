"""A run's name depends on all that can change its result, and on nothing else. No guest runs."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from qbkit import measurement, stacks
from qbkit.execution import identity
from qbkit.spec import Experiment
from qbkit.stacks import Stack
from qbkit.stacks.external import configured
from qbkit.stacks.toolchains import build
from qbkit.testbed import engines

ENGINE = dataclasses.replace(engines.ENGINES["virtual"], version=lambda _kind: "a kernel")
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


def test_the_version_of_a_transport_is_beside_the_name(tmp_path: Path, monkeypatch):
    stack = mine(compiled(PLAIN, tmp_path / "driver"))
    experiment = Experiment(flows=["mine:cubic"])
    before = identity.Identity(ENGINE).of(experiment, [stack])
    assert before["transport_versions"] == "{}"
    monkeypatch.setattr(type(stack), "transport", lambda _: "mine-proto 1.2")
    after = identity.Identity(ENGINE).of(experiment, [stack])
    assert after == {**before, "transport_versions": '{"mine": "mine-proto 1.2"}'}


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


def test_what_a_script_names_is_in_the_name(tmp_path: Path):
    program, other = tmp_path / "ci/driver", tmp_path / "build/real"
    for folder in ("ci/lib", "build"):
        (tmp_path / folder).mkdir(parents=True)
    parts = {
        other: "#!/bin/sh\nexec sleep 1\n",
        tmp_path / "ci/window.py": "import losses\n",
        tmp_path / "ci/losses.py": "BETA = 0.7\n",
        tmp_path / "ci/lib/__init__.py": "",
        tmp_path / "ci/lib/pacing.py": "GAIN = 1\n",
    }
    program.write_text(f"#!/bin/sh\nfrom window import x\nfrom lib import pacing\nexec {other}\n")
    program.chmod(0o755)
    alone = name_of(mine(program))
    (tmp_path / "ci/unrelated.txt").write_text("")
    assert name_of(mine(program)) == alone
    for path, text in parts.items():
        path.write_text(text)
        path.chmod(0o755)
    names = [alone, name_of(mine(program))]
    for path, text in parts.items():
        written_ns = path.stat().st_mtime_ns
        path.write_text(f"{text}# changed\n")
        os.utime(path, ns=(written_ns + 10**9,) * 2)
        names.append(name_of(mine(program)))
    assert len(set(names)) == len(parts) + 2


def test_code_of_this_package_is_not_in_the_name():
    files = []
    sys.addaudithook(lambda event, args: event == "open" and files.append(str(args[0])))
    name_of(stacks.get("tcp"))
    ours = Path(identity.__file__).parents[1]
    read = {Path(f).relative_to(ours) for f in files if f.startswith(f"{ours}/")}
    read = {path for path in read if "__pycache__" not in path.parts}
    assert {path.parts[:2] for path in read} <= {("stacks", "drivers")}


def test_the_measurement_version_is_in_the_name(monkeypatch: pytest.MonkeyPatch):
    before = name_of(stacks.get("tcp"))
    monkeypatch.setattr(measurement, "VERSION", measurement.VERSION + 1)
    assert name_of(stacks.get("tcp")) != before


@pytest.mark.parametrize("tool", ["python3", "ip", "tc"])
def test_versions_of_the_tools_are_in_the_name_and_their_files_are_not(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    program = tmp_path / tool
    program.write_text("#!/bin/sh\necho utility, version-6.1.0, other 1.1\n")
    program.chmod(0o755)
    monkeypatch.setattr(identity, "GUEST_PATH", f"{tmp_path}:{identity.GUEST_PATH}")
    before = name_of(stacks.get("tcp"))
    assert identity.tool_versions()[tool] == "6.1.0"
    write_again(program, "#!/bin/sh\n# a security update\necho version-6.1.0\n")
    assert name_of(stacks.get("tcp")) == before
    write_again(program, "#!/bin/sh\necho version-7.2.0\n")
    assert name_of(stacks.get("tcp")) != before


def test_the_version_of_mininet_is_in_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    module = tmp_path / "net.py"
    monkeypatch.setattr(identity.guest_root, "MININET", module)
    names = []
    for text in ('VERSION = "2.3.0"\n', '# a fix\nVERSION = "2.3.0"\n', 'VERSION = "2.3.1"\n'):
        module.write_text(text)
        names.append(name_of(stacks.get("tcp")))
    assert names[0] == names[1] != names[2]


def test_the_commands_of_a_users_stack_are_in_the_name(tmp_path: Path):
    program = tmp_path / "client"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    one = mine(program, connect=["--cc={controller}", "{ip}"], listen=["{port}"])
    two = mine(program, connect=["--cc={controller}", "--fast", "{ip}"], listen=["{port}"])
    assert name_of(one) != name_of(two)


def test_a_stack_in_a_package_of_the_users_counts_with_its_settings(
    monkeypatch: pytest.MonkeyPatch,
):
    own = type("Own", (type(stacks.get("tcp")),), {"__module__": "my_stack"})()
    before = name_of(own)
    monkeypatch.setattr(type(own), "env", lambda self: {"A_SETTING": "1"})
    assert name_of(own) != before


def test_a_changed_aioquic_of_the_same_version_renames_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from qbkit.stacks import aioquic

    before = aioquic.driver_fingerprint()
    copied = shutil.copytree(aioquic.site_packages_of("aioquic") / "aioquic", tmp_path / "aioquic")
    monkeypatch.setattr(aioquic, "site_packages_of", lambda _: tmp_path)
    assert aioquic.driver_fingerprint() == before
    with (copied / "quic/recovery.py").open("a") as changed:
        changed.write("\n")
    assert aioquic.driver_fingerprint() != before


@pytest.mark.parametrize("name", ["quic-go", "x-net-quic", "media", "google-quiche"])
def test_no_text_of_a_module_of_qbkit_renames_a_driver(name, monkeypatch: pytest.MonkeyPatch):
    stack = stacks.get(name)
    real, seen = build.fingerprint, []

    def watched(sources, *words: str) -> str:
        seen.extend(sources := list(sources))
        return real(sources, *words)

    for module in {sys.modules[kind.__module__] for kind in type(stack).__mro__}:
        if "fingerprint" in vars(module):
            monkeypatch.setattr(module, "fingerprint", watched)
    assert stack.version()
    drivers = Path(stacks.__file__).parent / "drivers"
    assert seen
    assert all(path.is_relative_to(drivers) for path in seen)


def test_our_changes_to_the_runtime_of_go_rename_its_drivers(monkeypatch: pytest.MonkeyPatch):
    from qbkit.stacks.toolchains import go_runtime

    go_drivers = [stacks.get(name) for name in ("quic-go", "x-net-quic", "media")]
    before = [stack.version() for stack in go_drivers]
    monkeypatch.setitem(go_runtime.CHANGES, "proc.go", {})
    assert all(then != stack.version() for then, stack in zip(before, go_drivers, strict=True))
