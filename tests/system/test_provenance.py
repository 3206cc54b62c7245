"""Whose word a capture is: what was imported says so on every node, and only members' signatures count."""
import json
import re
import urllib.request

import pytest

from ringnodes import await_agreement, found, wait_for
from test_ring import invite
from test_together import SERVE, node, web  # noqa: F401 (fixtures by their names)
from test_visits import Library, crawl
from test_visits import start_ring as start_open_ring

RULES = "[ring]\ngrace = 4 s\ncompare = 2 s\n"


def write_warc(path, records):
    """(URL, date, body) each: what anybody can write."""
    out = b""
    for number, (url, date, body) in enumerate(records):
        block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body
        lines = ["WARC/1.1", "WARC-Type: response", f"WARC-Target-URI: {url}", f"WARC-Date: {date}",
                 f"WARC-Record-ID: <urn:uuid:6f5d8b1e-0c9f-4f7e-9f43-2f3f3a3c9d{number:02x}>",
                 "Content-Type: application/http;msgtype=response", f"Content-Length: {len(block)}", "", ""]
        out += "\r\n".join(lines).encode() + block + b"\r\n\r\n"
    path.write_bytes(out)
    return path


def prepared(each):
    each.directory.mkdir()
    (each.directory / "mnemon.conf").write_text(RULES)
    return each


def join(each, founder):
    return each.start("--join", founder.place, "--token", invite(founder), *SERVE)


def ask(each, path, **headers):
    asked = urllib.request.Request(each.url + path, headers=headers)
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return answer.headers, answer.read().decode()


def cdx(each, url, *options):
    lines = each.get(f"/cdx?url={url}&output=json&fl=timestamp,provenance,voucher{''.join('&' + o for o in options)}")
    rows = [json.loads(line) for line in lines.splitlines()]
    return [(row["timestamp"], row["provenance"], row.get("voucher")) for row in rows if "timestamp" in row]


def frame(each, path):
    return ask(each, path, Accept="text/html", **{"Sec-Fetch-Dest": "document"})[1]


def archived(each, url):
    done = each.run("archive", url, "--scope", "page", "--allow-private")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def ring(node, web, tmp_path):
    """A founder, one who has forged something and one who knows of nothing; a page that a member has fetched."""
    origin = web(hosts=1, pages=1)
    url = f"http://{origin.names[0]}/"
    stranger = prepared(node(9))
    found(stranger, "--open")
    stranger.start(*SERVE)
    archived(stranger, url)
    signed = tmp_path / "signed.warc"
    assert stranger.run("export", url, "--output", signed).returncode == 0
    assert b"Mnemon-Signature: " + stranger.key.encode() in signed.read_bytes()
    stranger.stop()
    forged = write_warc(tmp_path / "forged.warc", [
        (url, "2010-01-02T03:04:05Z", b"<title>forged</title>what was never there"),
        (url, "2035-01-02T03:04:05Z", b"<title>forged</title>what will never be"),
        ("http://elsewhere.example/", "2010-01-02T03:04:05Z", b"<title>elsewhere</title>"),
    ])
    first, liar, reader = prepared(node(2)), prepared(node(3)), prepared(node(4))
    for file in (forged, signed):  # before it joins: then nobody keeps it from that
        done = liar.run("import", file)
        assert done.returncode == 0, done.stderr
    found(first, "--replicas", "3", "--scope", f"{origin.names[0]}*")
    first.start(*SERVE)
    for each in (liar, reader):
        join(each, first)
    await_agreement([first, liar, reader])
    archived(reader, url)
    yield first, liar, reader, stranger, url


def test_imports_have_a_mark_on_every_node_and_only_members_signatures_count(ring, tmp_path):
    first, liar, reader, stranger, url = ring
    importer, fetcher = liar.key, reader.key
    for each in (first, reader):
        wait_for(lambda: len(cdx(each, url)) == 3, lambda: f"{cdx(each, url)} at {each.place}\n{each.said}")
        marks = sorted(cdx(each, url))
        assert marks[0] == ("20100102030405", "imported", importer[:12])
        assert [m for m in marks if m[1] == "fetched"] == [marks[2]] and marks[2][2] == fetcher[:12], marks
        assert marks[1][1:] == ("imported", stranger.key[:12]), "the signature of a key that was never invited counts for nothing"
        assert "2035" not in each.get(f"/cdx?url={url}"), "its time has not come"
        assert each.get("/cdx?url=http://elsewhere.example/") == "", "it is out of scope"
        # A reader who wants only what members have fetched.
        assert [m[1] for m in cdx(each, url, "trust=members")] == ["fetched"]
        assert json.loads(each.get(f"/api/v1/capture?url={url}&timestamp=2010"))["provenance"] == "imported"
        trusted = json.loads(each.get(f"/api/v1/capture?url={url}&timestamp=2010&trust=members"))
        assert (trusted["provenance"], trusted["fetched_by"], trusted["fetched_by_member"]) == ("fetched", fetcher, True)
        headers, body = ask(each, f"/web/20100102030405id_/{url}")
        assert "never there" in body
        assert (headers["X-Mnemon-Provenance"], headers["X-Mnemon-Imported-By"]) == ("imported", importer)
        headers, body = ask(each, f"/web/~members/2010id_/{url}")
        assert "never there" not in body and headers["X-Mnemon-Provenance"] == "fetched"
        assert headers["X-Mnemon-Fetched-By"] == fetcher
        shown = frame(each, f"/web/20100102030405/{url}")
        assert f"imported by {importer}" in shown and "id=stranger" not in shown
        shown = frame(each, f"/web/{marks[1][0]}/{url}")
        assert f"imported by {importer}" in shown and f"signed by {stranger.key}" in shown, shown
        details = each.get(f"/details/{marks[1][0]}/{url}")
        assert "not known as a member" in details and "imported from a file" in details, details
        shown = frame(each, f"/web/~members/2010/{url}")
        assert "id=importer" not in shown and "~members/" not in re.search("<title>.*", shown).group()
        assert re.search(r'<iframe id=replay [^>]* src="/web/~[0-9a-f]{32}-members/', shown), shown
    # TimeMaps stay what others can read: no attribute that the standard lacks.
    links = reader.get(f"/web/timemap/link/{url}")
    mementos = re.findall(r'^<([^>]*)>; rel="[a-z ]*memento"; datetime="[^"]*",?$', links, re.M)
    assert len(mementos) == 3, links
    # Nobody is blamed for what another node's file said.
    assert [each.status().get("complaints") for each in (first, reader)] == [[], []]


def test_the_default_of_a_node_is_its_operators(ring):
    first, liar, reader, stranger, url = ring
    own = lambda: first.run("list", "--local", url).stdout.splitlines()  # noqa: E731
    wait_for(lambda: len(own()) == 3, lambda: f"{own()}\n{first.said}")
    (first.directory / "mnemon.conf").write_text(RULES + "[archive]\ntrust = members\n")
    # Who is a member is remembered, also of nodes that are not there: the fetcher leaves, and its word counts still.
    for each in (first, liar, reader):
        each.stop()
    first.start(*SERVE)
    wait_for(lambda: [m[1] for m in cdx(first, url)] == ["fetched"], lambda: str(cdx(first, url)) + first.said)
    assert len(cdx(first, url, "trust=any")) == 3
    assert "voucher" not in first.get(f"/cdx/search/cdx?url={url}"), "the fields of others stay theirs"
    assert first.get(f"/web/timemap/link/{url}").count("memento\"") == 1
    assert "imported by" not in frame(first, f"/web/2010/{url}")
    assert "imported by" in frame(first, f"/web/~any/2010/{url}")


def test_a_ring_may_take_imports_of_nobody(ring, node, tmp_path):
    first, liar, reader, stranger, url = ring
    wait_for(lambda: len(cdx(reader, url)) == 3, lambda: f"{cdx(reader, url)}\n{reader.said}")
    refused = liar.run("ring", "imports", "nobody")
    assert refused.returncode == 1, "only the founder says so"
    done = first.run("ring", "imports", "nobody")
    assert done.returncode == 0 and "3 of 3 nodes have confirmed" in done.stdout, done.stdout + done.stderr
    assert "from nobody" in reader.run("ring", "imports").stdout
    new = write_warc(tmp_path / "new.warc", [(url, "2011-01-02T03:04:05Z", b"late")])
    done = liar.run("import", new)
    assert done.returncode == 1 and "takes imports from nobody" in done.stderr
    late = prepared(node(5))
    join(late, first)
    await_agreement([first, liar, reader, late])
    wait_for(lambda: [m[1] for m in cdx(late, url)] == ["fetched"], lambda: str(cdx(late, url)) + late.said)
    held = late.run("list", "--local", url)
    wait_for(lambda: len(late.run("list", "--local", url).stdout.splitlines()) == 1, held.stdout)
    # And of everybody again: what was refused comes.
    assert first.run("ring", "imports", "members").returncode == 0
    wait_for(lambda: len(cdx(late, url)) == 3, lambda: str(cdx(late, url)) + late.said)


class Fickle(Library):
    """The first who asks for its page gets something else than all others."""

    def answer(self, host, path):
        status, kind, body = super().answer(host, path)
        if path == "/p1.html":
            body += b" for you alone" if next(self.numbers) == 0 else b" for everybody"
        return status, kind, body


def test_witnesses_who_got_different_bytes_are_shown(node):
    origin = Fickle(hosts=1, pages=2)
    try:
        nodes = start_open_ring(node, 3, "--replicas", "3", "--witnesses", "3")
        crawl(nodes, origin, "1 h")
        url = f"http://{origin.names[0]}/p1.html"
        keys = {each.key for each in nodes}

        def captures(each):
            return [json.loads(line) for line in each.get(f"/cdx?url={url}&output=json").splitlines()]

        def details(each, capture):
            return json.loads(each.get(f"/api/v1/capture?url={url}&timestamp={capture['id']}"))

        for each in nodes:
            wait_for(lambda: {details(each, c)["agreement"]["of"] for c in captures(each)} == {3}, lambda: str(captures(each)))
            both = captures(each)
            assert len(both) == 2, "of the three, two agree"
            for capture in both:
                told = details(each, capture)
                same, others = told["witnesses"], told["witnesses_of_others"]
                assert told["agreement"] == {"agree": len(same), "of": 3}
                assert {w["node"] for w in same + others} == keys and {len(same), len(others)} == {1, 2}
                # Every version has an address, where it can be opened and compared.
                body = ask(each, f"/web/{capture['id']}id_/{url}")[1]
                assert body.endswith(" for you alone" if len(same) == 1 else " for everybody")
                sentence = f"{len(same)} of 3 witnesses agree"
                assert sentence in frame(each, f"/web/{capture['id']}/{url}")
                page = each.get(f"/details/{capture['id']}/{url}")
                assert sentence in page and all(key in page for key in keys)
                for other in others:
                    assert f"/details/{other['id']}/{url}" in page and f"/compare/{capture['id']}/{other['id']}/{url}" in page
                    compared = each.get(f"/compare/{capture['id']}/{other['id']}/{url}?view=text")
                    assert "alone" in compared and "everybody" in compared, compared
                    assert ask(each, f"/web/{other['id']}id_/{url}")[1] != body
            calendar = each.get(f"/web/*/{url}")
            assert "1 of 3 witnesses agree" in calendar and "2 of 3 witnesses agree" in calendar, calendar
            alike = f"http://{origin.names[0]}/p0.html"
            newest = json.loads(each.get(f"/api/v1/capture?url={alike}"))
            wait_for(lambda: json.loads(each.get(f"/api/v1/capture?url={alike}"))["agreement"] == {"agree": 3, "of": 3}, str(newest))
    finally:
        origin.close()
