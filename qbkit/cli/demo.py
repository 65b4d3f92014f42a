"""``make demo``: the envelope notebook, on real flows of real stacks in virtual time."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from qbkit import stacks, store
from qbkit.errors import QbkitError
from qbkit.execution import notebooks

RESULTS = Path("results/demo")
REFERENCE = "tcp:cubic"


def main() -> int:
    """Execute notebook 01 through papermill; print the verdict and where the files are."""
    ready = [s.name for s in stacks.all_stacks() if s.status().ready]
    test = next(f"{name}:cubic" for name in ("quic-go", "aioquic", "tcp") if name in ready)
    started = time.monotonic()
    print(
        f"{test} against {REFERENCE}, 20 Mbit/s, 50 ms, 1 BDP, 5 seeds of 120 virtual seconds "
        "(1 to 3 minutes the first time)",
        flush=True,
    )
    parameters = {"test": test, "reference": REFERENCE, "verdict_file": str(_verdict().resolve())}
    try:
        executed = notebooks.execute("01", RESULTS, parameters)
        page = notebooks.to_html(executed)
    except QbkitError as error:
        print(f"qbkit: {error}", file=sys.stderr)
        return error.exit_code
    _report(json.loads(_verdict().read_text()), executed, page, time.monotonic() - started)
    return 0


def _verdict() -> Path:
    RESULTS.mkdir(parents=True, exist_ok=True)
    return RESULTS / "verdict.json"


def _report(verdict: dict[str, Any], executed: Path, page: Path, seconds: float) -> None:
    print(verdict["verdict"])
    for warning in verdict["warnings"]:
        print(f"warning: {warning}", file=sys.stderr)
    print(f"datasets      {store.default_folder()}")
    print(f"notebook      {executed}")
    print(f"HTML          {page}")
    print(f"took          {seconds:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
