"""The flows: when their programs start and stop, and how each flow ended."""

import contextlib
import math
import os
import signal
import time

from programs import ENDED_WELL, ENV, GRACE_S, Program
from report import RunAborted, say

START, STOP, END, REPORT, NEW_RTT, ATTACK, NEW_LOSS = range(7)
"""What happens during the flows, in this order where times are the same."""


class Flows:
    """The programs of all flows: listeners first, then a starter each at its time.

    The sender starts a flow, or the receiver if the sender is a server.
    """

    def __init__(self, links, programs):
        self.links, self.plan, self.programs = links, links.plan, programs
        self.listeners, self.starters = [], {}
        self.attacker = None  # with attacks: what strikes

    def listen(self):
        """Start what waits for connections; returns when all are ready."""
        self.listeners = [self.start(flow, flow["listens"]) for flow in self.plan["flows"]]
        for program in self.listeners:
            program.wait_ready()

    def start(self, flow, role):
        """Start the sender or receiver of a flow."""
        folder = f"/run/qb/run/flows/{flow['index']}"
        os.makedirs(folder, exist_ok=True)
        program = Program(
            self.links.host(flow, role),
            flow.get(f"{role}_title") or f"the {role} of flow {flow['index'] + 1} ({flow['name']})",
            flow[f"{role}_argv"],
            f"{folder}/{role}.log",
            {**ENV, **flow["env"], **flow.get(f"{role}_env", {})},
        )
        self.programs.append(program)
        return program

    def run(self, t0_ns):
        """Start every flow at its time, stop those that must be stopped, watch them all."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        for at_s, kind, what in events(self.plan):
            if self.sleep_until(t0_ns + round(at_s * 1e9)):
                break
            if kind == START:
                self.starters[what["index"]] = self.start(what, what["starts"])
            elif kind == STOP and what["signalled"]:
                with contextlib.suppress(ProcessLookupError):
                    self.starters[what["index"]].process.send_signal(signal.SIGTERM)
            elif kind == REPORT:
                say(f"time {at_s:.3f}")
            elif kind == NEW_RTT:
                self.links.changes.set_rtt(self.links.net, self.plan, what)
            elif kind == NEW_LOSS:
                self.links.changes.set_loss(self.links.net, self.plan, what)
            elif kind == ATTACK:
                self.attacker.strike()

    def sleep_until(self, when_ns):
        """Sleep, and report programs that end before their time; RunAborted for the capture.

        Return whether the run is over, because all flows have ended and the plan ends with them.
        """
        exact = self.links.changes.exact_timers if "bursts" in self.plan else contextlib.nullcontext
        while (left := when_ns - time.time_ns()) > 0:
            with exact():
                signal.sigtimedwait({signal.SIGCHLD}, left / 1e9)
            for program in self.programs:
                code = program.poll()
                unexpected = code or program not in self.starters.values()
                if code is not None and unexpected:
                    program.require_end_of_flow()
            if self.plan.get("ends_early") and self.all_ended():
                return True
        return False

    def all_ended(self):
        """Whether every flow has started and its starter has ended."""
        started = len(self.starters) == len(self.plan["flows"])
        return started and all(p.poll() is not None for p in self.starters.values())

    def finish(self):
        """End all programs; return their exit states, one dictionary per flow."""
        found = []
        for flow, listener in zip(self.plan["flows"], self.listeners, strict=True):
            starter = self.starters[flow["index"]]
            code = self.end_starter(flow, starter, listener)
            exits = {flow["starts"]: code, flow["listens"]: listener.end()}
            for program, peer in ((starter, listener), (listener, starter)):
                ended_badly = program.poll() not in ENDED_WELL
                if ended_badly and not (program.lost_connection or peer.lost_connection):
                    raise RunAborted(program.how_it_ended())
            found.append({f"{role}_exit": code for role, code in exits.items()})
            found[-1] |= self.links.ways(flow["index"])
            for role in ("sender", "receiver"):
                found[-1][f"{role}_overflows"] = self.links.host(flow, role).udp_overflows()
            for key in ("starts", "port", "sender_ip", "receiver_ip", "window_bytes"):
                found[-1][key] = flow[key]
        return found

    def end_starter(self, flow, starter, listener):
        """End what started a flow; return its exit status.

        Raises RunAborted if it does not end, unless the other end closed the connection.
        """
        if flow["bytes"] is not None and starter.poll() is None:
            starter.process.send_signal(signal.SIGTERM)
        grace_s = self.plan.get("grace_s", GRACE_S)
        code = starter.wait(grace_s)
        if code is None:
            starter.process.kill()
            if not listener.lost_connection:
                raise RunAborted(f"{starter.role} still ran {grace_s:g} s after its time was over")
            code = starter.wait(GRACE_S)
        return code


def events(plan):
    """What happens when: (time, kind, flow, new RTT or loss), in order."""
    found = []
    for flow in plan["flows"]:
        found.append((flow["start_s"], START, flow))
        if flow["stop_s"] is not None:
            found.append((flow["stop_s"], STOP, flow))
    found.append((plan["duration_s"], END, None))
    every_s = plan["report_every_s"]
    reports = math.ceil(plan["duration_s"] / every_s)
    found += [(k * every_s, REPORT, None) for k in range(1, reports)]
    found += [(at_s, NEW_RTT, rtt_ms) for at_s, rtt_ms in plan.get("delays_s_ms", [])]
    found += [(at_s, NEW_LOSS, loss) for at_s, loss in plan.get("bursts", {}).get("s_percent", [])]
    found += [(at_s, ATTACK, None) for at_s in plan.get("attacks", {}).get("at_s", [])]
    return sorted(found, key=lambda event: event[:2])
