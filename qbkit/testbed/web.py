"""From a web load to the plan of one flow: the server listens and sends, the client starts it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from qbkit import extras
from qbkit.errors import SpecError
from qbkit.spec.web import WebLoad
from qbkit.stacks.base import ServingStack, Status, Transfer
from qbkit.stacks.tcp import Tcp
from qbkit.stacks.web import base as web
from qbkit.stacks.web.pages.sites import SIZES, page_site
from qbkit.stacks.web.site import MOUNT as SITE_MOUNT
from qbkit.stacks.web.site import Site, object_site
from qbkit.testbed.plan import Plan, make_plan

CLIENT_PART = 0.9
"""Of a load's limit, what the client of a page has: it then says what is missing."""


class WebPair(ServingStack):
    """The server and the client of a load as the two programs of a flow."""

    name = ""
    source = ""

    def __init__(self, load: WebLoad) -> None:
        """Find both; raises SpecError where one is unknown or cannot do what the load asks for."""
        self.load = load
        self.server = web.server(load.server_name)
        self.client = web.client(load.client)
        self.name = f"{self.server.name} and {self.client.name}"  # type: ignore[misc]
        for kind, program in (("server", self.server), ("client", self.client)):
            if load.protocol not in program.protocols:
                raise SpecError(
                    f"the {kind} {program.name} does not have {load.protocol}; "
                    f"it has {', '.join(program.protocols)}"
                )
        if (load.page is not None) != self.client.pages:
            it, give = ("pages", "page") if self.client.pages else ("objects", "object_bytes")
            raise SpecError(f"the client {self.client.name} loads {it}; give {give}")
        if load.zero_rtt:
            self._require_zero_rtt()
        self._require_effect()
        if load.controller not in self.controllers():
            raise SpecError(
                f"{self.server.name} has no controller {load.controller!r} for {load.protocol}; "
                f"it has {', '.join(self.controllers())}"
            )

    def _require_zero_rtt(self) -> None:
        """Raise SpecError where a session cannot be resumed with early data."""
        if self.load.protocol != "h3":
            raise SpecError("zero_rtt is for h3: early data over TCP are not measured")
        kinds = (("server", self.server, web.servers()), ("client", self.client, web.clients()))
        for kind, program, known in kinds:
            if not program.zero_rtt:
                able = ", ".join(sorted(other.name for other in known if other.zero_rtt))
                raise SpecError(f"the {kind} {program.name} has no zero_rtt; it works with {able}")

    def _require_effect(self) -> None:
        """Raise SpecError for a setting that would do nothing."""
        load = self.load
        if load.tcp_initial_window_packets is not None and load.protocol != "h2":
            raise SpecError(
                f"tcp_initial_window_packets is for h2, and {load.protocol} does not run over TCP; "
                "leave it out"
            )
        seed = type(load).model_fields["page_seed"].default
        if load.page_seed != seed and load.page not in SIZES:
            raise SpecError(f"page_seed is for generated pages ({', '.join(SIZES)}); leave it out")

    def site(self) -> Site:
        """What the server serves."""
        if self.load.page is not None:
            extras.require("PIL", "fontTools", to="load pages")
            found = page_site(self.load.page, self.load.page_seed)
            if not self.server.hosts:
                self._require_files(found)
            return found
        return object_site(self.load.object_bytes or 0)

    def _require_files(self, site: Site) -> None:
        """Raise SpecError for a page that a server of files cannot serve."""
        more = [file.path for file in site.files() if not file.plain]
        if len(site.hosts) > 1:
            what = f"has {len(site.hosts)} hosts, and the server {self.server.name} serves one"
        elif more:
            what = (
                f"has addresses that are no names of files, redirects or headers (as {more[0]}), "
                f"and the server {self.server.name} serves files by their names"
            )
        else:
            return
        able = ", ".join(sorted(other.name for other in web.servers() if other.hosts))
        raise SpecError(f"the page {what}; it works with {able}")

    def controllers(self) -> tuple[str, ...]:
        """The server's for HTTP/3, the kernel's for HTTP/2."""
        return Tcp().controllers() if self.load.protocol == "h2" else self.server.controllers()

    def version(self) -> str:
        """Versions of both."""
        return f"{self.server.version()}; {self.client.version()}"

    def status(self) -> Status:
        """Ready when both are."""
        for program in (self.server, self.client):
            status = program.status()
            if not status.ready:
                return Status(False, f"{program.name}: {status.reason}")
        return Status(True)

    def program(self) -> list[str]:
        """Nothing: each of the two has its own command."""
        return []

    def mounts(self) -> dict[str, Path]:
        """What both need."""
        return {**self.server.mounts(), **self.client.mounts()}

    def serve_argv(self, transfer: Transfer) -> list[str]:
        """The server's command."""
        load = self.load
        return self.server.argv(
            address=transfer.address,
            protocol=load.protocol,
            controller=transfer.controller,
            site=self.site(),
            out=transfer.out,
        )

    def fetch_argv(self, transfer: Transfer) -> list[str]:
        """The client's command."""
        load = self.load
        if load.page is not None:
            return self.client.page_argv(
                address=transfer.address,
                protocol=load.protocol,
                site=self.site(),
                out=transfer.out,
                limit_s=load.limit_s * CLIENT_PART,
            )
        return self.client.argv(
            address=transfer.address,
            protocol=load.protocol,
            path=self.site().start,
            out=transfer.out,
            zero_rtt=load.zero_rtt,
        )


def web_plan(pair: WebPair, engine: str, capture: str) -> Plan:
    """The plan of a load; ``capture`` is the guest's path of the capture program."""
    load, site = pair.load, pair.site()
    plan = make_plan(load.experiment(), [pair], engine, capture)
    (flow,) = plan.data["flows"]
    more = {
        "sender_title": f"the server {pair.server.name}",
        "receiver_title": f"the client {pair.client.name}",
        "sender_env": pair.server.env(),
        "receiver_env": pair.client.env(),
        "tcp_controller": load.controller if load.protocol == "h2" else None,
        "tcp_initial_window_packets": load.tcp_initial_window_packets,
    }
    data: Mapping[str, Any] = {
        **plan.data,
        "flows": [{**flow, **more}],
        "ends_early": True,
        "site": site.version(),
    }
    return replace(plan, data=dict(data), mounts={**plan.mounts, SITE_MOUNT: str(site.folder)})
