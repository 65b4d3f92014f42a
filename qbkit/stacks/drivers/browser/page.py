"""The page that uploads: one POST, whose body is made as each browser can make a huge one."""

NAME = "test.example"
"""The name in the certificate; the browser is told its address."""
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
    """The HTML; ``body`` is the script that calls upload() with a Blob, once it has it."""
    target = f"https://{NAME}:{arguments.port}/"
    return HTML % {"report": report, "target": target, "body": body}


def body_bytes(arguments):
    """How much to upload: a flow for a time never comes to the end of it."""
    return arguments.size_bytes or ENDLESS_BYTES
