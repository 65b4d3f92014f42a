"""Controllers that users bring: what travels into the guest, what is refused, what comes back."""

from __future__ import annotations

import linecache
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from simulated_path import PACKET_BYTES, SimulatedPath

import qbkit as qb
from qbkit.cca import Settings, shipped
from qbkit.cca.own import mistakes, registry, source
from qbkit.cca.shipped import ControllerError
from qbkit.errors import RunFailed, SpecError
from qbkit.stacks.aioquic import AioQuic
from qbkit.stacks.drivers.cca_flow.guard import Guard
from qbkit.traces.run import telemetry

DECREASE = 0.5


def kept_bytes(window_bytes: float) -> float:
    return math.floor(DECREASE * window_bytes)


@qb.controller("test-aimd")
class Aimd(qb.cca.WindowController):
    """Reno without slow start."""

    options: ClassVar[dict[str, qb.cca.Option]] = {
        "gain": qb.cca.number("packets per round trip", 1.0, 0.1, 100)
    }
    recovery_start_s = -1.0

    def on_ack(self, ack):
        packets = self.option["gain"] * ack.acked_bytes / self.window_bytes
        self.window_bytes += packets * self.packet_bytes
        self.log(state="avoid", queue_ms=1e3 * (ack.smoothed_rtt_s - ack.min_rtt_s))

    def on_loss(self, loss):
        if loss.newest_sent_s > self.recovery_start_s:
            self.window_bytes = max(kept_bytes(self.window_bytes), 2 * self.packet_bytes)
            self.recovery_start_s = loss.now_s


@qb.controller("test-crash")
class Crash(qb.cca.WindowController):
    def on_ack(self, ack):
        if ack.delivered_bytes > 100_000:
            self.window_bytes = {}["missing"]


@qb.controller("test-array")
class Array(qb.cca.WindowController):
    def on_ack(self, ack):
        self.window_bytes = np.array([30_000.0, 1.0])


@qb.controller("test-spin")
class Spin(qb.cca.WindowController):
    def on_ack(self, ack):
        while True:
            self.state = "spinning"


@qb.controller("test-hearing")
class Hearing(qb.cca.WindowController):
    """Keeps 60 packets in flight, and logs what the path says of itself."""

    uses_one_way_delay = True
    uses_ecn = True
    marked = 0

    def on_ack(self, ack):
        self.window_bytes = 60 * self.packet_bytes
        self.marked += ack.ecn_ce_packets
        if ack.one_way_delay_s is not None:
            self.log(delay_ms=1e3 * ack.one_way_delay_s, marked_packets=self.marked)


BEFORE = "import qbkit as qb\n"


def run_cell(text: str, **known: Any) -> dict[str, Any]:
    """As a notebook does: the source of a cell is in linecache, its globals are the notebook's."""
    file = f"<cell {run_cell.count}>"
    run_cell.count += 1
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    names = {"__name__": "__main__", "qb": qb, **known}
    exec(compile(text, file, "exec"), names)
    return names


run_cell.count = 0


@pytest.fixture(autouse=True)
def no_cells_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_of_cells", dict(registry._of_cells))


def cell(body: str, name: str = "my-cc", base: str = "qb.cca.WindowController") -> str:
    return f'@qb.controller("{name}")\nclass MyCC({base}):\n    {body}\n'


# What travels


def test_what_a_controller_needs_travels_and_nothing_else() -> None:
    text = registry.source_of("test-aimd")
    lines = Path(__file__).read_text().splitlines()
    shipped_lines = text.splitlines()
    assert shipped_lines[0].endswith("# controller: Aimd")
    kept = {n: line for n, line in enumerate(shipped_lines[1:], 1) if line}
    assert all(lines[n - 1] == line for n, line in kept.items())  # each line at its own number
    assert "import math" in kept.values()
    assert any("def kept_bytes" in line for line in kept.values())
    assert "DECREASE = 0.5" in kept.values()
    assert not any(
        "Crash" in line or "controller(" in line or "numpy" in line for line in kept.values()
    )


def test_a_module_that_another_cell_imported_is_imported_in_the_guest() -> None:
    run_cell(cell("start = math.inf"), math=math)
    text = registry.source_of("my-cc")
    assert text.startswith("import math as math; import qbkit as qb  # controller: MyCC\n")
    assert registry.find("my-cc", text).start == math.inf


def test_names_inside_functions_are_not_those_of_the_notebook() -> None:
    run_cell(cell("def on_ack(self, ack):\n        x = 1\n        return x"), x="of another cell")
    assert "x = 1" in registry.source_of("my-cc")


def test_a_source_with_annotations_for_later_is_read_so() -> None:
    text = "from __future__ import annotations\n" + cell("def on_ack(self, ack: Unknown): ...")
    run_cell(text)
    assert registry.source_of("my-cc").startswith("from __future__ import annotations; import")


def test_the_word_on_the_command_line_is_the_text() -> None:
    text = registry.source_of("test-aimd")
    word = shipped.pack(text)
    assert shipped.unpack(word) == text
    assert len(word.split()) == 1


def test_a_flow_carries_its_source_and_others_have_no_such_field() -> None:
    experiment = qb.Experiment(flows=["qbkit:test-aimd", "qbkit:reno", "tcp:cubic"])
    assert experiment.flows[0].source == registry.source_of("test-aimd")
    assert experiment.to_json().count('"source"') == 1
    assert qb.Experiment.from_json(experiment.to_json()) == experiment
    assert "source" not in repr(experiment)


def test_an_edited_cell_is_another_experiment_and_old_flows_keep_their_code() -> None:
    run_cell(cell("gain = 1"))
    before = qb.Experiment(flows=["qbkit:my-cc"])
    run_cell(cell("gain = 2"))
    after = qb.Experiment(flows=["qbkit:my-cc"])
    assert before.hash != after.hash
    assert registry.find("my-cc", before.flows[0].source).gain == 1
    run_cell(cell("gain = 1"))
    assert qb.Experiment(flows=["qbkit:my-cc"]).hash == before.hash


def test_an_edited_file_that_is_loaded_again_has_its_new_code(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    for gain in (1, 20):
        file.write_text(BEFORE + cell(f"gain = {gain}"))
        exec(compile(file.read_text(), str(file), "exec"), {"__name__": "__main__"})
        assert registry.find("my-cc", registry.source_of("my-cc")).gain == gain


def test_a_class_that_is_changed_outside_of_its_cell_is_refused() -> None:
    kind = run_cell(cell("gain = 1"))["MyCC"]
    kind.gain = 8
    with pytest.raises(SpecError, match="gain of controller 'my-cc' was changed after its cell"):
        qb.Flow("qbkit:my-cc")
    kind.gain = 1
    assert qb.Flow("qbkit:my-cc").source


@pytest.mark.parametrize("field", ["flows.0", "flows.0.controller"])
def test_a_sweep_over_controllers_gives_each_its_own_source(field: str) -> None:
    values = ["test-aimd", "reno", "test-spin"]
    swept = [f"qbkit:{name}" for name in values] if field == "flows.0" else values
    sweep = qb.Sweep(
        name="s", base={"flows": ["qbkit:test-crash"], "duration_s": 1}, sweep={field: swept}
    )
    flows = [point.experiment.flows[0] for point in sweep.points()]
    assert [flow.controller for flow in flows] == values
    assert [flow.source for flow in flows] == [registry.source_of(name) for name in values]


@pytest.fixture
def their_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package as pip installs it; one of its two controllers is not there."""
    (tmp_path / "their_cc.py").write_text(
        "from qbkit.cca import WindowController\nPART = 0.7\n\n\n"
        "class Theirs(WindowController):\n    part = PART\n"
    )
    facts = tmp_path / "their_package-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(
        "[qbkit.controllers]\ntheir-cc = their_cc:Theirs\nbroken-cc = their_cc:Missing\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    registry._entry_points.cache_clear()
    yield
    registry._entry_points.cache_clear()
    sys.modules.pop("their_cc", None)


@pytest.mark.usefixtures("their_package")
def test_another_package_brings_a_controller() -> None:
    assert "their-cc" in qb.stacks.get("qbkit").controllers()
    flow = qb.Flow("qbkit:their-cc")
    assert registry.find("their-cc", flow.source).part == 0.7
    with pytest.raises(SpecError, match="a controller of their_cc:Theirs named 'their-cc' already"):
        run_cell(cell("pass", "their-cc"))


@pytest.mark.usefixtures("their_package")
def test_a_controller_of_a_package_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(
        SpecError, match=r"flows.0: the controller broken-cc of their_cc:Missing ca"
    ):
        qb.Experiment(flows=["qbkit:broken-cc"])


def test_the_example_of_the_how_to_fills_a_link_and_keeps_its_queue_short() -> None:
    page = Path(__file__).parents[1] / "docs/howto/own-controller.md"
    example = page.read_text().split("```python\n")[1].split("```")[0]
    run_cell(example)
    brake = registry.find("brake", registry.source_of("brake"))(Settings(PACKET_BYTES))
    path = SimulatedPath(brake, rate_mbps=10, rtt_s=0.05, buffer_packets=1000)
    path.finish(20)
    before = path.flight.delivered_bytes
    path.finish(10)
    assert (path.flight.delivered_bytes - before) * 8e-6 / 10 > 9.5
    assert 0.6 * 0.05 > brake.logged["queue_ms"] / 1e3 > 0.001  # it brakes at half an RTT


def test_the_contents_of_a_file_that_a_controller_opens_are_part_of_its_flow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "table.csv"
    body = f"def on_ack(self, ack):\n        self.window_bytes = float(open('{table}').read())"
    run_cell(cell(body))
    none = qb.Flow("qbkit:my-cc")  # a file that is not there yet
    table.write_text("40000")
    with pytest.raises(SpecError, match=r"table.csv, which the guest does not see, .* a /tmp of"):
        qb.Flow("qbkit:my-cc")
    monkeypatch.setattr(source, "HIDDEN", ())
    first = qb.Flow("qbkit:my-cc")
    table.write_text("20000")
    second = qb.Flow("qbkit:my-cc")
    assert len({none.source, first.source, second.source}) == 3
    assert source.with_files(second.source) == second.source  # and no third digest
    for flow in (none, first):
        with pytest.raises(SpecError, match="'my-cc' opens is not as when its flow was made"):
            qb.Experiment(flows=[flow], duration_s=1).run()


@pytest.mark.parametrize(
    ("value", "later"),
    [("1.0", "4.0"), ("[1, 2]", "[1, 3]"), ("np.ones(3)", "np.zeros(3)"), ("[1]", "np.ones(1)")],
)
def test_a_value_that_a_later_cell_changes_is_refused_and_an_equal_one_is_not(
    value: str, later: str
) -> None:
    body = "def on_ack(self, ack):\n        self.window_bytes = G * T"
    names = run_cell(f"import numpy as np\nG = {value}\n" + cell(body) + "T = [1, 2]\n")
    qb.Flow("qbkit:my-cc")
    exec(f"G = {value}; T = [1, 2]", names)
    flow = qb.Flow("qbkit:my-cc")
    exec(f"G = {later}", names)
    with pytest.raises(SpecError, match=r"uses G, which is .* assign G in one statement of that c"):
        qb.Flow("qbkit:my-cc")
    assert "G = " in flow.source
    exec(f"G = {value}; T.append(3)", names)
    with pytest.raises(SpecError, match=r"uses T, which is \[1, 2, 3\] here and would be \[1, 2\]"):
        qb.Flow("qbkit:my-cc")


# What is refused


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (cell("pass", "cubic"), "there is a built-in controller named 'cubic' already; choose"),
        (cell("pass", "test-aimd"), "there is a controller, class Aimd, named 'test-aimd' already"),
        (cell("pass", "My CC"), "'My CC' is no name for a controller; use a-z, 0-9 and -"),
        (cell("pass", "../x"), "is no name for a controller"),
        (cell("pass", base="object"), "MyCC is no controller: derive it from qb.cca.WindowCont"),
        ('@qb.controller("f")\ndef f(): ...', "f is no controller: derive it from"),
        (cell("def on_acks(self, ack): ..."), r"'my-cc' has a method on_acks.*mean on_ack\?\)"),
        (cell("def on_ack(self, ack):\n        self.log(cwnd_bytes=5)"), "choose another name"),
        (cell("def on_ack(self, ack):\n        self.log(a=1, time_s=5)"), "my-cc' logs time_s, a"),
        (cell("def on_ack(self, ack):\n        self.log(label=5)"), "uses itself; choose another"),
        (cell("def on_ack(self, ack):\n        print(ack)"), "prints, which nobody sees; record"),
        (
            cell("async def on_ack(self, ack): ..."),
            "would never run on_ack, because it has an async",
        ),
        (
            cell("def on_ack(self, ack): yield"),
            "would never run on_ack, because it has an async or",
        ),
        (cell("options = ['gain']"), "options that are no dictionary; write options = {'gain'"),
        (cell("options = {'gain': 2.0}"), "gain is 2.0; write qb.cca.number, whole or switch"),
        (cell("options = {'a=b': qb.cca.switch('', True)}"), "named 'a=b'; use a-z, 0-9 and _"),
        (cell("options = {'app': qb.cca.switch('', True)}"), "named app, .* such as my_app"),
        (cell("options = {'g': qb.cca.number('', 50, 0, 10)}"), "g has the default 50; .* 0 to 10"),
        (cell("options = {'g': qb.cca.switch('', 1)}"), "default 1; it must be true or false"),
        (
            cell(
                "options = {'g': qb.cca.switch('', True)}\n"
                "    def avoid_congestion(self, ack): ...\n"
                "    def window_after_loss_bytes(self, loss): return 1e4",
                base="qb.cca.LossBasedController",
            ),
            r"without pacing of its base class L.* options = \{\*\*LossBasedController.options, ",
        ),
        (cell("window_bytes = 5e4"), "sets window_bytes in its class, where its start replaces it"),
        (cell("option = {'gain': 1}"), "sets option in its class"),
        (
            cell("def on_ack(self, ack):\n        self.window_byte = 2 * self.window_bytes"),
            r"'my-cc' sets window_byte, which nothing reads \(did you mean window_bytes\?\)",
        ),
        (cell("use_ecn = True"), r"sets use_ecn, which nothing reads \(did you mean uses_ecn\?\)"),
        (cell("uses_delay = True"), r"has uses_delay, .*; a controller may ask for uses_one_way_d"),
        (
            cell("def avoid_congestions(self, ack): ...", base="qb.cca.LossBasedController"),
            r"has no avoid_congestion, which .* leaves to it \(did you mean avoid_congestions\?\)",
        ),
        (
            cell("gain = 1") + cell("gain = 2", "other"),
            "the class MyCC of .* 'my-cc' is there twice",
        ),
        (
            "G = 1\nif G: G = 8\n" + cell("def on_ack(self, ack):\n        self.window_bytes = G"),
            "'my-cc' uses G, which is 8 here and would be 1 in the guest: only",
        ),
        (
            "G = []\nfor i in 1, 2: G.append(i)\n" + cell("def on_ack(self, ack): G[0]"),
            r"uses G, which is \[1, 2\] here and would be \[\] in .*; assign G in one statement",
        ),
        (cell("q = Q"), "uses Q, which is not in its cell; define Q there"),
        (cell("def on_ack(self, ack):\n        helper()"), "uses helper, which is not in its cell"),
        (
            "def make():\n    @qb.controller('my-cc')\n"
            "    class MyCC(qb.cca.WindowController): ...\nmake()",
            "not at the top level of its cell; move it there",
        ),
    ],
)
def test_what_cannot_be_a_controller_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(SpecError, match=sentence):
        run_cell(text, Q=3, helper=lambda: None)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("import qbkit as qb  # controller: A\nclass A(:\n", "line 1: invalid syntax"),
        ("import qbkit as qb  # controller: A\nclass A: ...\n", "A is no controller"),
        ("import nothing_such  # controller: A\n", "No module named 'nothing_such'"),
    ],
)
def test_a_source_that_does_not_compile_is_one_sentence(text: str, sentence: str) -> None:
    flow = qb.Flow(stack="qbkit", controller="my-cc", source=text)
    with pytest.raises(
        SpecError, match=f"controller 'my-cc' does not run on its own: .*{sentence}"
    ):
        qb.Experiment(flows=[flow], duration_s=1).run()


@pytest.mark.parametrize(
    ("flow", "sentence"),
    [
        (qb.Flow("qbkit:nope"), "qbkit has no controller 'nope'; it has .*test-aimd.*, and one of"),
        (qb.Flow("qbkit:cubik"), "qbkit has no controller 'cubik' .did you mean cubic..; it has"),
        (
            qb.Flow("qbkit:test-aimd", options={"beta": 1}),
            "qbkit:test-aimd has no option beta; sup",
        ),
        (
            qb.Flow("qbkit:test-aimd", options={"gain": 0}),
            "gain is 0; it must be a number from 0.1",
        ),
        (qb.Flow(stack="tcp", controller="my-cc", source="x"), "tcp takes no controllers from a c"),
    ],
)
def test_a_flow_that_cannot_be_is_one_sentence(flow: qb.Flow, sentence: str) -> None:
    with pytest.raises(SpecError, match=sentence):
        qb.Experiment(flows=[flow], duration_s=1).run()


# What goes wrong in it


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("self.window_bytes = float('nan')", "set window_bytes to nan; it must be a number from 0"),
        ("self.window_bytes = -1.0", "set window_bytes to -1.0; it must be"),
        ("self.window_bytes = 1e300", "set window_bytes to 1e.300; it must be"),
        ("self.window_bytes = None", "set window_bytes to None; it must be"),
        ("self.pacing_rate_bytes_per_s = 0", "set pacing_rate_bytes_per_s to 0; it must be None, "),
        ("self.pacing_rate_bytes_per_s = float('nan')", "set pacing_rate_bytes_per_s to nan"),
        ("self.log(bwe_mbps=[1])", r"logged bwe_mbps=\[1\]; it must be a number"),
        ("self.log(bwe_mbps=__import__('numpy').ones(2))", "logged bwe_mbps=array.*; it must be a"),
        ("self.log(state='a b')", "logged state='a b'; use letters, digits and _"),
    ],
)
def test_what_a_controller_cannot_set_names_it_and_the_time(body: str, sentence: str) -> None:
    guard, controller = guarded(f"def on_ack(self, ack):\n        {body}")
    with pytest.raises(ControllerError, match=f"controller 'my-cc' {sentence}.* virtual s after"):
        SimulatedPath(controller)  # its handshake is acknowledged
        guard.check(controller)
        guard.check_log(controller)


def test_it_logs_any_number_of_python_or_numpy() -> None:
    values = "a=True, b=1, c=0.5, d=np.int64(1), e=np.float32(0.5), f=np.bool_(True)"
    guard, controller = guarded(
        f"def on_ack(self, ack):\n        import numpy as np\n        self.log({values})"
    )
    SimulatedPath(controller)
    guard.check_log(controller)
    assert sum(controller.logged.values()) == 5


def test_names_that_cannot_be_logged_are_all_that_are_recorded() -> None:
    assert set(mistakes.RECORDED) | set(mistakes.REPLACED) == set(telemetry.COLUMNS)
    run_cell(cell("def on_ack(self, ack):\n        self.log(min_rtt_ms=5, delivery_rate_mbps=1)"))


def test_options_have_no_name_of_a_flow_and_may_leave_the_choice_open() -> None:
    assert {*qb.Flow.model_fields, *AioQuic.options} < set(mistakes.OF_FLOW)
    run_cell(cell("options = {'g': qb.cca.number('', None, 0, 10), 'on': qb.cca.switch('', True)}"))
    run_cell(cell("options = {'initial_window_packets': qb.cca.whole('', 32)}"))


@pytest.mark.parametrize(
    "body",
    [
        "def on_ack(self, ack):\n        self.window = 5\n        self.window_bytes += self.window",
        "def on_ack(self, ack):\n        self.window = 5\n        getattr(self, 'window')",
        "pacing_rate_bytes_per_s = 1e6",
        "def on_ack(self, ack):\n        self.newest_s = ack.now_s",
    ],
)
def test_a_controller_may_keep_what_it_likes(body: str) -> None:
    run_cell(cell(body))


def test_a_controller_may_have_the_events_of_its_base() -> None:
    base = "class Base(qb.cca.LossBasedController):\n    def on_ack(self, ack): ...\n"
    base += "    def avoid_congestion(self, ack): ...\n"
    base += "    def window_after_loss_bytes(self, loss): return self.window_bytes / 2\n"
    run_cell(base + cell("on_time = 3", base="Base"))


def test_a_name_that_only_the_run_shows_is_refused_when_it_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "flows/1"
    folder.mkdir(parents=True)
    (folder / "sender.csv").write_text("time_ns,cwnd_bytes\n20,10\n")
    (folder / "controller.csv").write_text("time_ns,name,value\n20,cwnd_bytes,7\n")
    with pytest.raises(RunFailed, match="the controller of flow 2 logs cwnd_bytes, a name that"):
        telemetry.read_sender(folder)


def test_a_controller_that_logs_thousands_of_names_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sender.csv").write_text("time_ns,cwnd_bytes\n10,10\n20,10\n")
    rows = [f"{at},w{n},{n}\n" for at in (10, 20) for n in range(1001 * at // 20)]
    (tmp_path / "controller.csv").write_text("".join(["time_ns,name,value\n", *rows]))
    with pytest.raises(RunFailed, match=r"flow 1 logs 1001 values; at most 1000 are recorded$"):
        telemetry.read_sender(tmp_path)


def test_a_module_that_the_guest_does_not_have_is_refused() -> None:
    sentence = rf"'my-cc' imports simulated_path from {Path(__file__).parent}, which does not go"
    with pytest.raises(SpecError, match=sentence):
        run_cell(
            cell("def on_ack(self, ack):\n        simulated_path.PACKET_BYTES"),
            simulated_path=sys.modules["simulated_path"],
        )
    with pytest.raises(SpecError, match=sentence):
        run_cell(cell("def on_ack(self, ack):\n        from simulated_path import make"))
    text = "import numpy as np, math, xml.dom\nfrom scapy.all import IP\n"
    run_cell(text + cell("def on_ack(self, ack):\n        np, math, IP, xml"))


def guarded(body: str) -> tuple[Guard, Any]:
    run_cell(cell(body))
    kind, guard = registry.find("my-cc", registry.source_of("my-cc")), Guard("my-cc")
    return guard, guard.make(kind, Settings(PACKET_BYTES))


def test_an_exception_has_the_line_of_the_cell() -> None:
    _, controller = guarded(
        "def on_loss(self, loss): ...\n    def on_ack(self, ack):\n        1 / 0"
    )
    controller.window_bytes = 10 * PACKET_BYTES
    with pytest.raises(ControllerError) as caught:
        SimulatedPath(controller).finish(1)
    assert str(caught.value).splitlines()[1:] == [
        "  my-cc, line 5, in on_ack",
        "    1 / 0",
        "ZeroDivisionError: division by zero",
    ]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("self.on_ack(ack)", "RecursionError: maximum recursion depth exceeded"),
        ("raise SystemExit(3)", "SystemExit: 3"),
    ],
)
def test_a_recursion_and_an_exit_are_one_line_and_why(line: str, why: str) -> None:
    _, controller = guarded(f"def on_ack(self, ack):\n        {line}")
    with pytest.raises(ControllerError, match="failed in on_ack") as caught:
        SimulatedPath(controller).finish(1)
    _, where, code, last = str(caught.value).splitlines()
    assert (where, code) == ("  my-cc, line 4, in on_ack", f"    {line}")
    assert last.startswith(why)


def test_an_event_that_spins_after_it_called_another_is_found() -> None:
    _, controller = guarded(
        "def on_timeout(self, timeout): ...\n    def on_ack(self, ack):\n"
        "        self.on_timeout(None)\n        while True:\n            x = 2\n"
    )
    with pytest.raises(ControllerError, match=r"failed in on_ack(.|\n)*it spins"):
        SimulatedPath(controller).finish(1)


@pytest.mark.parametrize("more", ["", "            x = 1\n"])
def test_an_event_that_spins_ends_with_its_line(more: str) -> None:
    _, controller = guarded(
        f"def on_ack(self, ack):\n        while True:\n            x = 2\n{more}"
    )
    with pytest.raises(ControllerError, match="failed in on_ack") as caught:
        SimulatedPath(controller).finish(1)
    _, where, _, why = str(caught.value).splitlines()
    assert where.startswith("  my-cc, line ") and where.endswith(", in on_ack")
    assert why.endswith("it spins")


def test_a_controller_that_forgets_its_base_is_told() -> None:
    with pytest.raises(
        ControllerError, match=r"does not begin __init__.self, settings. with super"
    ):
        guarded("def __init__(self, settings): pass")


# In the guest

LINK = qb.Bottleneck(rate_mbps=10, rtt_ms=30)


@pytest.mark.guest
def test_a_controller_of_a_cell_races_the_kernel_s() -> None:
    race = qb.race("qbkit:test-aimd", "tcp:reno", rate_mbps=10, rtt_ms=30, duration_s=4)
    run = race.run
    assert race.frame().throughput_mbps.sum() > 9
    assert race.frame().share_percent.sum() == pytest.approx(100)
    assert run.queue_ms.attrs["units"] == "ms"
    queue_ms = run.sample_queue_ms.values[run.sample_flow.values == 0]
    assert 10 < np.nanmax(queue_ms) < 35  # of 30 that the buffer holds
    assert "avoid" in run.sample_state.attrs["flag_meanings"].split()
    assert run.qb.experiment.flows[0].source == registry.source_of("test-aimd")
    assert "qbkit:test-aimd" in repr(race) and "%" in repr(race)
    assert race.chart().to_dict()["vconcat"]
    assert "vega" in race._repr_html_()


@pytest.mark.guest
def test_a_study_runs_it_in_other_processes_and_judges_it() -> None:
    study = qb.conformance_study(
        "qbkit:test-aimd", "tcp:reno", bottleneck=LINK, duration_s=12, seeds=1
    )
    assessment = study.assess()
    assert 0 <= assessment.conformance <= 1
    assert study.tests[0].attrs["hash"] != study.references[0].attrs["hash"]


@pytest.mark.guest
def test_the_path_s_delay_and_marks_reach_a_controller() -> None:
    link = qb.Bottleneck(rate_mbps=10, rtt_ms=40, buffer_bdp=4, qdisc="fq_codel")
    run = qb.Experiment(bottleneck=link, flows=["qbkit:test-hearing"], duration_s=3).run()
    mine = run.delay_ms.values[0][10:]
    # 20 ms of propagation, and the queueing delay that the captures show
    assert mine == pytest.approx(20 + run.queue_delay_ms.values[0][10:], abs=2.0)
    assert run.marked_packets.values[0][-1] > 50
    assert int(run.dropped_packets.sum()) == 0


@pytest.mark.guest
@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("crash", ["in on_ack", '{}["missing"]', "KeyError: 'missing'"]),
        ("spin", ["in on_ack", "", "it spins"]),
    ],
)
def test_what_goes_wrong_in_the_guest_comes_back_with_its_line(name: str, lines: list[str]) -> None:
    experiment = qb.Experiment(bottleneck=LINK, flows=[f"qbkit:test-{name}"], duration_s=3)
    with pytest.raises(RunFailed) as caught:
        experiment.run()
    first, *details = str(caught.value).splitlines()
    assert f"controller 'test-{name}' failed in on_ack" in first and "virtual s" in first
    assert all(expected in line for expected, line in zip(lines, details, strict=True))
    number = int(details[0].split("line ")[1].split(",")[0])
    assert Path(__file__).read_text().splitlines()[number - 1].strip() == details[1].strip()


@pytest.mark.guest
def test_a_window_that_ends_the_program_outside_of_an_event_is_a_failed_run() -> None:
    experiment = qb.Experiment(bottleneck=LINK, flows=["qbkit:test-array"], duration_s=3)
    with pytest.raises(RunFailed, match=r"flow 1 \(qbkit:test-array\) ended at 0.0 s: .* truth va"):
        experiment.run()
