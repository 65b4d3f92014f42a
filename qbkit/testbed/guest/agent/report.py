"""What the agent tells the engine: lines of progress, files, and why a run cannot continue."""

import json
import os


class RunAborted(Exception):
    """The run cannot continue; the message is a sentence for the user."""


def write_json(path, data):
    """Write beside and rename, so that the file is whole or absent."""
    with open(path + ".part", "w") as file:
        json.dump(data, file)
    os.replace(path + ".part", path)


def say(text):
    """Print one line for the engine."""
    print("QBKIT", text, flush=True)
