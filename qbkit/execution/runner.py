"""One experiment from spec to dataset: resolve, check, run, measure, store."""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qbkit import stacks, store, traces
from qbkit.arguments import as_path
from qbkit.errors import MISNAMED, SpecError, StoreError
from qbkit.execution.identity import Identity
from qbkit.execution.preflight import needs, require_room
from qbkit.execution.stand_ins import CANNOT_RUN, stand_ins
from qbkit.spec import Experiment, Flow
from qbkit.spec.flow import as_flow
from qbkit.stacks import ServingStack, Stack
from qbkit.stacks.variants.crafted import to_crafted
from qbkit.stacks.variants.exchanged import to_stack
from qbkit.stacks.variants.ip6 import with_ip6
from qbkit.testbed import engines
from qbkit.testbed.claims import claim_file
from qbkit.testbed.console import OnProgress, Usage
from qbkit.testbed.plan import make_plan, report_every_s
from qbkit.testbed.scratch import scratch_folder

if TYPE_CHECKING:
    import xarray as xr

KEEP = {"pcap": "*.pcap", "qlog": "flows"}
"""What `run` can keep → its files in the folder of a run."""
MOST_SHOWN = 100
SECONDS_PER_PACKET = 0.006
"""More than the slowest stack needs for a packet on a busy machine."""


def run(
    experiment: Experiment | Flow | str,
    *,
    engine: str | None = None,
    out: str | Path | None = None,
    keep: str | Sequence[str] = (),
    rerun: bool = False,
    force: bool = False,
    progress: bool = False,
    published: str | Path | None = None,
) -> xr.Dataset:
    """Run an experiment, or load the same run where it is stored; returns the run's dataset.

    A flow, or its text, stands for an experiment in which it is alone on the default link.
    ``engine`` is "virtual" (default), or "physical" or "host", which take real time. ``out`` is the
    file to write (default: in `store.default_folder`, named by the run's hash). ``keep`` is or
    holds "pcap" (both captures) and "qlog" (the log of each QUIC stack); they go to a folder beside
    the file. ``rerun`` runs even a stored experiment again; ``force`` overwrites ``out`` if it
    holds anything else than this run. ``published`` is a folder of published runs: where no engine
    works or a stack is not built, the run of the very same experiment there is returned, and a
    line says so.

    Raises SpecError, StackNotReady, EngineError, RunFailed or StoreError, each with one sentence. A
    failed run leaves no file that looks complete.
    """
    keep = (keep,) if isinstance(keep, str) or not isinstance(keep, Iterable) else tuple(keep)
    experiment = as_experiment(experiment)
    try:
        return _run(with_kept(experiment, keep), engine, out, keep, rerun, force, progress)
    except CANNOT_RUN as error:
        found = stand_ins({experiment.hash: error}, published)
        if not found:
            raise
        return found[experiment.hash]


def _run(
    experiment: Experiment,
    engine: str | None,
    out: str | Path | None,
    keep: tuple[str, ...],
    rerun: bool,
    force: bool,
    progress: bool,
) -> xr.Dataset:
    """`run` of an experiment, on this machine."""
    if out is not None:
        store.require_run_name(out)
    drivers = drivers_of(experiment)
    # Where nothing can run (Binder, a Mac), report the missing engine before a missing stack.
    chosen = engines.choose(engine)
    identity = Identity(chosen).of(experiment, drivers)
    path = as_path(out) if out is not None else store.path_of(identity["hash"])
    there, kept = reusable(path, identity["hash"], KEEP, keep)
    if there is not None and not rerun:
        return there
    check_writable(path)
    if out is not None and not force:
        store.require_free(path, experiment.hash)
    require_room([needs(experiment, chosen.name)], path.parent, chosen.name)
    with (
        _progress(experiment, progress) as on_progress,
        claim_file(path, lambda: on_progress(None)),
        scratch_folder() as folder,
    ):
        there, kept = reusable(path, identity["hash"], KEEP, keep)
        if there is not None and not rerun:
            return there  # another process has just made it
        measured = _measure(experiment, drivers, chosen, identity, folder, on_progress)
        from qbkit.traces.flow_index import with_flow_index  # slow to import

        dataset = with_flow_index(measured)
        with kept_files(folder / "run", path, [KEEP[word] for word in kept.union(keep)]):
            store.save_run(dataset, path)
    return dataset


def _measure(
    experiment: Experiment,
    drivers: list[Stack],
    engine: engines.Engine,
    identity: dict[str, Any],
    folder: Path,
    on_progress: OnProgress,
) -> xr.Dataset:
    """Execute an experiment in a folder, and build the dataset from the files it wrote there."""
    plan = make_plan(experiment, drivers, engine.name, engines.CAPTURE)
    silence_s = _silence_s(experiment)

    def report(at_s: float | None) -> None:
        # Not before the guest runs: a fork in the middle of an import upsets the lock of h5py.
        if at_s == 0:
            _import_meanwhile("qbkit.store.datasets")
        on_progress(at_s)

    result, usage = engines.carry_out(engine, plan, folder, experiment.seed, silence_s, report)
    attrs = {**identity, **cost(usage), "kernel_version": result["kernel_version"]}
    return traces.build(folder / "run", experiment, attrs)


def _import_meanwhile(module: str) -> None:
    """Import what a dataset needs while the guest runs, on another processor: half a second."""
    if "xarray" not in sys.modules:
        threading.Thread(target=import_module, args=(module,), daemon=True).start()


def as_experiment(experiment: Experiment | Flow | str) -> Experiment:
    """An experiment as it is, or the one in which a flow is alone; SpecError for anything else."""
    if isinstance(experiment, Experiment):
        return experiment
    if isinstance(experiment, Flow | str):
        return Experiment(flows=(as_flow(experiment),))
    what = repr(experiment)
    raise SpecError(
        f"cannot run {what if len(what) < MOST_SHOWN else type(experiment).__name__}; give an "
        "Experiment, or for a lone flow its text, such as 'tcp:cubic'"
    )


def kept_folder(path: Path) -> Path:
    """The folder for the captures and logs kept with a run file."""
    return path.with_suffix(".kept")


def with_kept(experiment: Experiment, keep: tuple[str, ...]) -> Experiment:
    """The experiment with qlog switched on in each stack that writes one, if it is kept."""
    if unknown := [str(word) for word in dict.fromkeys(keep) if word not in KEEP]:
        raise SpecError(f"cannot keep {', '.join(unknown)}; choose from {', '.join(KEEP)}")
    if "qlog" not in keep:
        return experiment
    flows = [
        flow.model_copy(update={"options": {**flow.options, "qlog": True}})
        if "qlog" in stacks.get(flow.stack).options
        else flow
        for flow in experiment.flows
    ]
    return experiment.model_copy(update={"flows": tuple(flows)})


def drivers_of(experiment: Experiment) -> list[Stack]:
    """The stack of each flow; raises SpecError for a controller or option that it lacks."""
    drivers = []
    for flow in experiment.flows:
        stack = stacks.get(flow.stack)
        stack.check(flow.controller, flow.options, flow.source)
        _require_possible(stack, flow)
        drivers.append(_driver(stack, flow, experiment.ip_version))
    return drivers


def _driver(stack: Stack, flow: Flow, ip_version: int) -> Stack:
    """The stack for a flow: for its role, for what is above its transport, and what is below."""
    if flow.receiver and flow.receiver.stack:
        return to_stack(stack, flow.receiver.stack)
    if flow.receiver:
        return to_crafted(stack, flow.controller, flow.receiver)
    above = (flow.app, flow.read_mbps, flow.receive_window_kb)
    app = any(given is not None for given in above)
    server = flow.role == "server" and not isinstance(stack, ServingStack)
    more = {"server": server, "app": app, "resume": flow.resume is not None}
    return with_ip6(stack, **more) if ip_version == 6 else stack.with_more(**more)


def _require_possible(stack: Stack, flow: Flow) -> None:
    """Raise SpecError for a role, or something above its transport, that a stack lacks."""
    app, is_server = flow.app, isinstance(stack, ServingStack)
    if app and app.kind not in stack.apps:
        others = f"; it has {', '.join(stack.apps)}" if stack.apps else ""
        raise SpecError(
            f"{stack.name} has no app {app.kind}{others}. "
            f"{_these(lambda s: app.kind in s.apps)} have it; or leave the app out"
        )
    if app and flow.controller in stack.bulk_only:
        raise SpecError(f"{flow.name} needs data without end; leave the app out")
    if flow.read_mbps is not None and not stack.reads_slowly:
        raise SpecError(
            f"{stack.name}'s receiver reads at once; {_these(lambda s: s.reads_slowly)} "
            "can read slowly, or leave out read_mbps"
        )
    if flow.receive_window_kb is not None and not stack.offers_window:
        raise SpecError(
            f"{stack.name}'s receiver chooses its window; {_these(lambda s: s.offers_window)} "
            "offer a given one, or leave out receive_window_kb"
        )
    if flow.resume and not stack.resumes:
        raise SpecError(
            f"{stack.name} has one connection in a flow; {_these(lambda s: s.resumes)} can have a "
            "second one that resumes, or leave out resume"
        )
    if flow.role == "server" and not (stack.serves or is_server):
        can = _these(lambda s: s.serves or isinstance(s, ServingStack))
        raise SpecError(f"{stack.name} sends as a client alone; {can} can be servers that send")
    if flow.role == "client" and is_server:
        raise SpecError(f"{stack.name} sends as a server alone; leave out role=client")


def _these(have: Callable[[Stack], bool]) -> str:
    return ", ".join(sorted(stack.name for stack in stacks.all_stacks() if have(stack)))


def namer(engine: str | None = None) -> Callable[[Experiment], str]:
    """A function from an experiment to the hash that names its run.

    Both raise as `run` does before it starts. Versions and programs are looked up once.
    """
    identity = Identity(engines.choose(engine))
    return lambda experiment: str(identity.of(experiment, drivers_of(experiment))["hash"])


def stored(path: Path, name: str) -> xr.Dataset | None:
    """The run with this name (its hash), if the file holds it."""
    if not path.exists():
        return None
    try:
        found = store.load_run(path)
    except (StoreError, OSError):
        return None
    return found if found.attrs.get("hash") == name else None


def check_writable(path: Path) -> None:
    """Raise StoreError, before minutes of work, if the result cannot be written."""
    try:
        is_folder = path.is_dir()
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise StoreError(
            f"cannot write to {path.parent}: {error.strerror}; choose another",
            refused=isinstance(error, MISNAMED),
        ) from None
    if is_folder:
        raise StoreError(
            f"{path} is a folder; give the name of a file, as in {path / 'run.nc'}", refused=True
        )


@contextmanager
def _progress(experiment: Experiment, wanted: bool) -> Iterator[OnProgress]:
    """A progress bar over the virtual seconds, if wanted."""
    if not wanted:
        yield lambda _: None
        return
    from qbkit.progress import bar as progress_bar

    title = " + ".join(flow.name for flow in experiment.flows[:4])
    form = "{l_bar}{bar}| {n:.0f}/{total:.0f} virtual s [{elapsed}<{remaining}]"
    with progress_bar(total=experiment.duration_s, desc=title, bar_format=form, leave=False) as bar:

        def report(at_s: float | None) -> None:
            waits = at_s is None
            bar.set_description(f"{title} waits for another run" if waits else title, refresh=False)
            bar.update(0 if at_s is None else at_s - bar.n)

        yield report
        report(experiment.duration_s)


def _silence_s(experiment: Experiment) -> float:
    """The longest time between two reports of a guest, in wall-clock seconds."""
    physical_s = report_every_s(experiment.duration_s)
    packets = experiment.most_data_mbps * 1e6 / 8 / 1500 * physical_s
    return 60.0 + physical_s + packets * SECONDS_PER_PACKET


def cost(usage: Usage) -> dict[str, Any]:
    """The attributes of a run that say what it cost, and when it ran."""
    return {
        "wall_s": round(usage.wall_s, 3),
        "cpu_s": round(usage.cpu_s, 3),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def reusable(
    path: Path, name: str, choices: Mapping[str, str], keep: Collection[str]
) -> tuple[xr.Dataset | None, set[str]]:
    """The stored run if it has all that ``keep`` names, and the keys of ``choices`` that it has.

    It has those (as in `KEEP`) whose files are beside it.
    """
    there = stored(path, name)
    if there is None:
        return None, set()
    folder = kept_folder(path)
    kept = {word for word, pattern in choices.items() if any(folder.glob(Path(pattern).name))}
    return (there if kept.issuperset(keep) else None), kept


@contextmanager
def kept_files(raw: Path, path: Path, patterns: Collection[str]) -> Iterator[None]:
    """Put the files of the patterns beside the run file that the block writes.

    They replace earlier ones, and are copied before the block, so that a full disk costs none.
    """
    target, part = kept_folder(path), path.with_suffix(".kept.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir()
        for found in (found for pattern in patterns for found in raw.glob(pattern)):
            copy = shutil.copytree if found.is_dir() else shutil.copy2
            copy(found, part / found.name)
        yield
        shutil.rmtree(target, ignore_errors=True)  # of another run, or of the same with less
        if patterns:
            part.rename(target)
    except OSError as error:
        raise StoreError(f"cannot keep captures beside {path}: {error.strerror}") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
