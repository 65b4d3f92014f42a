"""Controllers of this package on aioquic: BBR, CUBIC and Reno with knobs for case studies."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from qbkit.errors import SpecError
from qbkit.stacks.aioquic import AioQuic
from qbkit.stacks.base import Options, option_words
from qbkit.stacks.build import fingerprint
from qbkit.stacks.cca.knobs import CONTROLLERS, KNOBS, read_knobs
from qbkit.stacks.registry import register

PACKAGE = Path(__file__).parent / "cca"
MOUNT = "/run/qb/stacks/qbkit"


class QbkitCca(AioQuic):
    """aioquic and its driver, with the controllers of `qbkit.stacks.cca` in place of its own."""

    name: ClassVar[str] = "qbkit"
    color: ClassVar[str] = "#c71585"
    source: ClassVar[str] = "controllers of this package, on aioquic"
    tells: ClassVar[tuple[str, ...]] = (*AioQuic.tells, "lost_packets")
    options: ClassVar[dict[str, str]] = {
        **{name: knob.what for name, knob in KNOBS.items()},
        **AioQuic.options,
    }

    def controllers(self) -> tuple[str, ...]:
        """Those of `qbkit.stacks.cca`."""
        return CONTROLLERS

    def version(self) -> str:
        """Of aioquic, of its driver, and of the controllers."""
        return f"{super().version()}, controllers {fingerprint(PACKAGE.glob('*.py'))}"

    def program(self) -> list[str]:
        """aioquic's interpreter, with another module."""
        return [*super().program()[:-1], PACKAGE.name]

    def mounts(self) -> dict[str, Path]:
        """aioquic's, and the controllers."""
        return {**super().mounts(), f"{MOUNT}/{PACKAGE.name}": PACKAGE}

    def env(self) -> dict[str, str]:
        """aioquic's, with one more place to import from."""
        env = super().env()
        return {**env, "PYTHONPATH": f"{MOUNT}:{env['PYTHONPATH']}"}

    def send_argv(self, *, controller: str, options: Options, **how: Any) -> list[str]:
        """As for every stack; SpecError for a knob that this controller has not, or a bad value."""
        words = option_words({k: v for k, v in options.items() if k not in AioQuic.options})[1::2]
        try:
            read_knobs(words, controller)
        except ValueError as error:
            raise SpecError(str(error)) from None
        return super().send_argv(controller=controller, options=options, **how)


register(QbkitCca())
