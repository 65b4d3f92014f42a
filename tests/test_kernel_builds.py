"""Built kernels are named by what they are made of, and the right one is found."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from qbkit.errors import EngineError
from qbkit.testbed import kernel, kernel_build, kernel_source
from qbkit.testbed.kernel import Kind


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A stand-in for a Linux tree, for tests in which only its content matters."""
    folder = tmp_path / "linux"
    (folder / "arch").mkdir(parents=True)
    (folder / "Makefile").write_text("VERSION = 7")
    (folder / "arch/link").symlink_to("nowhere")
    return folder


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of kernels of an empty cache."""
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("QBKIT_KERNEL", raising=False)
    monkeypatch.setattr(kernel_build, "TOOLS", ())
    folder = tmp_path / "cache/kernels"
    folder.mkdir(parents=True)
    return folder


def version_of(path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("QBKIT_KERNEL_SOURCE", str(path))
    return kernel_source.source(path.parent, lambda _: None).version


def add_kernel(folder: Path, version: str, recipe: str, mtime_s: float) -> Path:
    binary = folder / f"linux-{version}-{recipe}/linux"
    binary.parent.mkdir()
    binary.write_bytes(b"um_vvar_install")
    binary.chmod(0o755)
    binary.with_name("version").write_text(version)
    os.utime(binary, (mtime_s, mtime_s))
    return binary


def test_a_tree_is_named_by_its_content_wherever_it_is(tree, tmp_path, monkeypatch):
    version = version_of(tree, monkeypatch)
    twin = shutil.copytree(tree, tmp_path / "elsewhere", symlinks=True)
    subprocess.run(["git", "init", "-q", twin], check=True)
    assert version_of(twin, monkeypatch) == version
    (twin / "Makefile").write_text("VERSION = 8")
    assert version_of(twin, monkeypatch) != version


@pytest.mark.parametrize("change", ["Makefile", "arch/link", "new"])
def test_every_change_of_a_tree_changes_its_name(change, tree, monkeypatch):
    version = version_of(tree, monkeypatch)
    (tree / change).unlink(missing_ok=True)
    (tree / change).symlink_to("elsewhere")
    assert version_of(tree, monkeypatch) != version


def test_a_tarball_is_named_by_its_content(tmp_path, monkeypatch):
    names = []
    for content in (b"a", b"b", b"a"):
        tarball = tmp_path / f"{len(names)}.tar"
        tarball.write_bytes(content)
        names.append(version_of(tarball, monkeypatch))
    assert names[0] == names[2] != names[1]


def test_no_repository_gets_into_the_release_name(tree, tmp_path):
    # Linux puts a "+" after its release inside a repository, and the release feeds the guest's
    # random pool. Git's folder is not copied, and an empty LOCALVERSION prevents the "+" anyway.
    subprocess.run(["git", "init", "-q", tree], check=True)
    copy = kernel_source.Source("1", tree).unpack(tmp_path, lambda _: None)
    assert {path.name for path in copy.iterdir()} == {"Makefile", "arch"}
    assert kernel.REPRODUCIBLE["LOCALVERSION"] == ""


def test_the_kernel_of_these_patches_is_found_not_the_newest(kernels):
    other = add_kernel(kernels, "7.3", "0123456789ab", 2000)
    assert kernel.find().path == other  # better than none
    ours = add_kernel(kernels, "7.2", kernel.recipe(Kind.CONSTANT), 1000)
    assert kernel.find().path == ours


def test_the_kernel_asked_for_last_is_found(kernels, tree, monkeypatch):
    add_kernel(kernels, "7.3", kernel.recipe(Kind.CONSTANT), 2000)
    ours = add_kernel(kernels, version_of(tree, monkeypatch), kernel.recipe(Kind.CONSTANT), 1000)
    assert kernel_build.build(kinds=[Kind.CONSTANT])[0].path == ours
    assert kernel.find().path == ours


def test_the_next_build_removes_the_remains_of_a_killed_one(kernels, tree, monkeypatch):
    (kernels / "build-killed/tree").mkdir(parents=True)
    add_kernel(kernels, version_of(tree, monkeypatch), kernel.recipe(Kind.CONSTANT), 1000)
    kernel_build.build(kinds=[Kind.CONSTANT])
    assert not list(kernels.glob("build-*"))


def test_every_patch_is_listed_with_its_symbol():
    assert {path.stem for path in kernel.SOURCES.glob("*.patch")} == set(kernel.PATCHES)
    for name, (symbol, _) in kernel.PATCHES.items():
        assert symbol in (kernel.SOURCES / f"{name}.patch").read_bytes(), name


@pytest.mark.guest
def test_the_kernel_in_use_has_every_patch():
    assert kernel.require().missing_patches == {}


@pytest.mark.guest
def test_no_kernel_contains_a_path_of_its_build():
    assert b"/build-" not in kernel.require().path.read_bytes()


@pytest.mark.slow
@pytest.mark.guest
def test_a_build_in_another_folder_gives_the_same_kernel(tmp_path, monkeypatch):
    # With ccache about 150 s; the test above is for what ccache would hide.
    ours = kernel.require()
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path / "a-folder-with-a-longer-name/cache"))
    monkeypatch.delenv("QBKIT_KERNEL", raising=False)
    try:
        (again,) = kernel_build.build(kinds=[Kind.CONSTANT])
    except EngineError as error:
        if "fetch" not in str(error) and "apt" not in str(error):
            raise
        pytest.skip(f"Debian cannot be reached: {error}")
    assert again.sha256 == ours.sha256
