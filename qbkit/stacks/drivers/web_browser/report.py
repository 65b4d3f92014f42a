"""``load.json``: the load as every client of qbkit describes it."""

import time

VERSION = 1
REDIRECTS = range(300, 400)


def report(arguments, version, resources, times, frames_s, start_s):
    """The document; times count from ``start_s``, those of the page from its navigation.

    ``resources`` and ``start_s`` are of the monotonic clock, ``frames_s`` and the page's origin of
    the real-time clock. ``frames_s`` is None for a browser that takes no screenshots.
    """
    ahead_s = time.time() - time.monotonic()
    first = resources[0]
    document = next((row for row in resources if row["status"] not in REDIRECTS), first)
    origin_s = times["origin"] / 1e3
    paint, largest = times["paint"], times["largest"] or [None, ""]
    return {
        "version": VERSION,
        "client": arguments.browser,
        "client_version": version,
        "clock_s": start_s,
        "started_ns": round((start_s + ahead_s) * 1e9),
        "protocol": first["protocol"],
        "connect_s": since(first["connect_s"], start_s),
        "handshake_s": since(first["handshake_s"], start_s),
        "first_byte_s": since(first["first_byte_s"], start_s),
        "last_byte_s": since(max(row["end_s"] for row in resources), start_s),
        "bytes": sum(row["bytes"] for row in resources),
        "status": document["status"],
        "resources": [shifted(row, start_s) for row in resources],
        "page": {
            "navigation_s": round(origin_s - ahead_s - start_s, 6),
            "load_s": seconds(times["load"]),
            "first_paint_s": seconds(paint.get("first-paint")),
            "first_contentful_paint_s": seconds(paint.get("first-contentful-paint")),
            "largest_contentful_paint_s": seconds(largest[0]),
            "largest_url": largest[1],
            "frames_s": frames_s and [round(at_s - origin_s, 6) for at_s in frames_s],
        },
    }


def shifted(row, start_s):
    """A resource's row with its times from ``start_s``."""
    return {
        key: since(value, start_s) if key.endswith("_s") else value for key, value in row.items()
    }


def since(time_s, start_s):
    return None if time_s is None else round(time_s - start_s, 6)


def seconds(time_ms):
    return None if time_ms is None else round(time_ms / 1e3, 6)
