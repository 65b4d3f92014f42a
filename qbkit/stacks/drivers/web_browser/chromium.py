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
    "--disable-features=IsolateOrigins,site-per-process,Translate,OptimizationHints,MediaRouter",
    "--enable-features=NetworkServiceInProcess2",
]


def argv(arguments, scratch):
    """The command; its net log goes to the output folder."""
    with open(f"{arguments.certificates}/browser-spki") as file:
        spki = file.read().strip()
    names = arguments.hosts
    rules = [f"MAP {name} {arguments.address}" for name in names]
    origins = ",".join(f"{name}:443" for name in names)
    quic = ["--enable-quic", f"--origin-to-force-quic-on={origins}"]
    return [
        PROGRAMS[arguments.browser],
        *FLAGS,
        f"--user-data-dir={scratch}/profile",
        f"--host-resolver-rules={','.join([*rules, 'MAP * ~NOTFOUND'])}",
        f"--ignore-certificate-errors-spki-list={spki}",
        f"--log-net-log={arguments.out}/netlog.json",
        *(quic if arguments.protocol == "h3" else ["--disable-quic"]),
        "about:blank",
    ]


def env(scratch):
    """Its home is the scratch folder; there is no message bus."""
    return {"HOME": scratch, "DBUS_SESSION_BUS_ADDRESS": "disabled:"}
