"""The page that uploads: one POST, whose huge body each browser makes in its own way."""

NAME = "test.example"
"""The name in the certificate; the browser's settings give its address."""
ENDLESS_BYTES = 1 << 36
"""64 GiB: more than any flow sends in its time."""

# no-cors: no request but the upload itself.
HTML = """<!doctype html>
<link rel="icon" href="data:,">
<script>
const say = (what) => fetch("%(report)s" + what, {mode: "no-cors"});
const upload = (body) =>
  fetch("%(target)s", {method: "POST", mode: "no-cors", body}).then(
    () => say("done"),
    (error) => say("failed?" + encodeURIComponent(error)),
  );
%(body)s
</script>
"""


def page(arguments, report, body):
    """The HTML; ``body`` is a script that calls upload() with a Blob."""
    target = f"https://{NAME}:{arguments.port}/"
    return HTML % {"report": report, "target": target, "body": body}


def body_bytes(arguments):
    """Bytes to upload; a flow with a duration never reaches the end of them."""
    return arguments.size_bytes or ENDLESS_BYTES
