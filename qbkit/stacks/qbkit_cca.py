"""The controllers of `qbkit.cca` on aioquic: BBR, CUBIC, Reno … and those of users."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import qbkit.cca
from qbkit.cca import shipped
from qbkit.cca.names import builtin, builtin_names
from qbkit.cca.options import Option, read_options
from qbkit.cca.own import registry
from qbkit.cca.own.source import with_files
from qbkit.errors import SpecError
from qbkit.stacks.aioquic import AioQuic
from qbkit.stacks.base import Options, Transfer, option_words
from qbkit.stacks.registry import register
from qbkit.stacks.toolchains.build import fingerprint
from qbkit.suggestions import did_you_mean

CARRIER = Path(__file__).parent / "drivers/cca_flow"
CONTROLLERS = Path(qbkit.cca.__file__).parent
MOUNT = "/run/qb/stacks/qbkit"


def all_options() -> dict[str, Option]:
    """Options of all built-in controllers, by name."""
    found: dict[str, Option] = {}
    for name in builtin_names():
        found |= builtin(name).all_options()
    return found


class QbkitCca(AioQuic):
    """aioquic and its driver, with the controllers of `qbkit.cca` in place of its own."""

    name = "qbkit"
    source = "controllers of this package, on aioquic"
    bulk_only = ("fq-detect",)  # it probes with two connections
    ip6 = False  # its ECN is that of IPv4
    package = CARRIER.name
    reports = (*AioQuic.reports, "lost_packets")
    options: ClassVar[dict[str, str]] = {
        **{name: option.what for name, option in all_options().items()},
        **AioQuic.options,
    }

    def controllers(self) -> tuple[str, ...]:
        """The built-in controllers of `qbkit.cca`, and those of other packages."""
        return registry.installed_names()

    def check(self, controller: str, options: Options, source: str | None) -> None:
        """As for every stack, and for a controller with its source."""
        if source is None and controller not in builtin_names():
            names = registry.names()
            raise SpecError(
                f"qbkit has no controller {controller!r}{did_you_mean(controller, names)}; it has "
                f"{', '.join(names)}, and one of yours where its cell ran in this Python, or a "
                "package brings it by an entry point of the group qbkit.controllers"
            )
        self._read_options(controller, options, source)

    def surveyed(self) -> tuple[str, ...]:
        """The three that every stack has."""
        return ("cubic", "reno", "bbr")

    def version(self) -> str:
        """Versions of aioquic, its driver, our driver around that, and the controllers."""
        carrier = fingerprint(CARRIER.glob("*.py"))
        # The controllers of a user are read on this machine: own/ does not run in the guest.
        in_guest = [f for f in CONTROLLERS.rglob("*.py") if f.parent.name != "own"]
        return f"{super().version()}, controllers {fingerprint(in_guest, carrier)}"

    def packages(self) -> dict[str, Path]:
        """aioquic's packages, our driver, and the controllers as the package ``qbkit.cca``."""
        return {
            **super().packages(),
            f"{MOUNT}/{CARRIER.name}": CARRIER,
            f"{MOUNT}/qbkit/cca": CONTROLLERS,
        }

    def sources_at_hand(self) -> list[Path]:
        """The controllers."""
        return [CONTROLLERS]

    def modules(self) -> tuple[str, ...]:
        """aioquic's modules, our driver, and the controllers."""
        files = (name.replace("-", "_") for name in builtin_names())
        controllers = (f"qbkit.cca.builtin.{file}" for file in files)
        return (*super().modules(), f"{CARRIER.name}.__main__", *controllers)

    def env(self) -> dict[str, str]:
        """aioquic's environment, with one more folder to import from."""
        env = super().env()
        return {**env, "PYTHONPATH": f"{MOUNT}:{env['PYTHONPATH']}"}

    def receiver_options(self, controller: str, options: Options) -> Options:
        """Announce the second connection of fair-queuing detection."""
        return {**options, "companion": True} if controller == "fq-detect" else options

    def send_argv(self, transfer: Transfer) -> list[str]:
        """As for every stack, with the source of a user's controller.

        Raises SpecError if a file that it opens is another one than when its flow was made.
        """
        source = transfer.source
        if source and with_files(source) != source:
            raise SpecError(
                f"a file that controller {transfer.controller!r} opens is not as when its flow was "
                "made; make the flow and its experiment again"
            )
        self._read_options(transfer.controller, transfer.options, source)
        command = super().send_argv(transfer)
        return [*command, "--source", shipped.pack(source)] if source else command

    def _read_options(self, controller: str, options: Options, source: str | None) -> None:
        """Check the options; raises SpecError for an unknown option or a bad value."""
        words = option_words({k: v for k, v in options.items() if k not in AioQuic.options})[1::2]
        known = registry.find(controller, source).all_options()
        try:
            read_options(words, known, f"qbkit:{controller}")
        except ValueError as error:
            raise SpecError(str(error)) from None


register(QbkitCca())
