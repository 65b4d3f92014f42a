"""``qbkit web URL ...``: HTTP/2 against HTTP/3 on the internet, from this machine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import qbkit as qb
from qbkit.cli import options
from qbkit.cli.output import print_json, print_table
from qbkit.json_words import plain_rows

FOR_URLS = {
    *("urls", "protocol", "repeat", "client", "insecure", "duration_s"),
    *("out", "force", "as_json"),
}
"""Options of the command that URLs take; ``--duration-s`` limits each load."""


def measure(
    context: click.Context,
    urls: Sequence[str],
    protocols: Sequence[Any],
    *,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> int:
    """Measure, store and print; 1 if a load failed.

    Raises UsageError for options of the emulation, and StoreError, before anything is measured, if
    ``out`` exists or cannot be written.
    """
    given = options.given(context)
    for name, flag in given.items():
        if name not in FOR_URLS:
            raise click.UsageError(
                f"{flag} is for loads in virtual time; URLs are loaded over this machine's own "
                "network, which qbkit does not change"
            )
    from qbkit.execution.runner import check_writable
    from qbkit.metrics.web.loads import url_differences
    from qbkit.store import require_free, require_run_name  # slow to import

    if out is not None:
        require_run_name(out)
        if not force:
            require_free(out)
        check_writable(out)
    names = {"client", "repeat"} & given.keys()
    loads = qb.measure_urls(
        urls,
        protocols=protocols,
        limit_s=context.params["duration_s"],
        verify=not context.params["insecure"],
        progress=not as_json,
        **{name: context.params[name] for name in names},
    )
    if out is not None:
        qb.save_run(loads, out)
    rows = plain_rows(url_differences(loads).to_dict("records"))
    failures = json.loads(loads.attrs["failures"])
    if as_json:
        print_json({"urls": rows, "failures": failures, "path": out and str(out)})
    else:
        print_table(rows)
    for failure in failures:
        click.echo(f"qbkit: {failure['reason']}", err=True)
    return int(bool(failures))
