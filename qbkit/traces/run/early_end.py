"""Connections that ended before their flow did: who ended them, when, and why.

A driver whose connection dies writes ``sender-end.json`` or ``receiver-end.json`` to its folder and
exits with status 3 (docs/howto/own-stack.md). For a program that dies without one, the agent does.
Names of codes are from RFC 9000, 20.1, RFC 9114, 8.1 and RFC 8446, 6.
"""

from __future__ import annotations

import json
import math
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from qbkit.errors import RunFailed
from qbkit.spec import Experiment
from qbkit.testbed import engines
from qbkit.traces.run.schema import Variable, variable

EARLY_END = "ended_s"
"""Variable of runs in which a connection ended before its flow did, and of no other run."""
ROLES = ("sender", "receiver")
WHO = {
    "sender": "the sender closed the connection",
    "receiver": "the receiver closed the connection",
    "timeout": "the connection timed out",
    "reset": "the connection was reset",
    "sender-program": "the sender's program ended",
    "receiver-program": "the receiver's program ended",
    "unknown": "the connection ended",
}
"""Who ended a connection → the same in words. A program that ended need not have closed it."""
PROGRAMS = ("sender-program", "receiver-program")
KINDS = ("transport", "application", "http3", "")
"""Which codes a code is one of; empty for a connection that ended without one."""
TRANSPORT = (
    *("NO_ERROR", "INTERNAL_ERROR", "CONNECTION_REFUSED", "FLOW_CONTROL_ERROR"),
    *("STREAM_LIMIT_ERROR", "STREAM_STATE_ERROR", "FINAL_SIZE_ERROR", "FRAME_ENCODING_ERROR"),
    *("TRANSPORT_PARAMETER_ERROR", "CONNECTION_ID_LIMIT_ERROR", "PROTOCOL_VIOLATION"),
    *("INVALID_TOKEN", "APPLICATION_ERROR", "CRYPTO_BUFFER_EXCEEDED", "KEY_UPDATE_ERROR"),
    *("AEAD_LIMIT_REACHED", "NO_VIABLE_PATH", "VERSION_NEGOTIATION_ERROR"),
)
"""QUIC's transport errors from 0x0 on."""
CRYPTO = 0x100
"""A TLS alert is a transport error from here to 0x1ff."""
HTTP3 = (
    *("H3_NO_ERROR", "H3_GENERAL_PROTOCOL_ERROR", "H3_INTERNAL_ERROR"),
    *("H3_STREAM_CREATION_ERROR", "H3_CLOSED_CRITICAL_STREAM", "H3_FRAME_UNEXPECTED"),
    *("H3_FRAME_ERROR", "H3_EXCESSIVE_LOAD", "H3_ID_ERROR", "H3_SETTINGS_ERROR"),
    *("H3_MISSING_SETTINGS", "H3_REQUEST_REJECTED", "H3_REQUEST_CANCELLED"),
    *("H3_REQUEST_INCOMPLETE", "H3_MESSAGE_ERROR", "H3_CONNECT_ERROR", "H3_VERSION_FALLBACK"),
)
"""HTTP/3's errors from `HTTP3_FIRST` on."""
HTTP3_FIRST = 0x100
GAVE_UP = "nine tenths of limit_s"
"""Says a client of a web load whose time is over; it then ends its browser, which logs that end."""
STATUS = "status "
"""The name of an exit status; a signal has its own."""
SHELL_SIGNAL = 128
"""A shell adds this to the signal that killed its command."""


@dataclass(frozen=True)
class EarlyEnd:
    """How a connection ended before its time."""

    ended_s: float
    """When, s since the start of the experiment."""
    by: str
    """A key of `WHO`."""
    code: int | None
    """Error code; of a program that ended, its exit status or the signal that killed it."""
    name: str
    """Name of the code; empty without a code."""
    reason: str
    """What the end that closed the connection, or the driver, said."""

    @property
    def how(self) -> str:
        """Who ended it and why, in words."""
        code = "" if self.code is None else f"{self.code:#x}"
        word = f"{self.name} ({code})" if self.name and code else self.name or code
        word = self.name if self.by in PROGRAMS else word
        what = f"{WHO[self.by]} with {word}" if word else WHO[self.by]
        return f"{what}: {engines.printable(self.reason)}" if self.reason else what

    def is_the_doing_of(self, role: str) -> bool:
        """Whether the end of this role closed the connection, or was killed."""
        killed = self.name.startswith("SIG") and self.by == f"{role}-program"
        return killed or self.by == role

    def sentence(self, label: str) -> str:
        """The warning of a run in which it happened."""
        return f"{label} ended at {self.ended_s:.1f} s: {self.how}"


def early_ends(
    folder: Path, experiment: Experiment, result: Mapping[str, Any]
) -> list[EarlyEnd | None]:
    """How the connection of each flow ended; None where it lasted as long as the flow.

    ``folder`` is the raw folder of a run with this ``result``. Of two reports, that of the end that
    closed the connection or was killed counts, else the earlier one; the time is the earlier one.
    Of a program that ended without a report, its own log or its last words say more. Raises
    RunFailed for a report that breaks the contract, and for a sender that a user's controller
    ended: its mistake is what the run is to show.
    """
    found: list[EarlyEnd | None] = []
    t0_ns = int(result["t0_ns"])
    for i, flow in enumerate(experiment.flows):
        over_s = flow.stop_s if flow.stop_s is not None else experiment.duration_s
        paths = {role: folder / f"flows/{i}/{role}-end.json" for role in ROLES}
        ends = {r: _read(path, t0_ns) for r, path in paths.items() if path.exists()}
        early = {r: end for r, end in ends.items() if end.ended_s < over_s}
        if not early:
            found.append(None)
            continue
        known = {r: end for r, end in early.items() if end.by != "unknown"} or early
        best = min(known, key=lambda r: (not known[r].is_the_doing_of(r), known[r].ended_s))
        end = _explained(known[best], best, paths[best].parent, result["flows"][i])
        if flow.source and end.by == "sender-program":
            raise RunFailed(
                f"flow {i + 1} ({flow.name}) ended at {end.ended_s:.1f} s: {end.how} (what a "
                "controller sets must be finite numbers, its state a text)"
            )
        # Some stacks report an end when they forget the connection, which is some timeouts later.
        found.append(replace(end, ended_s=min(end.ended_s for end in early.values())))
    return found


def _explained(end: EarlyEnd, role: str, folder: Path, flow: Mapping[str, Any]) -> EarlyEnd:
    """An end that a program did not report, with what its own log or its last words say of it."""
    reported = end.by not in PROGRAMS or not end.name
    killed = end.name.startswith("SIG")  # what the other end logs is its consequence
    if reported or killed or GAVE_UP in end.reason:
        return end
    # Few runs need it, and it loads ijson.
    from qbkit.traces.run.own_words import end_by_logs, end_by_words

    report = end_by_logs(folder, flow["starts"]) or end_by_words(end.reason, role)
    return end if report is None else _of_report(report, end.ended_s)


def _read(path: Path, t0_ns: int) -> EarlyEnd:
    """The report of one end."""
    what = f"{path.parent.name}/{path.name} of a driver"
    try:
        report = json.loads(path.read_text(errors="replace"))
        ended_s = (int(report["time_ns"]) - t0_ns) / 1e9
        if "status" in report:
            return replace(_of_program(int(report["status"]), path), ended_s=ended_s)
        end, by, kind = _of_report(report, ended_s), report["by"], report.get("kind", "")
    except (ValueError, TypeError, KeyError, AttributeError):
        raise RunFailed(f"{what} cannot be read; docs/howto/own-stack.md shows one") from None
    if by not in WHO or kind not in KINDS:
        raise RunFailed(
            f"{what} says that {by!r} ended the connection with a code of the kind {kind!r}; "
            f"allowed are {', '.join(WHO)}, and the kinds {', '.join(filter(None, KINDS))}"
        )
    return end


def _of_program(status: int, path: Path) -> EarlyEnd:
    """The end of a program of which the agent reports the exit status alone."""
    role = path.name.removesuffix("-end.json")
    number = -status if status < 0 else status - SHELL_SIGNAL
    try:
        code, name = number, signal.Signals(number).name
    except ValueError:
        code, name = status, f"{STATUS}{status}"
    _, reason = engines.last_words(path.with_name(f"{role}.log"))
    return EarlyEnd(0.0, f"{role}-program", code, name, reason)


def _of_report(report: Mapping[str, Any], ended_s: float) -> EarlyEnd:
    code = report.get("code")
    return EarlyEnd(
        ended_s,
        str(report["by"]),
        None if code is None else int(code),
        report.get("name") or code_name(report.get("kind", ""), code),
        " ".join(str(report.get("reason", "")).split()),
    )


def code_name(kind: str, code: int | None) -> str:
    """The name of an error code; empty for codes that have none.

    >>> code_name("transport", 0xA), code_name("transport", 0x178), code_name("http3", 0x102)
    ('PROTOCOL_VIOLATION', 'CRYPTO_ERROR', 'H3_INTERNAL_ERROR')
    """
    if code is None:
        return ""
    if kind == "transport" and CRYPTO <= code < CRYPTO + 256:
        return "CRYPTO_ERROR"
    names, first = (HTTP3, HTTP3_FIRST) if kind == "http3" else (TRANSPORT, 0)
    if kind in ("transport", "http3") and first <= code < first + len(names):
        return names[code - first]
    return "application error" if kind in ("application", "http3") else ""


def early_end_sentences(run: xr.Dataset) -> list[str]:
    """A sentence for each flow of a run whose connection ended before its flow did."""
    if EARLY_END not in run:
        return []
    found = []
    for i in np.flatnonzero(np.isfinite(run[EARLY_END].values)):
        row = {name: run[f"ended_{name}"].values[i] for name in ("s", "by", "code", "name")}
        code = None if np.isnan(row["code"]) else int(row["code"])
        reason = str(run["ended_reason"].values[i])
        end = EarlyEnd(float(row["s"]), str(row["by"]), code, str(row["name"]), reason)
        found.append(end.sentence(str(run["label"].values[i])))
    return found


def end_variables(ends: Sequence[EarlyEnd | None]) -> dict[str, Variable]:
    """How each flow ended early (NaN or empty: it did not); nothing where none did."""
    if not any(ends):
        return {}
    at_s = np.array([end.ended_s if end else math.nan for end in ends])
    codes = [math.nan if end is None or end.code is None else float(end.code) for end in ends]
    texts = {
        "ended_by": [end.by if end else "" for end in ends],
        "ended_name": [end.name if end else "" for end in ends],
        "ended_reason": [end.reason if end else "" for end in ends],
    }
    meanings = {
        "ended_by": "who ended the connection",
        "ended_name": "name of the error code",
        "ended_reason": "reason given for the end of the connection",
    }
    return {
        EARLY_END: variable("flow", at_s, "s", "end of a connection that ended before its flow"),
        "ended_code": variable("flow", np.array(codes), "1", "error code of the connection's end"),
        **{n: variable("flow", np.array(t, str), "1", meanings[n]) for n, t in texts.items()},
    }
