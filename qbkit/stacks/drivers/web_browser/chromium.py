"""Chromium: how to make it load a page by one protocol alone."""

PROGRAMS = {
    "chromium": "/usr/lib/chromium/chromium",
    "headless-shell": "/usr/lib/chromium/chromium-headless-shell",
}
FLAGS = [
    *["--headless", "--no-sandbox", "--no-zygote", "--no-first-run"],
    *["--disable-gpu", "--in-process-gpu", "--disable-software-rasterizer"],
    *["--disable-background-networking", "--disable-component-update", "--disable-sync"],
    *["--disable-extensions", "--disable-default-apps", "--remote-debugging-pipe"],
    *["--hide-scrollbars", "--mute-audio", "--disable-breakpad", "--disable-dev-shm-usage"],
    "--enable-features=NetworkServiceInProcess2",
]
WITHOUT = "IsolateOrigins,site-per-process,Translate,OptimizationHints,MediaRouter"
"""Features of both; each process that they would start costs a guest half a second."""
WHOLE = "chromium"
"""The browser with a user interface; the shell has neither spare renderers nor an address bar."""


def argv(arguments, scratch):
    """The command; its net log goes to the output folder."""
    with open(f"{arguments.certificates}/browser-spki") as file:
        spki = file.read().strip()
    names, whole = arguments.hosts, arguments.browser == WHOLE
    rules = [f"MAP {name} {arguments.address}" for name in names]
    origins = ",".join(f"{name}:443" for name in names)
    quic = ["--enable-quic", f"--origin-to-force-quic-on={origins}"]
    return [
        PROGRAMS[arguments.browser],
        *FLAGS,
        f"--disable-features={WITHOUT}{',SpareRendererForSitePerProcess' if whole else ''}",
        f"--user-data-dir={scratch}/profile",
        f"--host-resolver-rules={','.join([*rules, 'MAP * ~NOTFOUND'])}",
        f"--ignore-certificate-errors-spki-list={spki}",
        f"--log-net-log={arguments.out}/netlog.json",
        *(quic if arguments.protocol == "h3" else ["--disable-quic"]),
        # A window without an address bar, which would be a page in a process of its own.
        "--app=data:text/html," if whole else "about:blank",
    ]


def env(scratch):
    """Its home is the scratch folder; there is no message bus."""
    return {"HOME": scratch, "DBUS_SESSION_BUS_ADDRESS": "disabled:"}
