"""The stacks as a table, for ``qbkit stacks``, the documentation and notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from qbkit import markdown
from qbkit.stacks.base import ServingStack, Stack
from qbkit.stacks.registry import all_stacks, built_releases, get

if TYPE_CHECKING:
    import pandas as pd


def list_stacks() -> pd.DataFrame:
    """The stacks and the built releases, one row each, with the columns of `stack_rows`."""
    import pandas as pd

    return pd.DataFrame([*stack_rows(), *release_rows()])


def stack_rows() -> list[dict[str, Any]]:
    """One row per stack: its name and controllers, versions, what it lacks, options and source."""
    return [_row(stack) for stack in sorted(all_stacks(), key=lambda s: (s.name != "tcp", s.name))]


def release_rows() -> list[dict[str, Any]]:
    """The same for each release that is built here; surveys of all stacks leave releases out."""
    return [_row(stack) for stack in built_releases()]


def _row(stack: Stack) -> dict[str, Any]:
    status = stack.status()
    return {
        "stack": stack.name,
        "controllers": list(stack.controllers()),
        "version": stack.version() if status.ready else None,
        "transport": (stack.transport() or None) if status.ready else None,
        "ready": status.ready,
        "reason": status.reason,
        "options": stack.options,
        "above": _above(stack),
        "source": stack.source,
    }


def _above(stack: Stack) -> list[str]:
    """What a flow can set above the stack's transport, beside the options."""
    found = [f"app={kind}" for kind in stack.apps]
    found += ["receive_window_kb"] if stack.offers_window else []
    found += ["read_mbps"] if stack.reads_slowly else []
    found += ["role=server"] if stack.serves or isinstance(stack, ServingStack) else []
    return found + (["resume"] if stack.resumes else [])


def markdown_table() -> str:
    """The columns that are the same on every machine, as a Markdown table."""
    rows = []
    for row in stack_rows():
        options = ", ".join(_option(get(row["stack"]), name) for name in row["options"])
        controllers = ", ".join(row["controllers"])
        above = ", ".join(f"`{word}`" for word in row["above"])
        rows.append((row["stack"], controllers, options, above, row["source"]))
    head = ("stack", "controllers", "options", "above it", "from")
    return "\n".join(markdown.markdown_table(head, rows))


def _option(stack: Stack, name: str) -> str:
    """An option, and for which controllers it counts if not for all."""
    counting = stack.controllers_of(name)
    return f"`{name}`" if counting == stack.controllers() else f"`{name}` ({', '.join(counting)})"


def list_implementations(names: Sequence[str] = (), *, ready: bool = True) -> list[str]:
    """``stack:controller`` of every ready stack, or of ``names`` (a stack, or one of these).

    ``ready=False`` lists those of the other stacks, too.

    A stack stands for the controllers that surveys run: of the kernel's many, the papers' three.
    One that makes no bulk transfers (media) is listed only by its name. Raises SpecError for an
    unknown stack.
    """
    if not names:
        rows = (row for row in stack_rows() if row["ready"] or not ready)
        names = [row["stack"] for row in rows if get(row["stack"]).bulk]
    found: list[str] = []
    for name in names:
        stack, colon, _ = name.partition(":")
        known = [] if colon else get(stack).surveyed() or get(stack).controllers()
        found += [name] if colon else [f"{stack}:{controller}" for controller in known]
    return list(dict.fromkeys(found))
