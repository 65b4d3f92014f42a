"""Run one experiment on this system: in the guest, or as root on a Linux host.

``agent.pyc FOLDER`` reads FOLDER/plan.json, builds the network, starts captures, receivers and
senders, stops them, and writes FOLDER/result.json; on any failure FOLDER/error.json with one
sentence. Standard library and Mininet only. Lines on stdout that start with ``QBKIT`` report
progress to the engine.
"""

import json
import os
import subprocess
import sys

from report import RunAborted, say, write_json
from system import mount_all, power_off

sys.path += [os.path.dirname(os.path.realpath(sys.argv[0])), "/usr/lib/python3/dist-packages"]


def main(folder):
    """Run the plan in the folder; return 0 if it wrote a result, else 1."""
    with open(f"{folder}/plan.json") as file:
        plan = json.load(file)
    say("start the guest agent")
    try:
        mount_all(plan)
        result = run_command(plan["command"]) if "command" in plan else run_experiment(plan)
        write_json(f"{folder}/result.json", result)
        status = 0
    except (RunAborted, OSError) as error:
        write_json(f"{folder}/error.json", {"error": str(error)})
        status = 1
    if plan["engine"] != "host":
        power_off()
    return status


def run_command(argv):
    """Run one program instead of an experiment; return its output and exit status."""
    done = subprocess.run(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    version = os.uname().release
    return {"kernel_version": version, "exit": done.returncode, "output": done.stdout}


def run_experiment(plan):
    """Run the flows of a plan; return the dictionary for result.json."""
    import experiment  # loads Mininet, which a lone program does not need

    return experiment.result(plan)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
