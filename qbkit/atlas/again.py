"""The command or the expression that makes a published number again."""

from __future__ import annotations

from qbkit.atlas.inferred import LINK, Inferred
from qbkit.atlas.published import ConformanceSweep, PublishedStudy, PublishedSweep, Setting
from qbkit.spec import Experiment


def sweep_again(sweep: PublishedSweep) -> str:
    """The command of a whole sweep."""
    command, _, publish = str(sweep.facts["command"]).partition(", then ")
    return f'{command}\npython -c "import qbkit as qb; {publish}"' if publish else command


def cell_again(sweep: ConformanceSweep, name: str, setting: Setting) -> str:
    """The study of one implementation in one setting, with the runs of the sweep."""
    experiment = sweep.experiment([name, sweep.reference], setting, sweep.seeds[0])
    return _study("conformance_study", name, sweep.reference, experiment, len(sweep.seeds))


def study_again(published: PublishedStudy) -> str:
    """The study, with the runs that were published."""
    study, experiment = published.study, published.experiment
    test = experiment.flows[0].text
    return _study("conformance_study", test, study.reference, experiment, len(study.tests))


def explanation_again(published: PublishedStudy) -> str:
    """The inference of the parameters; its flows start at random times."""
    experiment = published.experiment.model_copy(update={"start_window_s": None})
    test, reference = experiment.flows[0].text, published.study.reference
    return _study("explain", test, reference, experiment, len(published.study.tests))


def inference_again(inferred: Inferred) -> str:
    """The inference of the parameters from lone flows."""
    experiment = inferred.experiment
    return (
        "qb.metrics.infer([\n    qb.Experiment(\n"
        f"        bottleneck={_bottleneck(experiment)},\n"
        f'        flows=["{experiment.flows[0].text}"], duration_s={experiment.duration_s:g}, '
        f"seed=seed,\n    ).run()\n    for seed in range(1, {inferred.seeds + 1})\n])"
    )


def run_again(experiment: Experiment) -> str:
    """The command of one run."""
    link = experiment.bottleneck
    flows = " ".join(f"'{f.text}'" if "?" in f.text else f.text for f in experiment.flows)
    words = [
        f"qbkit run {flows} --rate-mbps {link.rate_mbps:g} --rtt-ms {link.rtt_ms:g}",
        f"--buffer-bdp {link.buffer_bdp:g} --duration-s {experiment.duration_s:g}",
        f"--seed {experiment.seed}",
    ]
    if experiment.start_window_s is not None:
        words.append(f"--start-window-s {experiment.start_window_s:g}")
    return " ".join(words)


def _study(call: str, test: str, reference: str, experiment: Experiment, seeds: int) -> str:
    start = experiment.start_window_s
    window = "" if start is None else f", start_window_s={start:g}"
    return (
        f'qb.{call}(\n    "{test}", "{reference}", bottleneck={_bottleneck(experiment)},\n'
        f"    duration_s={experiment.duration_s:g}, seeds={seeds}{window},\n)"
    )


def _bottleneck(experiment: Experiment) -> str:
    link = experiment.bottleneck
    fields = {name: getattr(link, name) for name in LINK}
    fields |= link.model_dump(mode="json", exclude_defaults=True)
    given = ", ".join(f"{name}={value!r}" for name, value in fields.items())
    return f"qb.Bottleneck({given})"
