"""Build many stacks in parallel, as far as processors and memory allow."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from qbkit.errors import QbkitError
from qbkit.stacks.base import Say, Stack

MEMORY_OF_A_BUILD_BYTES = 3 << 30
"""Peak memory of the largest builds (BoringSSL, msquic), with a margin."""


def build_all(stacks: Sequence[Stack], say: Say) -> Iterator[tuple[Stack, str]]:
    """Yield each stack when it is done, and the sentence that says why it is not ready, or ""."""
    with ThreadPoolExecutor(_builds_at_once()) as pool:
        started = {pool.submit(_build, stack, say): stack for stack in stacks}
        for done in as_completed(started):
            yield started[done], done.result()


def _build(stack: Stack, say: Say) -> str:
    begin = time.monotonic()
    try:
        was_ready = stack.status().ready
        stack.build(say)
    except QbkitError as error:
        return str(error)
    if not was_ready:
        say(f"built {stack.name} in {time.monotonic() - begin:.0f} s")
    return ""


def _builds_at_once() -> int:
    free_bytes = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(len(os.sched_getaffinity(0)), free_bytes // MEMORY_OF_A_BUILD_BYTES))
