"""Which version of the protocol nodes speak: they say it, show it, and refuse what has none in common with them."""

import base64
import hashlib
import json
import pathlib
import re
import subprocess
import urllib.request

import pytest

from releases import previous_program
from ringnodes import await_agreement, found, many, program, wait_for
from test_crowd import write_warc
COMPARE = "[ring]\ncompare = 1 s\n"


@pytest.fixture
def previous():
    return previous_program()


@pytest.fixture
def node(mnemon, tmp_path):
    with many(mnemon, tmp_path) as make:
        yield make


def configure(each, text):
    each.directory.mkdir(exist_ok=True)
    (each.directory / "mnemon.conf").write_text(text)
    return each


def complaints(each):
    return [complaint["text"] for complaint in each.status()["complaints"]]


def documented_features():
    """The rows of the table in docs/protocol/versions.md: what is not there was not announced to anybody."""
    text = (pathlib.Path(__file__).parents[2] / "docs/protocol/versions.md").read_text()
    return set(re.findall(r"^\| \d+ \| `([a-z-]+)` \|", text.partition("## Features")[2].partition("\n## ")[0], re.MULTILINE))


def versions(each):
    return {n["address"]: n["text"] for n in each.status().get("nodes", [])}


def test_every_node_shows_what_all_run_and_speak(node, mnemon):
    version = json.loads(mnemon("version", "--json").stdout)["version"]
    first = node(2)
    found(first, "--open")
    first.start()
    nodes = [first, *(node(number).start("--join", first.place) for number in (3, 4))]
    await_agreement(nodes)
    expected = {each.place: f"{version}, protocol 1 to 2" for each in nodes}
    for each in nodes:
        wait_for(lambda: versions(each) == expected, lambda: str(versions(each)))
        status = each.status()
        assert all(n["protocol_spoken"] == 2 for n in status["nodes"])
        assert set(status["understood_by_all"]) == documented_features()
        shown = each.run("ring", "status").stdout
        assert all(f"{place:24} {text}" in shown for place, text in expected.items()), shown
        assert {n["version"] for n in status["neighbours"]} == {f"{version}, protocol 1 to 2"}
    assert not any(complaints(each) for each in nodes)


def test_the_page_shows_the_versions(node, mnemon):
    version = json.loads(mnemon("version", "--json").stdout)["version"]
    first = node(2)
    found(first, "--open")
    first.start()
    second = node(3).start("--join", first.place)
    await_agreement([first, second])
    wait_for(lambda: versions(first).get(second.place, "not known yet") != "not known yet", lambda: str(versions(first)))
    token = (first.directory / "token").read_text().strip()
    request = urllib.request.Request(first.url + "/dashboard", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request) as answer:
        page = answer.read().decode()
    assert f"This node runs {version}, protocol 1 to 2." in page
    assert f"<td>{second.place}<td>{version}, protocol 1 to 2<td" in page


def test_nodes_without_a_common_version_refuse_each_other_and_both_say_why(node):
    first = configure(node(2), "[ring]\nprotocol = 1\n")
    found(first, "--open")
    first.start()
    second = configure(node(3), "[ring]\nprotocol = 2\n").start("--join", first.place)
    here = f"{second.place} is refused: it speaks version 2 of the protocol, this node 1"
    there = f"{first.place} is refused: it speaks version 1 of the protocol, this node 2"
    wait_for(lambda: here in complaints(first), lambda: str(complaints(first)))
    wait_for(lambda: there in complaints(second), lambda: str(complaints(second)))
    assert here in first.run("ring", "status").stdout and f"ring: {here}" in first.said
    assert there in second.run("ring", "status").stdout and f"ring: {there}" in second.said
    # Nothing else was exchanged: not even the charter.
    assert second.status()["charter"] is None and second.status()["state"] == "asking"
    assert first.status()["known"] <= 1 and first.status()["counters"]["received"] == 0
    assert not any("blamed" in text for text in complaints(first) + complaints(second))


def test_nodes_that_share_one_version_talk(node):
    first = configure(node(2), "[ring]\nprotocol = 2\n")
    found(first, "--open")
    first.start()
    second = node(3).start("--join", first.place)
    await_agreement([first, second])
    spoken = {n["address"]: n.get("protocol_spoken") for n in first.status()["nodes"]}
    assert spoken == {first.place: 2, second.place: 2}
    assert not complaints(first) and not complaints(second)


def test_a_node_of_the_release_before_counts_as_version_1(node, previous, mnemon):
    first = node(2)
    first.program = previous
    found(first, "--open")
    first.start()
    second = node(3).start("--join", first.place)
    await_agreement([first, second])
    wait_for(lambda: versions(second).get(first.place) == "0.2 or earlier, protocol 1", lambda: str(versions(second)))
    assert second.status()["understood_by_all"] == []
    assert not complaints(first) and not complaints(second), complaints(first) + complaints(second)
    # It is upgraded, and says so by itself.
    first.stop()
    first.program = program(mnemon)
    first.start()
    wait_for(lambda: versions(second).get(first.place, "").endswith("protocol 1 to 2"), lambda: str(versions(second)))
    assert set(second.status()["understood_by_all"]) == documented_features()


def test_a_node_that_speaks_no_version_1_refuses_the_release_before(node, previous):
    first = configure(node(2), "[ring]\nprotocol = 2\n")
    found(first, "--open")
    first.start()
    second = node(3)
    second.program = previous
    second.start("--join", first.place)
    reason = f"{second.place} is refused: it speaks version 1 of the protocol, this node 2"
    wait_for(lambda: reason in complaints(first), lambda: str(complaints(first)))
    wait_for(lambda: any(f"{first.place} refuses this node" in text for text in complaints(second)),
             lambda: str(complaints(second)))
    assert second.status()["charter"] is None


def test_a_signature_of_a_later_version_is_kept_passed_on_and_shown_as_not_checked(node, previous, tmp_path):
    a, b, old = node(2), configure(node(3), COMPARE), node(4)
    configure(a, COMPARE)
    configure(old, COMPARE).program = previous
    found(a, "--open", "--replicas", "3")
    a.start()
    b.start("--join", a.place)
    old.start("--join", a.place)
    await_agreement([a, b, old])
    wait_for(lambda: versions(a).get(b.place, "").endswith("protocol 1 to 2"), lambda: str(versions(a)))
    wait_for(lambda: versions(b).get(a.place, "").endswith("protocol 1 to 2"), lambda: str(versions(b)))
    url = "http://old.example/page.html"
    later = f"v3 {'a' * 52} what a later program will sign"
    assert a.run("import", write_warc(tmp_path / "a.warc", url, b"<title>x</title>", f"Mnemon-Signature: {later}")).returncode == 0

    def held(each, program):
        done = subprocess.run([program, "list", *(("--local",) if program != previous else ()), url, "--data", each.directory],
                              capture_output=True, text=True)
        return url in done.stdout

    wait_for(lambda: held(b, b.program) and held(old, previous), lambda: str([complaints(n) for n in (a, b, old)]))
    for each in (a, b):
        page = each.get(f"/details/20110506070809/{url}")
        assert ("<dt>Fetched by</dt><dd>" + "a" * 52 + ", not checked: its signature is of version 3, this program knows"
                " up to 2</dd>") in page, page
    # The old program has the capture, without what it would have called false.
    assert "Fetched by" not in old.get(f"/details/20110506070809/{url}")
    assert not any(complaints(each) for each in (a, b, old)), [complaints(each) for each in (a, b, old)]


def sign(each, context, message):
    """As a program of the founder's would."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    seed = re.search(r"^seed (\S+)$", (each.directory / "identity").read_text(), re.MULTILINE)[1]
    secret = Ed25519PrivateKey.from_private_bytes(base64.b32decode(seed.upper() + "===="))
    return message + secret.sign(hashlib.blake2b(f"mnemon {context}".encode() + b"\0" + message).digest())


def test_charters_and_decrees_of_a_later_program_spread_and_nobody_is_blamed(node, previous):
    pytest.importorskip("cryptography")
    a, b, old = (configure(node(number), COMPARE) for number in (2, 3, 4))
    old.program = previous
    found(a, "--open", "--replicas", "3")
    charter = (a.directory / "ring" / "charter").read_bytes()
    at = 5 + 32 + 1 + len("films") + 8  # magic, layout, founder, name, created: the version follows
    assert charter[:5] == b"mnch\1" and charter[at:at + 4] == b"\1\0\0\0"
    later = sign(a, "mnemon charter 1", b"mnch\3" + charter[5:at] + b"\2\0\0\0" + charter[at + 4:-64] + b"more")
    (a.directory / "ring" / "charter.later").write_bytes(later)
    ring = hashlib.sha256(b"mnch" + charter[5:at]).digest()[:16]
    author = charter[5:37]
    decree = sign(a, "mnemon decree 1",
                  b"mnde\1" + ring + author + b"\x63\3new" + (7).to_bytes(8, "little") + b"\4what")
    name = hashlib.sha256(author + b"\x63new").digest()[:16].hex()
    (a.directory / "ring" / "decrees").mkdir()
    (a.directory / "ring" / "decrees" / name).write_bytes(decree)
    a.start()
    b.start("--join", a.place)
    old.start("--join", a.place)
    await_agreement([a, b, old])
    wait_for(lambda: (b.directory / "ring" / "charter.later").exists() and (b.directory / "ring" / "decrees" / name).exists(),
             lambda: b.said)
    assert (b.directory / "ring" / "charter.later").read_bytes() == later
    assert (b.directory / "ring" / "decrees" / name).read_bytes() == decree
    sentence = ("version 2 of the charter has the form of a later program: this node goes on with version 1, and must be"
                " upgraded")
    for each in (a, b):
        wait_for(lambda: complaints(each) == [sentence], lambda: str(complaints(each)))
        assert each.status()["charter"]["version"] == 1
        shown = each.run("ring", "status").stdout
        assert sentence in shown and "1 of kinds that this version does not know" in shown, shown
        listed = each.status()["services"]["decrees"]
        assert [(d["kind"], d["in_force"], d["why_not"]) for d in listed] == [
            ("unknown", False, "this version does not know its kind: it is kept and passed on")]
    assert complaints(old) == [] and not (old.directory / "ring" / "decrees" / name).exists()
    # What was kept is there after a restart, and is told again.
    b.stop()
    b.start()
    wait_for(lambda: complaints(b) == [sentence], lambda: str(complaints(b)))
