"""Pages that servers serve: generated from a seed, or taken from a recording."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont
from PIL import Image

from qbkit.errors import SpecError
from qbkit.stacks.web.pages import images
from qbkit.stacks.web.pages.generated import SHAPES, generate
from qbkit.stacks.web.pages.page import Page, Resource, read, write
from qbkit.stacks.web.pages.recorded import recorded_page
from qbkit.stacks.web.pages.sites import page_site
from qbkit.stacks.web.site import Site

URL = re.compile(rb"https://[^\s\"')<>]+")
HOSTS = "https://a.example", "https://b.example"


@pytest.fixture(scope="module")
def small() -> Page:
    return generate("small", 1)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "most_bytes"), [("small", 470_000), ("medium", 1_540_000)])
def test_a_page_has_exactly_its_size_and_all_its_resources(size: str, most_bytes: int):
    page, shape = generate(size, 7), SHAPES[size]
    assert page.size_bytes == most_bytes
    kinds = [resource.kind for resource in page.resources]
    assert kinds[0] == "html"
    for kind in ("css", "js", "font", "image"):
        assert kinds.count(kind) == getattr(shape, kind)


@pytest.mark.slow
def test_the_seed_alone_decides_the_bytes(small: Page):
    assert generate("small", 1) == small
    assert generate("small", 2) != small


def test_everything_asked_for_is_there_and_asked_for_by_its_initiator(small: Page):
    by_url = {resource.url: resource for resource in small.resources}
    asked = {
        url.decode(): resource.url
        for resource in small.resources
        if resource.kind in ("html", "css", "js")
        for url in URL.findall(resource.body)
    }
    assert set(asked) == set(by_url) - {small.document.url}
    assert all(by_url[url].initiator == initiator for url, initiator in asked.items())


def test_images_and_fonts_are_what_they_say_and_the_main_image_is_the_largest(small: Page):
    pictures = {r.url: r.body for r in small.resources if r.kind == "image"}
    assert max(pictures, key=lambda url: len(pictures[url])) == small.main_image
    for body in pictures.values():
        with Image.open(io.BytesIO(body)) as image:
            image.load()
    for resource in small.resources:
        if resource.kind == "font":
            letters = TTFont(io.BytesIO(resource.body)).getBestCmap()
            assert {ord("a"), ord("Z"), ord("5")} <= set(letters)


@pytest.mark.parametrize("size", [900, 1001, 5000, 65_537 + 900, 140_000])
def test_an_image_has_any_size(size: int):
    import numpy as np

    assert len(images.jpeg(240, 104, size, np.random.default_rng(1))) == size


def test_a_page_survives_its_folder_and_a_lost_file_is_named(small: Page, tmp_path: Path):
    write(small, tmp_path)
    assert read(tmp_path) == small
    assert (tmp_path / "css/0.css").exists()  # servers find plain paths without the list
    (tmp_path / "css/0.css").unlink()
    with pytest.raises(SpecError, match=r"lacks .*css/0\.css"):
        read(tmp_path)


def test_paths_that_cannot_all_be_files_get_numbers(tmp_path: Path):
    paths = ("/", "/a", "/a/b", "/page.json", "/=0001", "/c.css", "/" + "d" * 256)
    found = [Resource(f"{HOSTS[0]}{path}", "text/css", path.encode()) for path in paths]
    page = Page("odd", tuple(found))
    write(page, tmp_path)
    assert read(tmp_path) == page
    site = Site(tmp_path, "/", page.hosts)
    assert [file.path for file in site.files() if file.plain] == ["/a/b", "/c.css"]


def entry(url: str, kind: str, size: int, body: str | None = None, **more: object) -> dict:
    content = {"mimeType": kind, "size": size}
    if body is not None:
        content["text"] = body
    response = {"status": 200, "headers": [], "content": content, "bodySize": size}
    response |= more.pop("response", {})  # type: ignore[arg-type]
    return {"request": {"url": url}, "response": response, **more}


def har(tmp_path: Path, entries: list[dict]) -> Path:
    path = tmp_path / "shop.har"
    path.write_text(json.dumps({"log": {"entries": entries}}))
    return path


def test_an_archive_keeps_sizes_types_hosts_and_dependencies(tmp_path: Path):
    a, b = HOSTS
    png = base64.b64encode(b"\x89PNG").decode()
    path = har(
        tmp_path,
        [
            entry(f"{a}/", "text/html", 9000),
            entry(f"{a}/s.css", "text/css", 3000, _initiator={"type": "parser", "url": f"{a}/"}),
            entry(f"{b}/f.woff", "font/woff", 2000, _initiator={"url": f"{a}/s.css"}),
            entry(f"{b}/i.png?x=1", "image/png", 4, png, _initiator={"url": f"{a}/"}),
            entry(f"{b}/gone", "text/plain", 5, "sorry", response={"status": 404}),
            entry("data:image/png;base64,AA==", "image/png", 1),
        ],
    )
    path.write_text(
        path.read_text().replace('"text": "' + png, '"encoding": "base64", "text": "' + png)
    )
    page = recorded_page(path)
    found = {resource.url: resource for resource in page.resources}
    assert page.document.url == f"{a}/" and page.hosts == ("a.example", "b.example")
    assert [len(r.body) for r in page.resources] == [9000, 3000, 2000, 4, 0]
    assert found[f"{b}/i.png?x=1"].body == b"\x89PNG"
    assert found[f"{b}/gone"].status == 204  # failed when it was recorded: served as empty
    # The font is asked for by the made style sheet, everything else by the made document.
    assert f"{b}/f.woff".encode() in found[f"{a}/s.css"].body
    assert f"{b}/f.woff".encode() not in page.document.body
    assert f"{a}/s.css".encode() in page.document.body


def test_an_archive_of_web_page_replay_is_served_decoded(tmp_path: Path):
    a, _ = HOSTS
    html = b"<p>hello</p>"
    packed = gzip.compress(html)
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n"
    head += f"Content-Length: {len(packed)}\r\n\r\n"
    response = base64.b64encode(head.encode() + packed).decode()
    archive = {"Requests": {"a.example": {f"{a}/": [{"SerializedResponse": response}]}}}
    path = tmp_path / "old.wprgo"
    path.write_bytes(gzip.compress(json.dumps(archive).encode()))
    page = recorded_page(path)
    assert (page.document.url, page.document.body) == (f"{a}/", html)


def test_a_folder_is_a_site_of_one_host(tmp_path: Path):
    (tmp_path / "index.html").write_text('<img src="a/b.jpg">')
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b.jpg").write_bytes(b"jpeg")
    page = recorded_page(tmp_path)
    assert [r.path for r in page.resources] == ["/index.html", "/a/b.jpg"]
    site = page_site(str(tmp_path), 1)
    assert site.start == "/index.html"
    assert [(f.path, f.host, f.content_type) for f in site.files()] == [
        ("/index.html", "test.example", "text/html"),
        ("/a/b.jpg", "test.example", "image/jpeg"),
    ]


def test_files_of_a_folder_have_the_addresses_by_which_browsers_ask(tmp_path: Path):
    for name in ("index.html", "x+y&z.js", "a b,(1).css", "ä.png", "100%.txt", "c#d?.js"):
        (tmp_path / name).write_text("")
    paths = {r.path for r in recorded_page(tmp_path).resources}
    encoded = {"/a%20b,(1).css", "/%C3%A4.png", "/100%25.txt", "/c%23d%3F.js"}
    assert paths == {"/index.html", "/x+y&z.js", *encoded}


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("page.har", "{", "damaged or no recording"),
        ("page.har", '{"log": {"entries": []}}', "holds no HTML document"),
        ("page.har", '{"log": {"entries": [1]}}', "lack an address or a response of .*: 1"),
        ("page.wprgo", "no gzip", "damaged or no recording"),
        ("page.txt", "", "should be an HTTP Archive"),
        ("folder/other.html", "", "has no index.html"),
    ],
)
def test_what_is_no_recording_gets_one_sentence(
    name: str, content: str, sentence: str, tmp_path: Path
):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    with pytest.raises(SpecError, match=sentence) as caught:
        recorded_page(path if path.suffix != ".html" else path.parent)
    assert "\n" not in str(caught.value)


def test_a_page_that_does_not_exist_names_the_choices(tmp_path: Path):
    with pytest.raises(SpecError, match="choose small, medium, large, or the path"):
        page_site(str(tmp_path / "nowhere.har"), 1)


def test_resources_know_their_kind():
    kinds = {
        "text/html; charset=utf-8": "html",
        "application/javascript": "js",
        "image/svg+xml": "image",
        "application/font-woff": "font",
        "video/mp4": "other",
    }
    for media_type, kind in kinds.items():
        assert Resource("https://a.example/x", media_type, b"").kind == kind
