"""Golden runs: the SHA-256 of each data variable of short experiments, kept in the tree.

``python -m tests.golden_runs --record [NAME …]`` writes ``tests/golden/digests.json`` again, for
all runs or for those named; ``tests/test_golden.py`` compares.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import xarray as xr
import yaml

from qbkit.execution.runner import kept_folder, run
from qbkit.execution.web.load import run_web
from qbkit.measurement import VERSION
from qbkit.spec import Experiment
from qbkit.spec.presets import fields_of
from qbkit.spec.web import WebLoad
from qbkit.store.digests import digests, moved
from qbkit.testbed.plan import FIRST_PORT
from qbkit.traces import read_pcaps

FOLDER = Path(__file__).parent / "golden"
DIGESTS = FOLDER / "digests.json"
ADVICE = (
    "if the change is meant to change results, raise VERSION in qbkit/measurement.py and record "
    "again (CONTRIBUTING.md); otherwise find the cause"
)


def document() -> dict[str, Any]:
    """runs.yaml."""
    return yaml.safe_load((FOLDER / "runs.yaml").read_text())


def golden_runs() -> dict[str, dict[str, Any]]:
    """The runs of runs.yaml by name, with the defaults filled in where they are experiments."""
    listed = document()
    return {name: _with(listed["defaults"], given) for name, given in listed["runs"].items()}


def _with(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    if "imported" in given:
        return dict(given)
    if "web" in given:
        return {"web": {"bottleneck": defaults["bottleneck"], **given["web"]}}
    link = {**defaults["bottleneck"], **given.get("bottleneck", {})}
    if "preset" in link:  # whose schedules stay: here the defaults only size the buffer
        link = {**fields_of(link.pop("preset")), **link}
    return {**defaults, **given, "bottleneck": link}


def result(given: Mapping[str, Any], out: Path) -> xr.Dataset:
    """Carry out one of `golden_runs` anew, in virtual time; its file is ``out``."""
    if "web" in given:
        return run_web(WebLoad(**given["web"]), out=out)
    if "imported" in given:
        experiment = Experiment(**golden_runs()[given["imported"]])
        run(experiment, out=out, keep="pcap")
        kept = kept_folder(out)
        names = {FIRST_PORT + i: label for i, label in enumerate(experiment.labels)}
        return read_pcaps(kept / "before.pcap", kept / "after.pcap", flows=names)
    return run(Experiment(**given), out=out)


def vector_units() -> str:
    """The type of processor, as far as results are known to depend on it."""
    words = set(Path("/proc/cpuinfo").read_text().split())
    return next((unit for unit in ("avx512f", "avx2") if unit in words), "neither")


def facts(ds: xr.Dataset) -> dict[str, Any]:
    """What a golden run is recorded with: the versions that it depends on."""
    versions = json.loads(ds.attrs["stack_versions"])
    return {"kernel": ds.attrs["kernel_version"], "stacks": versions, "processor": vector_units()}


def recorded() -> dict[str, Any]:
    """The document of digests.json."""
    return json.loads(DIGESTS.read_text())


def carried_out(names: Iterable[str], folder: Path) -> Iterator[tuple[str, xr.Dataset]]:
    """The runs of these names, run again, as many at a time as there are processors."""
    runs = golden_runs()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = {n: pool.submit(result, runs[n], folder / f"{n}.nc") for n in names}
        for name, future in done.items():
            yield name, future.result()


def record(names: Iterable[str]) -> None:
    """Carry out the runs of these names, and write their digests beside those of the others."""
    known = recorded()["runs"] if DIGESTS.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        for name, ds in carried_out(names, Path(folder)):
            found = {**facts(ds), "sha256": digests(ds)}
            changed = moved(known[name]["sha256"], found["sha256"]) if name in known else ["new"]
            print(f"{name}: {', '.join(changed) or 'nothing moved'}")
            known[name] = found
    kept = {name: known[name] for name in golden_runs() if name in known}
    DIGESTS.write_text(json.dumps({"measurement_version": VERSION, "runs": kept}, indent=1) + "\n")


def main() -> None:
    """Record the runs named on the command line, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", nargs="*", metavar="NAME", required=True)
    names = parser.parse_args().record or list(golden_runs())
    if unknown := set(names) - golden_runs().keys():
        parser.error(f"runs.yaml has no run {', '.join(sorted(unknown))}")
    record(names)


if __name__ == "__main__":
    main()
