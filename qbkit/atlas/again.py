"""The command or the expression that makes a published number again."""

from __future__ import annotations

from qbkit.atlas.inferred import LINK, Inferred
from qbkit.atlas.published import ConformanceSweep, PublishedStudy, PublishedSweep, Setting
from qbkit.spec import Experiment

OPTIONS = ("rate_mbps", "rtt_ms", "buffer_bdp")
"""Fields of the link that have an option of ``qbkit reproduce``."""


def sweep_again(sweep: PublishedSweep) -> str:
    """A sample of a sweep against what is published, and the command of the whole sweep."""
    command, _, publish = str(sweep.facts["command"]).partition(", then ")
    whole = f'{command}\npython -c "import qbkit as qb; {publish}"' if publish else command
    return f"{_reproduce(sweep)} --sample 20\n{whole}"


def cell_again(sweep: ConformanceSweep, name: str, setting: Setting) -> str:
    """The trials of one implementation in one setting, against what is published."""
    return f"{_reproduce(sweep)} --flow {_quoted(name)}{_where(setting)}"


def pair_again(sweep: PublishedSweep, pair: list[str], setting: Setting) -> str:
    """The trials of two implementations in one setting, against what is published."""
    first, second = map(_quoted, pair)
    return f"{_reproduce(sweep)} --flow {first} --where against={second}{_where(setting)}"


def study_again(published: PublishedStudy) -> str:
    """The runs of a study, against what is published."""
    return f"qbkit reproduce data/{published.name}"


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


def run_again(name: str) -> str:
    """The lone run of an implementation, against what is published."""
    return f"qbkit reproduce data/gallery --flow {_quoted(name)}"


def _reproduce(sweep: PublishedSweep) -> str:
    return f"qbkit reproduce data/{sweep.name}.yaml"


def _where(setting: Setting) -> str:
    """The options that choose a setting."""
    words = []
    for field, value in setting.items():
        name = field.removeprefix("bottleneck.")
        option = f"--{name.replace('_', '-')} " if name in OPTIONS else f"--where {name}="
        words.append(
            f" {option}{value:g}" if isinstance(value, int | float) else f" {option}{value}"
        )
    return "".join(words)


def _quoted(flow: str) -> str:
    return f"'{flow}'" if "?" in flow else flow


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
