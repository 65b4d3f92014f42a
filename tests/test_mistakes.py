"""Flows that cannot be, alone or on their stack: refused in one sentence before anything runs."""

from __future__ import annotations

import pytest

import qbkit as qb
from qbkit.errors import SpecError

OF_APPS = [
    ("video", "there is no app 'video'; write bulk, rate mbps=5"),
    ("rate fps=30", "app rate has no mbps"),
    ("rate mbps=5 off_s=1", "app rate does not use off_s"),
    ("rate mbps=fast", "has 'fast' where a number must be"),
    ("requests kb=10", "app requests has no think_s"),
    ("objects 1:10 0:5", "the object at 0 s follows one at 1 s"),
    ("objects 1", "there is no file '1' in /"),
    ("objects 1:5 2", "'2' is no time with its size"),
    ("bulk mbps=5", "there is no app 'bulk mbps=5'; write bulk, rate mbps=5"),
    ("objects 1:0", "at least 0.001 kB"),
    ("onoff on_s=1 off_s=1 seed=²", "has '²' where a number must be"),
    ("rate mbps=5 mbps=6", "app rate has mbps twice; keep one"),
    ("rate mbps=1e-6 fps=1000", "makes frames of less than a byte; raise mbps or lower fps"),
]
OF_RECEIVERS = [
    (
        "tcp:cubic?receiver=lazy",
        "there is no receiver 'lazy'; write the name of a QUIC stack, optimistic",
    ),
    ("tcp:cubic?receiver=optimistic every_ms=9", "receiver optimistic has no 'every_ms=9'"),
    ("tcp:cubic?receiver=withholds&app=rate mbps=5", "has no application; leave out app"),
    ("tcp:cubic?receiver=withholds&read_mbps=5", "leave out read_mbps"),
    ("tcp:cubic?ecn=true&receiver=withholds", "has no ECN; leave out ecn, or receiver"),
    ("quinn:cubic?receiver=optimistic", "only TCP segments can be crafted, as QUIC's are"),
    ("tcp:dctcp?receiver=withholds", "tcp:dctcp needs ECN, which a receiver that misbehaves"),
]
OF_SECOND_CONNECTIONS = [
    ("lsquic:cubic?resume=0rtt", "lsquic has one connection in a flow; noq, picoquic, quic-go"),
    ("quinn@0.11.5:cubic?resume=0rtt", "can have a second one that resumes"),
    ("quinn:cubic?resume=2rtt", "there is no resume '2rtt'; write 0rtt"),
    ("quinn:cubic?resume=0rtt mb=1", "resume 0rtt has no 'mb=1'; write 0rtt"),
    ("quinn:cubic?resume=0rtt kb=0", "kb = 0: input should be greater"),
    ("quinn:cubic?resume=0rtt&role=server", "leave out role, or resume"),
    ("quinn:cubic?resume=0rtt&app=rate mbps=2", "leave out app, or resume"),
    ("tcp:cubic?resume=0rtt&receiver=optimistic", "leave out receiver, or resume"),
    ("quinn:cubic?resume=0rtt pause_s=3", "lasts 3 s, and pauses for 3 s before its second"),
    ("quinn:cubic?resume=0rtt&start_s=1&stop_s=2", "lasts 1 s, and pauses for 1 s"),
]
OF_VIDEO = [
    ("media:cubic", "media has no controller 'cubic'; it has gcc, scream"),
    ("media:gcc?fps=0", "media's option fps is 0; give a number above 0 and up to 240"),
    ("media:gcc?fps=fast", "media's option fps is 'fast'; give a number above 0"),
    ("media:gcc?max_mbps=true", "media's option max_mbps is True; give a number"),
    ("media:gcc?max_mbps=0.5", "cannot start at 1000 kbit/s, outside of 150 to 500 kbit/s"),
    ("media:scream?min_kbps=2000", "cannot start at 1000 kbit/s, outside of 2000 to 50000"),
    ("media:gcc?bitrate=3", "media has no option bitrate; supported: fps, max_mbps"),
    ("media:gcc?app=rate mbps=2", "media has no app rate"),
]


OF_SETTINGS = [
    (lambda: qb.race("tcp:cubic", rate=5), "race has no setting rate (did you mean rate_mbps?);"),
    (lambda: qb.race("tcp:cubic", rerum=True), "race has no setting rerum (did you mean rerun?)"),
    (lambda: qb.explore([], engines="host"), "explore has no setting engines (did you mean engine"),
    (
        lambda: qb.conformance_study("tcp:reno", "tcp:cubic", duration=9),
        "conformance_study has no setting duration (did you mean duration_s?); it has test,",
    ),
    (
        lambda: qb.conformance_study("tcp:reno", "tcp:cubic", rate_mbps=9),
        "conformance_study has no setting rate_mbps; it belongs in bottleneck, a qb.Bottleneck",
    ),
]

FLOWS = [(f"tcp:cubic?app={text}", sentence) for text, sentence in OF_APPS]
FLOWS += [*OF_RECEIVERS, *OF_SECOND_CONNECTIONS, *OF_VIDEO]


@pytest.mark.parametrize(("flow", "sentence"), FLOWS)
def test_mistakes_get_one_sentence(flow: str, sentence: str):
    with pytest.raises(SpecError) as raised:
        qb.Experiment(flows=[flow], duration_s=3).run()
    assert sentence in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(("call", "sentence"), OF_SETTINGS)
def test_a_setting_that_is_handed_on_is_one_that_there_is(call, sentence: str):
    with pytest.raises(SpecError) as raised:
        call()
    assert str(raised.value).startswith(sentence)
