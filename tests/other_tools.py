"""The golden runs with other versions of the programs that build the network: what moves?

``python -m tests.other_tools --suite bookworm-backports --packages iproute2`` carries them out
twice and compares: as this machine is, and with the files of these packages of a Debian suite over
its own. ``--put bin/python3=/opt/python3.13/bin/python3`` puts one file or folder into /usr
instead. It changes /usr in a mount namespace only, for which it needs root.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import xarray as xr

from qbkit.execution.identity import tool_versions
from qbkit.stacks.toolchains.apt import private_apt
from qbkit.stacks.toolchains.build import run_tool

from . import golden_runs as golden

OVER_USR = 'mount -t overlay overlay -o lowerdir="$0":/usr /usr && exec "$@"'
MERGED = ("bin", "sbin", "lib")
"""Folders of Debian's packages that lie in /usr today."""


def unpack(suite: str, packages: Sequence[str], usr: Path) -> None:
    """Put the files that packages of a suite have in /usr into a folder."""
    with tempfile.TemporaryDirectory() as text:
        scratch, root = Path(text), Path(text) / "root"
        apt = {**os.environ, "APT_CONFIG": str(private_apt(scratch, suite)), "LC_ALL": "C"}
        run_tool(["apt-get", "update", "-q"], "the comparison", env=apt)
        run_tool(["apt-get", "download", "-q", *packages], "the comparison", env=apt, cwd=scratch)
        for package in scratch.glob("*.deb"):
            run_tool(["dpkg-deb", "-x", package, root], package.name)
        for source in (root / "usr", *(root / name for name in MERGED)):
            target = usr / source.name if source.name in MERGED else usr
            if source.exists():
                shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)


def put(usr: Path, place: str, what: str) -> None:
    """Put a copy of a folder into a place of ``usr``, or a link to a file of this machine."""
    (usr / place).parent.mkdir(parents=True, exist_ok=True)
    if Path(what).is_dir():
        shutil.copytree(what, usr / place)
    else:  # an interpreter finds its modules beside itself
        (usr / place).symlink_to(Path(what).resolve(strict=True))


def carry_out(names: Sequence[str], out: Path, usr: Path) -> None:
    """Carry out golden runs in a process of its own that sees this folder over /usr."""
    out.mkdir()
    # The file behind the virtual environment's link, which may lead to a Python that is replaced.
    python = [os.path.realpath(sys.executable), "-m", "tests.other_tools", "--keep", str(out)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(Path.cwd()), *sys.path]))}
    argv = ["unshare", "--mount", "sh", "-ec", OVER_USR, str(usr), *python, *names]
    subprocess.run(argv, env=env, check=True)


def goodput_mbps(ds: xr.Dataset) -> np.ndarray:
    """The mean goodput of each flow, shape (flow,)."""
    return ds["goodput_mbps"].mean("time").to_numpy()


def compare(names: Sequence[str], before: Path, after: Path) -> None:
    """Print what moved in each run, and by how much the goodput of its flows did."""
    moved, changes = 0, []
    for name in names:
        pair = [xr.load_dataset(folder / f"{name}.nc") for folder in (before, after)]
        changed = golden.moved(*(golden.digests(ds) for ds in pair))
        here, there = (goodput_mbps(ds) for ds in pair)
        change = float(np.nanmax(np.abs(there - here)))
        changes.append(change)
        moved += bool(changed)
        print(f"{name}: {len(changed)} variables moved, the goodput by {change:.2f} Mbit/s")
    median, most = np.nanmedian(changes), np.nanmax(changes)
    print(
        f"{moved} of {len(names)} runs moved; goodput: median {median:.2f}, most {most:.2f} Mbit/s"
    )


def main() -> None:
    """Carry out the golden runs with and without the other versions, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", default="bookworm-backports", help="a suite of Debian")
    parser.add_argument("--packages", nargs="+", default=[], help="packages of the suite")
    parser.add_argument("--put", nargs="+", default=[], metavar="PLACE=FILE")
    parser.add_argument("--keep", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", help="golden runs; by default all that are no imports")
    given = parser.parse_args()
    runs = {n for n, run in golden.golden_runs().items() if "imported" not in run}
    names = given.names or sorted(runs)
    if given.keep:
        print(f"versions: {tool_versions()}", flush=True)
        for _ in golden.carried_out(names, given.keep):
            pass
        return
    with tempfile.TemporaryDirectory() as text:
        folder, usr = Path(text), Path(text) / "usr"
        (folder / "none").mkdir()
        usr.mkdir()
        if given.packages:
            unpack(given.suite, given.packages, usr)
        for pair in given.put:
            put(usr, *pair.split("=", 1))
        carry_out(names, folder / "before", folder / "none")
        carry_out(names, folder / "after", usr)
        compare(names, folder / "before", folder / "after")


if __name__ == "__main__":
    main()
