"""Firefox: how to make it load a page by one protocol alone."""

import json
import os

PROGRAM = "/usr/lib/firefox-esr/firefox-esr"
HTTP3 = "network.http.http3"
PREFERENCES = {
    # One process for the page and few others: each costs a guest more than a second.
    "browser.tabs.remote.separatePrivilegedContentProcess": False,
    "dom.ipc.keepProcessesAlive.privilegedabout": 0,
    "dom.ipc.processCount": 1,
    "dom.ipc.processPrelaunch.enabled": False,
    "extensions.webextensions.remote": False,
    "fission.autostart": False,
    "layers.gpu-process.enabled": False,
    "media.rdd-process.enabled": False,
    "media.utility-process.enabled": False,
    "network.process.enabled": False,
    # Nothing but the page.
    "app.normandy.enabled": False,
    "app.update.disabledForTesting": True,
    "browser.cache.disk.enable": False,
    "browser.chrome.site_icons": False,
    "browser.newtabpage.enabled": False,
    "browser.safebrowsing.blockedURIs.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.search.update": False,
    "browser.startup.page": 0,
    "browser.topsites.contile.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "dom.push.connection.enabled": False,
    "extensions.systemAddon.update.enabled": False,
    "geo.provider.testing": True,
    "media.gmp-manager.updateEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.trr.mode": 5,
    "security.OCSP.enabled": 0,
    "services.settings.server": "data:,",
    "signon.autofillForms": False,
    "toolkit.telemetry.enabled": False,
    # Exact times.
    "privacy.reduceTimerPrecision": False,
    # Exceptions for the certificate are possible for every host of a recorded page.
    "network.stricttransportsecurity.preloadlist": False,
    "security.cert_pinning.enforcement_level": 0,
    # One protocol, and no TCP beside QUIC.
    "network.dns.disableIPv6": True,
    "network.http.happy_eyeballs_enabled": False,
    "network.http.speculative-parallel-limit": 0,
    "network.http.rcwn.enabled": False,
    f"{HTTP3}.backup_timer_delay": 0,
    f"{HTTP3}.disable_when_third_party_roots_found": False,
    f"{HTTP3}.parallel_fallback_conn_limit": 0,
    "marionette.port": 0,
}


def argv(arguments, profile):
    """The command, whose profile is made."""
    os.mkdir(profile)
    with open(f"{profile}/user.js", "w") as file:
        for name, value in {**PREFERENCES, **preferences(arguments)}.items():
            file.write(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n")
    how = ["--headless", "--no-remote", "--marionette", "--remote-allow-system-access"]
    return [PROGRAM, *how, "--profile", profile, "about:blank"]


def preferences(arguments):
    """Preferences for the load: the protocol, and the server's port in place of 443."""
    port = arguments.address.rpartition(":")[2]
    mapping = ",".join(f"{name};h3=:{port}" for name in arguments.hosts)
    quic = {f"{HTTP3}.alt-svc-mapping-for-testing": mapping}
    return {
        "network.socket.forcePort": f"443={port}",
        f"{HTTP3}.enable": arguments.protocol == "h3",
        **(quic if arguments.protocol == "h3" else {}),
    }


def env(scratch):
    """Its files are in the scratch folder; it sends no reports and has no sandboxes."""
    sandboxes = ("CONTENT", "GMP", "RDD", "SOCKET_PROCESS", "UTILITY")
    return {
        "HOME": scratch,
        "TMPDIR": scratch,
        "DBUS_SESSION_BUS_ADDRESS": "disabled:",
        "MOZ_CRASHREPORTER_DISABLE": "1",
        **{f"MOZ_DISABLE_{name}_SANDBOX": "1" for name in sandboxes},
    }
