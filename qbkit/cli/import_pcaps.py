"""``qbkit import-pcaps``: captures of both sides of a queue, made elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from qbkit.cli import options
from qbkit.cli.output import print_run


@click.command("import-pcaps")
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--flow", "flows", multiple=True, required=True, metavar="PORT=LABEL")
@click.option(
    "--sender",
    multiple=True,
    help="IP address that sends the data; repeatable. [default: who sends most bytes of a port]",
)
@click.option("--rtt-ms", type=float, help="Base RTT. [default: that of the handshakes]")
@click.option("--propagation-ms", type=float, default=0.0, help="Delay between the captures.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="File to write.")
@options.force
@options.as_json
def command(
    before: Path,
    after: Path,
    flows: tuple[str, ...],
    out: Path,
    force: bool,
    as_json: bool,
    **params: Any,
) -> None:
    """Turn captures of both sides of a queue, made elsewhere, into a run dataset."""
    from qbkit import store, traces

    named = {}
    for text in flows:
        port, equals, label = text.partition("=")
        if not (equals and label and port.isdigit()):
            raise click.BadParameter(f"{text!r} is not PORT=LABEL", param_hint="--flow")
        named[int(port)] = label
    if not force:
        store.require_free(out)
    sender = list(params.pop("sender"))
    dataset = traces.read_pcaps(before, after, flows=named, sender=sender, **params)
    store.save_run(dataset, out)
    print_run(store.load_run(out), as_json)
