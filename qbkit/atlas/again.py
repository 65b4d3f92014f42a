"""The command that makes a published number again."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote
from typing import Any

from qbkit.atlas.published import ConformanceSweep, PublishedSweep, Setting

REPRODUCE = "qbkit reproduce {}/"
"""How each command begins; the site has the name of its own folder in the place of ``data``."""
OPTIONS = ("rate_mbps", "rtt_ms", "buffer_bdp")
"""Fields of the link that have an option of ``qbkit reproduce``."""
MOST_SAMPLED, SAMPLE_S = 20, 130.0


def sweep_again(sweep: PublishedSweep) -> str:
    """A sample of a sweep against what is published, and the command of the whole sweep."""
    command, _, publish = str(sweep.facts["command"]).partition(", then ")
    publish = publish.replace(" FOLDER)", " 'FOLDER')")  # it runs as it is copied
    whole = f'{command}\npython -c "import qbkit as qb; {publish}"' if publish else command
    return f"{_reproduce(sweep)} --sample {sample_size(sweep.facts)}\n{whole}"


def sample_size(facts: Mapping[str, Any]) -> int:
    """As many runs of a sweep as take two processor minutes, from 1 to 20."""
    part = SAMPLE_S / max(SAMPLE_S, 3600 * facts["processor_hours"])
    return max(1, min(MOST_SAMPLED, int(part * facts["runs"])))


def cell_again(sweep: ConformanceSweep, name: str, setting: Setting) -> str:
    """The trials of one implementation in one setting, against what is published."""
    return f"{_reproduce(sweep)} --flow {quote(name)}{_where(setting)}"


def pair_again(sweep: PublishedSweep, pair: list[str], setting: Setting) -> str:
    """The trials of two implementations in one setting, against what is published."""
    first, second = map(quote, pair)
    return f"{_reproduce(sweep)} --flow {first} --where against={second}{_where(setting)}"


def inference_again(name: str) -> str:
    """The inference of the parameters from lone flows, against what is published."""
    return f"qbkit reproduce data/parameters.csv --flow {quote(name)}"


def releases_again(stack: str) -> str:
    """Some of the releases of a stack, against what is published."""
    return f"qbkit reproduce data/releases --flow {stack} --sample 3"


def run_again(name: str) -> str:
    """The lone run of an implementation, against what is published."""
    return f"qbkit reproduce data/gallery --flow {quote(name)}"


def _reproduce(sweep: PublishedSweep) -> str:
    return f"qbkit reproduce data/{quote(sweep.name)}.yaml"


def _where(setting: Setting) -> str:
    """The options that choose a setting."""
    words = []
    for field, value in setting.items():
        name = field.removeprefix("bottleneck.")
        option = f" --{name.replace('_', '-')} " if name in OPTIONS else f" --where {name}="
        words.append(option + (f"{value:g}" if isinstance(value, int | float) else quote(value)))
    return "".join(words)
