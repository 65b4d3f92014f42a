"""Firefox: how to make its engine upload by neqo alone.

It runs Firefox's network stack in background-task mode: one process without windows. The whole
browser, with a dozen processes, costs a guest 20 s before the first packet.
"""

import json
import os

from page import NAME, body_bytes
from process import Failed
from qlog import QLog

PROGRAM = "/usr/lib/firefox-esr/firefox-esr"
APPLICATION = os.path.join(os.path.dirname(os.path.realpath(__file__)), "firefox_app")
CONTROLLERS = {"newreno": 0, "cubic": 1}
SLOW_START = {"hystart": 1, "search": 2}
HTTP3 = "network.http.http3"
PREFERENCES = {
    # Nothing but the upload.
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.process.enabled": False,
    "network.trr.mode": 5,
    # QUIC at once and no TCP beside it, to a server whose authority is ours.
    "network.dns.disableIPv6": True,
    "network.http.happy_eyeballs_enabled": False,
    "network.http.speculative-parallel-limit": 0,
    "security.nocertdb": False,
    f"{HTTP3}.backup_timer_delay": 0,
    f"{HTTP3}.disable_when_third_party_roots_found": False,
    f"{HTTP3}.enable": True,
    f"{HTTP3}.parallel_fallback_conn_limit": 0,
    f"{HTTP3}.enable_qlog": True,
}


class Firefox:
    """One engine with its own profile."""

    def __init__(self, arguments, scratch):
        self.arguments, self.scratch = arguments, scratch
        self.profile, self.body = f"{scratch}/profile", f"{scratch}/body"
        self.failure = f"{scratch}/failure"

    def telemetry(self, _):
        """Telemetry from neqo's qlog."""
        keep = self.arguments.options.get("qlog") == "true"
        return QLog(self.scratch, self.arguments.out, keep)

    def argv(self, _):
        """The command; the body is a sparse file."""
        os.mkdir(self.profile)
        with open(f"{self.profile}/user.js", "w") as file:
            for name, value in self.preferences().items():
                file.write(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n")
        with open(self.body, "wb") as file:
            file.truncate(body_bytes(self.arguments))
        url = f"https://{NAME}:{self.arguments.port}/"
        authority = f"{self.arguments.certificates}/browser-ca.pem"
        task = ["--backgroundtask", "upload", "--no-remote", "--profile", self.profile]
        start = [PROGRAM, "-app", f"{APPLICATION}/application.ini", *task]
        return [*start, url, self.body, authority, self.failure]

    def preferences(self):
        """Preferences for the profile's user.js."""
        return {
            **PREFERENCES,
            "network.dns.forceResolve": self.arguments.host,
            f"{HTTP3}.alt-svc-mapping-for-testing": f"{NAME};h3=:{self.arguments.port}",
            f"{HTTP3}.cc_algorithm": self.arguments.choice(CONTROLLERS),
            **option_preferences(self.arguments.options),
        }

    def outcome(self, status):
        """The outcome when the browser ends by itself."""
        if status == 0:
            return "done", ""
        try:
            with open(self.failure) as file:
                return "failed", file.read()
        except FileNotFoundError:
            return "ended", f"exit status {status}"

    def env(self):
        """Its home and its temporary files are in the scratch folder; it sends no reports."""
        return {"HOME": self.scratch, "TMPDIR": self.scratch, "MOZ_CRASHREPORTER_DISABLE": "1"}


def option_preferences(options):
    """Preferences for the flow's options."""
    wanted = {name for name, value in options.items() if value == "true"}
    if {"hystart", "search"} <= wanted:
        raise Failed("hystart and search are two ways to leave slow start; choose one")
    algorithm = next((n for name, n in SLOW_START.items() if name in wanted), 0)
    return {f"{HTTP3}.slow_start_algorithm": algorithm, f"{HTTP3}.pmtud": "pmtud" in wanted}
