"""External stacks: found by setting or PATH, started by their documented command lines.

Where their programs are, tests/test_stacks_alone.py runs them. Here stand-ins, which are themselves
real QUIC senders, take the launcher's whole path in the guest.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import qbkit as qb
from qbkit import stacks
from qbkit.errors import RunFailed, SpecError, StackNotReady
from qbkit.stacks import registry
from qbkit.stacks.base import ServingStack, Stack, Transfer
from qbkit.stacks.external import configured, launcher
from qbkit.stacks.external.launcher import DRIVERS, External
from qbkit.stacks.quic_go import QuicGo

ADDRESS = "10.2.0.1:4001"
CERTIFICATE = "/run/qb/certificate/browser-cert.pem"
KEY = "/run/qb/certificate/browser-key.pem"
FOUR = ("mvfst", "lsquic-external", "quicly", "xquic")


def external(name: str) -> External:
    stack = stacks.get(name)
    assert isinstance(stack, External)
    return stack


def executable(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def after(words: list[str]) -> list[str]:
    """The command after the script that starts it."""
    return words[words.index("--") + 1 :]


def sending(name: str, controller: str, seconds: float | None = 20, **more: object) -> list[str]:
    """The command of the end that starts the flow."""
    stack = external(name)
    who = {"address": ADDRESS, "controller": controller, "out": "/out"}
    limit = {"duration_s": seconds, "size_bytes": None if seconds else 1000}
    if isinstance(stack, ServingStack):
        return stack.fetch_argv(Transfer(**who, **limit, options=more))
    return stack.send_argv(Transfer(**who, **limit, options=more))


@pytest.mark.parametrize("name", FOUR)
def test_a_missing_stack_says_how_to_get_it(name: str, monkeypatch: pytest.MonkeyPatch):
    stack = external(name)
    monkeypatch.delenv(stack.setting, raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    reason = stack.status().reason
    for needed in ("github.com/", stack.setting, *stack.programs):
        assert needed in reason
    assert "not found" in stack.version()
    with pytest.raises(StackNotReady, match="in no package registry"):
        stack.build()


@pytest.mark.parametrize("name", FOUR)
def test_a_setting_names_the_folder_or_a_program(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stack = external(name)
    for program in stack.programs:
        executable(tmp_path / program)
    for chosen in (tmp_path, tmp_path / stack.programs[-1]):
        monkeypatch.setenv(stack.setting, str(chosen))
        assert stack.status().ready
        assert stack.mounts()[f"/run/qb/stacks/{name}"] == tmp_path
    before = stack.version()
    executable(tmp_path / stack.programs[0], "#!/bin/sh\nexit 1\n")
    assert stack.version() != before
    (tmp_path / stack.programs[0]).unlink()
    assert not stack.status().ready


def test_a_version_changes_with_the_stacks_own_launcher_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    executable(tmp_path / "tperf")
    monkeypatch.setenv("QBKIT_MVFST", str(tmp_path))
    hashed: list[Path] = []
    monkeypatch.setattr(launcher, "fingerprint", lambda files, *_: hashed.extend(files) or "")
    external("mvfst").version()
    assert {"launcher.py", "mvfst.py", "serve.py", "client.py"} <= {file.name for file in hashed}
    assert not {"quicly.py", "xquic.py", "lsquic.py"} & {file.name for file in hashed}


def test_path_is_searched_only_for_unambiguous_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    for stack in map(external, FOUR):
        monkeypatch.delenv(stack.setting, raising=False)
        for program in stack.programs:
            executable(tmp_path / program)
    assert [name for name in FOUR if external(name).status().ready] == ["mvfst", "lsquic-external"]


def test_lsquics_command_lines():
    at = "/run/qb/stacks/lsquic-external"
    window = str(128 << 20)
    names = ("init_max_data", "init_max_stream_data_bidi_remote", "max_cfcw", "max_sfcw")
    recv = external("lsquic-external").recv_argv(address=ADDRESS, out="/out", options={})
    assert after(recv)[:7] == [
        *(f"{at}/perf_server", "-L", "warn", "-s", ADDRESS, "-c"),
        f"test.example,{CERTIFICATE},{KEY}",
    ]
    settings = ["version=h3", *(f"{name}={window}" for name in names)]
    assert after(recv)[7:] == [word for setting in settings for word in ("-o", setting)]
    common = [f"{at}/perf_client", "-L", "warn", "-s", ADDRESS, "-H", "test.example"]
    common += ["-o", "version=h3"]
    assert after(sending("lsquic-external", "cubic")) == [
        *common,
        "-A",
        "1",
        "-p",
        "0:1000000000000",
    ]
    sized = after(sending("lsquic-external", "adaptive", None, pacing=False))
    assert sized == [*common, "-A", "3", "-p", "0:1000", "-o", "pace_packets=0"]


def test_quiclys_command_lines():
    quicly = external("quicly")
    assert isinstance(quicly, ServingStack)
    choices = {}
    for options in ({}, {"initial_window_packets": 32}, {"pacing": True}):
        words = quicly.serve_argv(
            Transfer(address=ADDRESS, controller="pico", out="/out", options=dict(options))
        )
        cli, *keys, flag, choice, ip, port = after(words)
        assert (cli, flag, ip, port) == ("/run/qb/stacks/quicly/cli", "-C", "10.2.0.1", "4001")
        assert keys == ["-c", CERTIFICATE, "-k", KEY]
        choices[str(options)] = choice
    assert list(choices.values()) == ["pico", "pico:32", "pico:10:p"]
    fetch = "-O -m 134217728 -M 134217728 -p /1000 10.2.0.1 4001"
    cli = "/run/qb/stacks/quicly/cli"
    assert after(sending("quicly", "pico", None)) == [cli, *fetch.split()]


def test_mvfsts_command_lines():
    mvfst = external("mvfst")
    assert isinstance(mvfst, ServingStack)
    tperf = ["/run/qb/stacks/mvfst/tperf", "-mode=server", "-host=10.2.0.1", "-port=4001"]

    def serve(controller: str, **options: bool | float) -> list[str]:
        return after(
            mvfst.serve_argv(
                Transfer(address=ADDRESS, controller=controller, out="/out", options=options)
            )
        )

    assert serve("reno") == [*tperf, "-congestion=newreno", "-pacing=false"]
    assert serve("cubic", pacing=True) == [*tperf, "-congestion=cubic", "-pacing=true"]
    assert serve("bbr", qlog=True)[4:] == [
        *("-congestion=bbr", "-pacing=true", "-server_qlogger_path=/out")
    ]
    with pytest.raises(SpecError, match="no bbr2 without pacing"):
        serve("bbr2", pacing=False)
    assert serve("bbr2modular")[4:] == ["-congestion=bbr2modular", "-pacing=true"]
    assert serve("copa", latency_factor=0.05)[4:] == [
        *("-congestion=copa", "-pacing=false", "-latency_factor=0.05")
    ]
    with pytest.raises(SpecError, match="latency_factor is of mvfst's copa, not of its cubic"):
        serve("cubic", latency_factor=0.05)
    client = [tperf[0], "-mode=client", *tperf[2:], "-duration=4", "-window=134217728"]
    assert after(sending("mvfst", "cubic", 2.5)) == client
    with pytest.raises(SpecError, match="for a duration"):
        sending("mvfst", "cubic", None)


def test_xquics_command_lines():
    at = "/run/qb/stacks/xquic"
    quiet = "-l e --qlog_disable -o /dev/null"
    recv = after(external("xquic").recv_argv(address=ADDRESS, out="/out", options={}))
    assert recv[:2] == ["/bin/sh", "-c"]
    assert f"ln -s {CERTIFICATE} server.crt && ln -s {KEY} server.key" in recv[2]
    assert recv[2].endswith(f"exec {at}/test_server -a 10.2.0.1 -p 4001 -s 1 {quiet}")
    client = f"{at}/test_client -a 10.2.0.1 -p 4001 -c"
    many = "-P 2 -n 1000000"
    for controller, words in (
        ("cubic", f"{client} c -s 104857600 -t 10 {quiet} {many}"),
        ("bbr2", f"{client} bbr2 -C -s 104857600 -t 10 {quiet} {many}"),
    ):
        assert after(sending("xquic", controller)) == words.split()
    assert after(sending("xquic", "reno", None)) == f"{client} r -s 1000 -t 10 {quiet}".split()
    with pytest.raises(SpecError, match="at most 104857600 bytes"):
        external("xquic").send_argv(
            Transfer(
                address=ADDRESS,
                controller="bbr",
                out="/out",
                duration_s=None,
                size_bytes=104857601,
                options={},
            )
        )


def run_client(*words: str) -> subprocess.Popen[str]:
    script = DRIVERS / "external/client.py"
    return subprocess.Popen([sys.executable, script, *words], stderr=subprocess.PIPE, text=True)


def test_a_client_is_ended_when_its_time_is_over():
    started = time.monotonic()
    client = run_client("--duration-s", "0.5", "--", "sleep", "60")
    assert client.wait(30) == 0
    assert time.monotonic() - started >= 0.5


@pytest.mark.slow
def test_a_client_that_ignores_sigint_is_killed():
    deaf = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)"
    client = run_client("--duration-s", "1", "--", sys.executable, "-c", deaf)
    assert client.wait(30) == 0


def test_sigterm_ends_a_client():
    client = run_client("--", "sh", "-c", "echo begun >&2; exec sleep 60")
    assert client.stderr and client.stderr.readline() == "begun\n"
    client.send_signal(signal.SIGTERM)
    assert client.wait(30) == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--", "true"], 0, ""),
        (["--", "sh", "-c", "exit 3"], 3, ""),
        (["--duration-s", "60", "--", "true"], 1, "true ended by itself after "),
        (["--", "sh", "-c", "kill -9 $$"], 128 + 9, ""),
    ],
)
def test_a_client_that_ends_by_itself(words: list[str], code: int, said: str):
    client = run_client(*words)
    text = client.communicate(timeout=30)[1]
    assert (client.returncode, text[: len(said)]) == (code, said)


GOOD = {"program": "/opt/mine", "controllers": ["cubic"]}
TABLE = "[stack.mine]\nprogram = '/bin/sh'\ncontrollers = ['cubic']\n"
COMMANDS = f"{TABLE}connect = ['x']\nlisten = ['x']\n"


def test_without_a_file_there_are_no_stacks(tmp_path: Path):
    assert configured.load(tmp_path / "stacks.toml") == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[stack", "cannot be read"),
        ("[stacks.mine]", "may only have tables named [stack.NAME]"),
        ("[stack.Mine]", "lower-case letters"),
        ("[stack]\nmine = 3", "is not a table"),
        ('[stack.mine]\nprogram = "/x"', 'needs controllers = ["cubic", "reno"]'),
        ('[stack.mine]\nprogram = "x"\ncontrollers = ["a"]', "absolute"),
        ('[stack.mine]\nprogram = "/x"\ncontrollers = [1]', "quotation"),
        (
            '[stack.mine]\nprogram = "/x"\ncontrollers = ["a"]\ncolor = "red"',
            "unknown key color; known are program, controllers, ",
        ),
        ('[stack.mine]\nprogram = "/x"\ncontrollers = ["a"]\noptions = 1', "write options as"),
        (f"{TABLE}prgram = 'x'", "unknown key prgram (did you mean program?); known are program,"),
        (
            "[stack.mine]\nprogram = '/bin/sh -c x'\ncontrollers = ['a']",
            "program is a path without arguments, not '/bin/sh -c x'; put '-c x' into connect and",
        ),
        (
            "[stack.mine]\nprogram = 'sh'\ncontrollers = ['a']",
            "program must be an absolute path, such as /usr/bin/sh, or begin with ./, not 'sh'",
        ),
        (f"{TABLE}connect = ['x']", "has connect and needs listen = ["),
        (f"{TABLE}server = '/bin/sh'", "has server, which needs connect and listen too"),
        (f"{COMMANDS}server = 'sh'", "server must be an absolute path"),
        (f"{COMMANDS}sender = 'me'", 'sender is "connect" or "listen", not \'me\''),
        (
            f"{COMMANDS}options = {{a = 'x'}}",
            "options are for programs that speak qbkit's contract",
        ),
        (
            f"{TABLE}listen = ['x']\nconnect = ['{{prt}}']",
            "connect has {prt} (did you mean port?); known are {ip}, {port}, {controller},",
        ),
        (f"{TABLE}listen = ['x']\nconnect = [3]", "lists must hold words in quotation marks"),
        (f"{TABLE}listen = 'x'\nconnect = ['x']", "write listen as ["),
    ],
)
def test_a_wrong_file_says_what_is_wrong(tmp_path: Path, text: str, complaint: str):
    file = tmp_path / "stacks.toml"
    file.write_text(text)
    with pytest.raises(SpecError, match=re.escape(complaint)):
        configured.load(file)


def test_a_wrong_file_breaks_no_other_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "stacks.toml"
    file.write_text("[stack")
    monkeypatch.setenv("QBKIT_STACKS", str(file))
    with pytest.warns(UserWarning, match="cannot be read"):
        configured.register_all()


def test_a_table_with_the_name_of_a_stack_only_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "stacks.toml"
    file.write_text('[stack.tcp]\nprogram = "/bin/true"\ncontrollers = ["cubic"]\n')
    words = [sys.executable, "-c", "from qbkit import stacks; print(stacks.get('tcp').source)"]
    monkeypatch.setenv("QBKIT_STACKS", str(file))
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "the Linux kernel" in done.stdout
    assert f"[stack.tcp] in {file}: there is already a stack 'tcp'" in done.stderr
    assert "choose another name" in done.stderr


def test_a_configured_stack_is_what_its_table_says(tmp_path: Path):
    program = tmp_path / "driver"
    said = {**GOOD, "program": str(program), "options": {"qlog": "write a full qlog"}}
    mine = configured.from_table("mine", said, tmp_path)
    assert (mine.name, mine.controllers()) == ("mine", ("cubic",))
    assert mine.options == {"qlog": "write a full qlog"}
    assert not mine.status().ready
    assert str(program) in mine.status().reason
    with pytest.raises(StackNotReady, match="mine is not ready"):
        mine.build()
    executable(program, "#!/bin/sh\necho version 7\n")
    assert mine.status().ready
    assert mine.mounts() == {"/run/qb/stacks/external-mine": tmp_path}
    assert mine.program() == ["/run/qb/stacks/external-mine/driver"]
    assert re.fullmatch("[0-9a-f]{12}", mine.version())
    versioned = configured.from_table("mine", {**said, "version_command": [str(program)]}, tmp_path)
    assert re.fullmatch("version 7, program [0-9a-f]{12}", versioned.version())


def test_a_mistake_in_one_table_breaks_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_registry: None
):
    file = tmp_path / "stacks.toml"
    file.write_text(f"[stack.broken]\nprogram = 3\n{TABLE}")
    monkeypatch.setenv("QBKIT_STACKS", str(file))
    with pytest.warns(UserWarning, match="stack.broken"):
        configured.register_all()
    assert stacks.get("mine").controllers() == ("cubic",)


def commands(tmp_path: Path, **more: object) -> Stack:
    """A stack with a client in a folder of its own and a server of this machine."""
    client = executable(tmp_path / "client")
    table = {
        "program": str(client),
        "server": "/bin/sh",
        "controllers": {"cubic": "1", "bbr": "2"},
        "connect": ["-A{controller}", "{ip}:{port}", "-n", "{bytes}", "{{}}"],
        "listen": ["-p", "{port}", "{cert}", "{key}", "-A{controller}"],
        **more,
    }
    return configured.from_table("own", table, tmp_path / "stacks.toml")


WHO = {"address": ADDRESS, "controller": "bbr", "out": "/out", "options": {}}


def test_values_take_the_place_of_words_in_braces(tmp_path: Path):
    own = commands(tmp_path)
    assert own.controllers() == ("cubic", "bbr")
    assert not isinstance(own, ServingStack)
    words = own.send_argv(Transfer(**WHO, duration_s=20, size_bytes=None))
    endless = ["-A2", "10.2.0.1:4001", "-n", str(10**12), "{}"]
    assert after(words) == ["/run/qb/stacks/external-own/client", *endless]
    assert words[words.index("--duration-s") + 1] == "20"  # ended by the script
    sized = own.send_argv(Transfer(**WHO, duration_s=None, size_bytes=1000))
    assert after(sized)[-2] == "1000"
    assert "--duration-s" not in sized
    served = own.recv_argv(address=ADDRESS, out="/out", options={})
    (shell,) = {Path("/bin/sh").resolve()}  # the guest sees /usr; nothing is mounted
    assert after(served) == [str(shell), "-p", "4001", CERTIFICATE, KEY, "-A"]
    mounts = own.mounts()
    assert mounts["/run/qb/stacks/external-own"] == tmp_path
    assert Path("/usr/bin") not in mounts.values()
    assert "started by" in own.version()


def test_a_program_that_is_given_the_duration_ends_by_itself(tmp_path: Path):
    own = commands(tmp_path, connect=["-t", "{duration_s}"])
    words = own.send_argv(Transfer(**WHO, duration_s=2.5, size_bytes=None))
    assert after(words)[1:] == ["-t", "2.5"]
    assert "--duration-s" not in words
    with pytest.raises(SpecError, match="own sends for a duration only: nothing in its"):
        own.send_argv(Transfer(**WHO, duration_s=None, size_bytes=1000))


def test_the_end_that_listens_may_send(tmp_path: Path):
    own = commands(tmp_path, sender="listen")
    assert isinstance(own, ServingStack)
    assert after(own.serve_argv(Transfer(**WHO)))[-1] == "-A2"
    fetched = own.fetch_argv(Transfer(**WHO, duration_s=20, size_bytes=None))
    assert after(fetched)[0] == "/run/qb/stacks/external-own/client"


@pytest.fixture
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove what a test registers when it ends."""
    stacks.all_stacks()
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))


@pytest.fixture(scope="module")
def quic_go() -> Stack:
    stack = QuicGo()
    if not stack.status().ready and not shutil.which("go"):
        pytest.skip(f"quic-go cannot be built here: {stack.status().reason}")
    stack.build()
    return stack


def driver_of(stack: Stack) -> Path:
    (folder,) = stack.mounts().values()
    return folder / "quic-go"


def fills_the_link(name: str) -> bool:
    link = qb.Bottleneck(rate_mbps=20, rtt_ms=50, buffer_bdp=1)
    run = qb.Experiment(bottleneck=link, flows=[name], duration_s=8, seed=1).run()
    return float(run.throughput_mbps.sel(time=slice(2, None)).mean()) >= 0.85 * 20


@pytest.mark.guest
def test_a_configured_driver_fills_the_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_registry: None, quic_go: Stack
):
    """quic-go's driver under another name, with nothing but the user's file."""
    shutil.copy(driver_of(quic_go), tmp_path / "renamed")
    file = tmp_path / "stacks.toml"
    file.write_text(
        f'[stack.stand-in]\nprogram = "{tmp_path}/renamed"\ncontrollers = ["cubic", "reno"]\n'
    )
    monkeypatch.setenv("QBKIT_STACKS", str(file))
    configured.register_all()
    assert fills_the_link("stand-in:reno")


PERF_CLIENT = """#!/bin/sh
# Takes lsquic's documented options, sends with quic-go.
while getopts "L:s:H:A:p:o:" option; do
    case $option in
    s) address=$OPTARG ;;
    A) case $OPTARG in 1) controller=cubic ;; *) exit 9 ;; esac ;;
    p) bytes=${OPTARG#0:} ;;
    \\?) exit 8 ;;
    esac
done
exec "${0%/*}/quic-go" send --connect "$address" --controller "$controller" \\
    --bytes "$bytes" --out "$(mktemp -d)"
"""
PERF_SERVER = """#!/bin/sh
while getopts "L:s:c:o:" option; do
    case $option in
    s) address=$OPTARG ;;
    c) keys=${OPTARG#*,} ;;
    \\?) exit 8 ;;
    esac
done
exec "${0%/*}/quic-go" recv --listen "$address" --cert "${keys%,*}" --key "${keys#*,}" \\
    --out "$(mktemp -d)"
"""


@pytest.mark.guest
def test_stand_ins_for_lsquics_programs_fill_the_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quic_go: Stack
):
    """Programs of those names that take those options: finding, mounting, starting, ending."""
    shutil.copy(driver_of(quic_go), tmp_path / "quic-go")
    executable(tmp_path / "perf_client", PERF_CLIENT)
    executable(tmp_path / "perf_server", PERF_SERVER)
    monkeypatch.setenv("QBKIT_LSQUIC", str(tmp_path))
    monkeypatch.setenv("PATH", os.environ["PATH"])
    assert fills_the_link("lsquic-external:cubic")


@pytest.mark.guest
def test_a_client_that_dies_is_a_failed_run_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quic_go: Stack
):
    shutil.copy(driver_of(quic_go), tmp_path / "quic-go")
    executable(tmp_path / "perf_client", "#!/bin/sh\nexit 5\n")
    executable(tmp_path / "perf_server", PERF_SERVER)
    monkeypatch.setenv("QBKIT_LSQUIC", str(tmp_path))
    sentence = r"sent no packet to the bottleneck: the sender's program ended with status 5"
    with pytest.raises(RunFailed, match=sentence):
        fills_the_link("lsquic-external:cubic")
