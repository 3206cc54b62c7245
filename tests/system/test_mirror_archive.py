"""A node's archive as a collection: subscribers index it and serve it beside their own, marked with its origin."""
import hashlib
import json
import random
import threading
import urllib.error
import urllib.parse
import urllib.request

import pytest

from mirrornodes import NAME, Replica
from ringnodes import end, wait_for
from test_mirror_group import Member

STAMP = "20260102030405"


def warc(path, pages):
    """pages: (url, html) each."""
    with open(path, "wb") as out:
        for i, (url, text) in enumerate(pages):
            http = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(text)}\r\n\r\n{text}"
            out.write((f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\n"
                       f"WARC-Date: 2026-01-02T03:04:05Z\r\n"
                       f"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{i:012}>\r\n"
                       f"Content-Type: application/http;msgtype=response\r\nContent-Length: {len(http)}\r\n\r\n"
                       f"{http}\r\n\r\n").encode())


class Archive(Replica):
    """A node in a group, with an archive of its own or of others."""

    def store(self, tmp_path, pages):
        warc(tmp_path / "pages.warc", pages)
        done = self.node.run("import", str(tmp_path / "pages.warc"))
        assert done.returncode == 0, done.stderr

    def publish_archive(self):
        return self.do("publish", NAME, "--archive").split("subscribe ")[1].strip()

    def archive(self):
        return self.state().get("archive") or {}

    def await_archive(self, number):
        wait_for(lambda: self.archive().get("number") == number and self.archive()["state"] == "ready",
                 lambda: f"{self.state()}\n{self.node.said}")

    def ask(self, path, **headers):
        """Status, body, headers."""
        try:
            with urllib.request.urlopen(urllib.request.Request(self.node.url + path, headers=headers), timeout=30) as got:
                return got.status, got.read().decode(), got.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), error.headers

    def page(self, url):
        return self.ask(f"/web/{STAMP}id_/{url}")

    def cdx(self, url):
        return self.ask("/cdx?" + urllib.parse.urlencode({"url": url, "output": "json"}))[1]

    def found(self, words):
        status, body, _ = self.ask("/api/v1/search?" + urllib.parse.urlencode({"q": words}))
        return [r["url"] for r in json.loads(body)["results"]] if status == 200 else []


@pytest.fixture()
def pair(mnemon, tmp_path):
    made = []
    for i in range(2):
        replica = Archive(Member(mnemon, tmp_path / f"node{i}", f"127.0.0.{i + 2}"))
        replica.settings = "[group]\nperiod = 1 s\nsilence = 60 s\n"
        what = ("create", "libraries", "--open") if i == 0 else ("join", f"libraries@{made[0].node.place}")
        done = replica.node.run("group", *what)
        assert done.returncode == 0, done.stderr
        made.append(replica.start())
    yield made
    end([each.node for each in made])


def test_an_archive_is_served_by_those_who_subscribe(pair, tmp_path):
    origin, receiver = pair
    rng = random.Random(1)
    bulk = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz0123456789 ", k=2_000_000))
    origin.store(tmp_path, [("http://a.example/", "<title>One</title><p>walrus"),
                            ("http://a.example/copy", "<title>One</title><p>walrus"),
                            ("http://a.example/secret", "<p>badger"),
                            ("http://a.example/hidden", "<p>ocelot"),
                            ("http://a.example/large", f"<p>{bulk}")])
    (origin.node.directory / "access.aclj").write_text('example,a)/secret - {"access": "block"}\n'
                                                       'example,a)/hidden - {"access": "exclude"}\n')
    wish = origin.publish_archive()
    receiver.do("subscribe", wish)
    receiver.await_archive(1)
    first = receiver.archive()
    assert first["records"] == 5 and first["damaged"] == 0, first

    status, body, headers = receiver.page("http://a.example/")
    assert (status, headers["X-Mnemon-Source"]) == (200, f"collection {wish}") and "walrus" in body
    assert "walrus" in receiver.page("http://a.example/copy")[1]  # a revisit
    assert receiver.page("http://a.example/secret")[0] == 451
    assert receiver.page("http://a.example/hidden")[0] == 404
    assert f"{wish}/00000001.warc.zst" in receiver.cdx("a.example/*")
    assert "hidden" not in receiver.cdx("a.example/*")
    shown = receiver.ask(f"/web/{STAMP}/http://a.example/", Accept="text/html", **{"Sec-Fetch-Dest": "document"})[1]
    assert f"from the collection {NAME}" in shown
    assert wish in receiver.ask(f"/details/{STAMP}/http://a.example/")[1]
    assert STAMP in receiver.ask("/web/timemap/link/http://a.example/")[1]
    wait_for(lambda: set(receiver.found("walrus")) == {"http://a.example/", "http://a.example/copy"},
             lambda: str(receiver.found("walrus")))
    assert receiver.found("badger") == receiver.found("ocelot") == []
    assert "version 1" in receiver.do("status")
    assert receiver.node.run("list").stdout == ""  # what is its own

    before = receiver.fetched()
    origin.store(tmp_path, [("http://a.example/new", "<p>narwhal")])
    origin.publish_archive()
    receiver.await_archive(2)
    assert receiver.archive()["records"] == 1
    assert receiver.fetched() - before < before / 2
    assert "narwhal" in receiver.page("http://a.example/new")[1]
    wait_for(lambda: receiver.found("narwhal") == ["http://a.example/new"], lambda: receiver.node.said)

    (receiver.node.directory / "access.aclj").write_text('example,a)/new - {"access": "block"}\n')
    wait_for(lambda: receiver.page("http://a.example/new")[0] == 451, "its own rules count too")

    receiver.do("unsubscribe", NAME)
    wait_for(lambda: receiver.page("http://a.example/")[0] == 404, lambda: receiver.node.said)
    wait_for(lambda: receiver.found("walrus") == [], lambda: str(receiver.found("walrus")))
    wait_for(lambda: not (receiver.root / "deposit").exists(), "its index is removed")


def test_a_crash_while_indexing_does_no_harm(pair, tmp_path):
    origin, receiver = pair
    origin.store(tmp_path, [(f"http://a.example/{i}", f"<p>page{i} " + "lynx " * (i % 97)) for i in range(1500)])
    wish = origin.publish_archive()
    receiver.do("subscribe", wish)
    wait_for(lambda: (receiver.root / "deposit").exists(), lambda: receiver.node.said)
    receiver.node.kill()  # mostly in the middle
    receiver.node.start()
    receiver.await_archive(1)
    assert receiver.cdx("a.example/*").count('"http://a.example/') == 1500
    for i in (0, 700, 1499):
        assert f"page{i} " in receiver.page(f"http://a.example/{i}")[1]
    receiver.node.kill()
    receiver.node.start()
    receiver.await_archive(1)
    assert receiver.archive()["records"] == 0  # all is known


def test_what_vanishes_at_the_owner_vanishes_here(pair, tmp_path):
    """A compaction makes other segments: the index is made anew. And rules that cannot be read are refused."""
    origin, receiver = pair
    gone = "<p>buzzard " + "x" * 9000
    origin.store(tmp_path, [("http://a.example/", "<p>kestrel"), ("http://a.example/gone", gone)])
    receiver.do("subscribe", origin.publish_archive())
    receiver.await_archive(1)
    wait_for(lambda: receiver.found("buzzard"), lambda: receiver.node.said)
    origin.node.stop()
    for what in (("rm", "0:" + hashlib.sha256(gone.encode()).hexdigest()), ("compact", "--dead", "0")):
        done = origin.node.run("store", *what)
        assert done.returncode == 0, done.stderr
    origin.start()
    answers, is_done = [], threading.Event()

    def read():
        while not is_done.is_set():
            answers.append(receiver.page("http://a.example/"))
            answers.append(receiver.ask("/cdx?url=a.example/"))

    reader = threading.Thread(target=read)
    reader.start()
    origin.publish_archive()
    receiver.await_archive(2)
    is_done.set()
    reader.join()
    assert all(status == 200 and ("kestrel" in body or "example,a)/" in body) for status, body, _ in answers)
    assert list(receiver.current.resolve().glob("volumes/0/00000001-1.warc.zst"))
    wait_for(lambda: receiver.page("http://a.example/gone")[0] == 404, lambda: receiver.node.said)
    assert "kestrel" in receiver.page("http://a.example/")[1]
    wait_for(lambda: receiver.found("buzzard") == [] and receiver.found("kestrel"), lambda: receiver.node.said)
    wait_for(lambda: len(list((receiver.root / "deposit").glob("0-*"))) == 1, "the old index is removed")

    (origin.node.directory / "access.aclj").write_text("nonsense\n")
    origin.store(tmp_path, [("http://a.example/new", "<p>osprey")])
    origin.publish_archive()
    wait_for(lambda: receiver.archive()["state"] == "refused", lambda: f"{receiver.archive()}\n{receiver.node.said}")
    assert receiver.archive()["number"] == 2 and "access.aclj" in receiver.archive()["reason"]
    assert receiver.page("http://a.example/new")[0] == 404
    assert "kestrel" in receiver.page("http://a.example/")[1]
    assert "version 2 is served" in receiver.do("status")
    wait_for(lambda: "that cannot be used" in receiver.complaints(), lambda: receiver.complaints() + receiver.node.said)
