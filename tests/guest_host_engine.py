"""Run inside a guest without time travel: the host engine, as root, in physical time.

Prints one JSON document: the agent's result and the captures' sizes.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from qbkit import stacks
from qbkit.spec import Experiment
from qbkit.testbed import engines
from qbkit.testbed.plan import make_plan


def main() -> None:
    experiment = Experiment(
        flows=["tcp:cubic", "tcp:reno"], bottleneck={"rate_mbps": 5}, duration_s=3
    )
    folder = Path("/run/host-engine")
    folder.mkdir()
    engine = engines.choose("host")
    drivers = [stacks.get(flow.stack) for flow in experiment.flows]
    plan = make_plan(experiment, drivers, engine.name, engines.CAPTURE)
    result, _ = engines.carry_out(engine, plan, folder, 1, 30, lambda _: None)
    sizes = {path.name: path.stat().st_size for path in folder.glob("run/*.pcap")}
    print(json.dumps({"result": result, "sizes": sizes}))


main()
