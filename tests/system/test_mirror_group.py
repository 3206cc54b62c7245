"""Collections over the topology of a group, without a ring; and a node's archive as a collection."""
import json
import re

import pytest

import mirrornodes
import ringnodes
from mirrornodes import NAME, Replica, fill, tree
from ringnodes import end, wait_for


class Member(ringnodes.Node):
    """A node that is in a group and in no ring."""

    def ready(self):
        lines = [self.process.stdout.readline() for _ in range(3)]
        match = re.search(r"in its group at [0-9.]+:(\d+);", lines[2])
        assert match, "".join(lines) + self.said
        self.port = int(match.group(1))
        self.url = lines[0].split()[-1]
        return self


@pytest.fixture()
def members(mnemon, tmp_path):
    made = []

    def new(count):
        for i in range(count):
            replica = Replica(Member(mnemon, tmp_path / f"node{i}", f"127.0.0.{i + 2}"))
            replica.settings = "[group]\nperiod = 1 s\nsilence = 60 s\n"
            what = ("create", "libraries", "--open") if i == 0 else ("join", f"libraries@{made[0].node.place}")
            done = replica.node.run("group", *what)
            assert done.returncode == 0, done.stderr
            made.append(replica.start())
        return made

    yield new
    end([each.node for each in made])


def test_neighbours_in_a_group_are_sources(members, tmp_path):
    nodes = members(4)
    source = tmp_path / "source"
    fill(source, large=2_000_000)
    wish = nodes[0].publish(source)
    for each in nodes[1:]:
        each.do("subscribe", wish)
    for each in nodes[1:]:
        each.await_version(1)
        assert tree(each.current) == tree(source)
    (source / "new").write_text("new")
    nodes[0].publish(source)
    for each in nodes[1:]:
        each.await_version(2)
        assert tree(each.current) == tree(source)
    assert "version 2" in nodes[1].do("status")


def test_a_collection_may_be_asked_for_by_its_name(members, tmp_path):
    """Whoever is first to offer one of that name is believed, and from then on no other."""
    nodes = members(3)
    source = tmp_path / "source"
    fill(source, large=100_000, small=10)
    wish = nodes[0].publish(source)
    nodes[1].do("subscribe", NAME, "--from", nodes[0].node.place)
    nodes[2].do("subscribe", NAME)  # neighbours are asked
    for node in nodes[1:]:
        node.await_version(1)
        assert json.loads((node.root / "setup.json").read_text())["publisher"] == wish.split("@")[1]


def warc(url, text):
    http = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(text)}\r\n\r\n{text}"
    return (f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2026-01-02T03:04:05Z\r\n"
            f"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{abs(hash(url)) % 10**12:012}>\r\n"
            f"Content-Type: application/http;msgtype=response\r\nContent-Length: {len(http)}\r\n\r\n{http}\r\n\r\n")


def test_an_archive_is_a_collection(mnemon, tmp_path):
    with mirrornodes.many(mnemon, tmp_path) as new:
        origin, receiver = new(2)

        def store(url, text):
            (tmp_path / "page.warc").write_text(warc(url, text))
            done = origin.node.run("import", str(tmp_path / "page.warc"))
            assert done.returncode == 0, done.stderr

        def publish():
            return origin.do("publish", NAME, "--archive").split("subscribe ")[1].strip()

        store("http://a.example/", "<p>the first page " + "x" * 3000)
        (origin.node.directory / "access.aclj").write_text("")
        wish = publish()
        receiver.do("subscribe", wish, "--from", origin.node.place)
        receiver.await_version(1)
        files = sorted(str(p.relative_to(receiver.root / "trees" / "1")) for p in receiver.current.resolve().rglob("*"))
        assert files[:1] == ["access.aclj"]
        assert all(f.startswith(("access.aclj", "volumes")) for f in files)
        store("http://b.example/", "<p>the second page")
        publish()
        receiver.await_version(2)
        for segment in receiver.current.resolve().glob("volumes/*/*.warc.*"):
            done = receiver.node.run("import", str(segment))
            assert done.returncode == 0, done.stderr
        origin.node.kill()  # so that it is not read through the ring
        for url, text in (("http://a.example/", "first"), ("http://b.example/", "second")):
            wait_for(lambda: text in receiver.node.get(f"/web/20260102030405id_/{url}"), lambda: receiver.node.said)
