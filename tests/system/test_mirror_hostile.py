"""Collections among nodes that lie: refused, blamed, and nothing is written where it should not be."""
import os
import pathlib
import subprocess

import pytest

import mirrornodes
from mirrornodes import NAME, fill, tree
from ringnodes import program, wait_for


@pytest.fixture()
def replicas(mnemon, tmp_path):
    with mirrornodes.many(mnemon, tmp_path) as new:
        yield new


@pytest.fixture()
def liar(mnemon):
    path = pathlib.Path(program(mnemon)).parent / "tests" / "system" / "mnemon-mirror-liar"
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return str(path)


def lied_to(replicas, tmp_path, liar, first_source):
    """An origin, a liar that has its collection, and a receiver that asks the liar (and the origin)."""
    nodes = replicas(3, programs=[None, liar])
    source = tmp_path / "source"
    fill(source, large=300_000, small=30)
    wish = nodes[0].publish(source)
    nodes[1].do("subscribe", wish, "--from", nodes[0].node.place)
    nodes[1].await_version(1)
    nodes[2].do("subscribe", wish, "--from", nodes[1].node.place)
    first_source(nodes)
    return (*nodes, source, wish)


def await_complaint(receiver, words):
    wait_for(lambda: words in receiver.complaints(), lambda: receiver.complaints() + receiver.node.said)


def is_left_out(receiver):
    return any(s["barred"] for s in receiver.state().get("sources", []))


@pytest.mark.parametrize("lie, words", [
    ("manifest", "not those of their digest"),
    ("contents", "not those of their digest"),
    ("forged", "has not signed"),
])
def test_lies_are_blamed_and_others_asked(replicas, tmp_path, liar, monkeypatch, lie, words):
    monkeypatch.setenv("MIRROR_LIE", lie)

    def first(nodes):
        wait_for(lambda: is_left_out(nodes[2]), lambda: nodes[2].node.said)
        assert nodes[2].number() == 0

    origin, bad, receiver, source, wish = lied_to(replicas, tmp_path, liar, first)
    await_complaint(receiver, words)
    receiver.do("subscribe", wish, "--from", bad.node.place, "--from", origin.node.place)
    receiver.await_version(1)
    assert tree(receiver.current) == tree(source)


def test_a_forged_notification_is_blamed_and_changes_nothing(replicas, tmp_path, liar, monkeypatch):
    monkeypatch.setenv("MIRROR_LIE", "notice")
    origin, bad, receiver = replicas(3, programs=[None, liar])
    source = tmp_path / "source"
    fill(source, large=100_000, small=10)
    wish = origin.publish(source)
    receiver.do("subscribe", wish, "--from", origin.node.place)
    receiver.await_version(1)
    bad.do("subscribe", wish, "--from", origin.node.place, "--from", receiver.node.place)
    for each in (origin, receiver):
        await_complaint(each, "has not signed")
    wait_for(lambda: is_left_out(receiver), lambda: receiver.node.said)
    assert receiver.number() == 1
    (source / "new").write_text("new")
    origin.publish(source)
    receiver.await_version(2)
    assert tree(receiver.current) == tree(source)


def test_nobody_else_gives_a_collection_its_versions(replicas, tmp_path, liar, monkeypatch):
    """Another publisher's collection of the same name, well signed."""
    monkeypatch.setenv("MIRROR_LIE", "foreign")
    origin, bad, receiver = replicas(3, programs=[None, liar])
    source, evil = tmp_path / "source", tmp_path / "evil"
    fill(source, large=100_000, small=10)
    fill(evil, seed=2, large=100_000, small=10)
    wish = origin.publish(source)
    bad.publish(evil)
    receiver.do("subscribe", wish, "--from", bad.node.place)
    await_complaint(receiver, "another collection")
    wait_for(lambda: is_left_out(receiver), lambda: receiver.node.said)
    assert receiver.number() == 0
    receiver.do("subscribe", wish, "--from", bad.node.place, "--from", origin.node.place)
    receiver.await_version(1)
    assert tree(receiver.current) == tree(source)


def test_an_old_version_is_not_taken_again(replicas, tmp_path, liar, monkeypatch):
    monkeypatch.setenv("MIRROR_LIE", "replayed")
    origin, bad, receiver, source, _ = lied_to(replicas, tmp_path, liar, lambda nodes: nodes[2].await_version(1))
    (source / "new").write_text("new")
    origin.publish(source)
    receiver.await_version(2)
    wait_for(lambda: is_left_out(receiver), lambda: receiver.node.said)
    await_complaint(receiver, "older version")
    assert receiver.number() == 2
    assert tree(receiver.current) == tree(source)


def outside(directory):
    """All paths beside the data, to see that nothing comes."""
    return sorted(str(p) for p in directory.rglob("*") if "node" not in p.parts[len(directory.parts)])


def test_no_path_leads_out_of_a_collection(replicas, tmp_path, liar):
    bad, receiver = replicas(2, programs=[liar])
    source = tmp_path / "source"
    target = tmp_path / "target"
    target.mkdir()

    def publish():
        done = subprocess.run([liar, "mirror", "publish", NAME, source, "--data", bad.node.directory],
                              capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stderr
        return done.stdout.split("subscribe ")[1].strip()

    def escaped(text):
        return str(text).replace("%", "%25").replace(".", "%2e").replace("/", "%2f")

    tricks = [
        {escaped("../../../../../evil"): b"evil"},
        {escaped(target / "evil"): b"evil"},
        {"a" + "%00" + "b": b"evil"},
        {"link": target, "link%2fevil": b"evil"},
        {"link": pathlib.PurePath("../../../../../target")},
        {escaped("./evil"): b"evil"},
        {"file": b"", "file%2fevil": b"evil"},
    ]
    for number, trick in enumerate(tricks, 1):
        source.mkdir(exist_ok=True)
        for path in source.iterdir():
            path.unlink()
        for name, what in trick.items():
            if isinstance(what, bytes):
                (source / name).write_bytes(what)
            else:
                (source / name).symlink_to(what)
        before = outside(tmp_path)
        wish = publish()
        if number == 1:
            receiver.do("subscribe", wish, "--from", bad.node.place)
        wait_for(lambda: f"version {number} is refused" in receiver.node.said,
                 lambda: f"{trick}\n{receiver.state()}\n{receiver.node.said}")
        assert outside(tmp_path) == before
    assert receiver.number() == 0
    assert not os.path.lexists(receiver.current)
    await_complaint(receiver, "cannot be")
    assert list(target.iterdir()) == []

    for path in source.iterdir():
        path.unlink()
    (source / "good").write_text("good")
    publish()
    receiver.await_version(len(tricks) + 1)
    assert tree(receiver.current) == tree(source)


def test_names_that_differ_only_by_case_are_told_of_and_kept(replicas, tmp_path):
    origin, receiver = replicas(2)
    source = tmp_path / "source"
    for name in ("Readme", "README", "d/x", "D/x"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    done = origin.node.run("mirror", "publish", NAME, str(source))
    assert done.returncode == 0 and "case" in done.stderr, done.stderr
    receiver.do("subscribe", done.stdout.split("subscribe ")[1].strip(), "--from", origin.node.place)
    receiver.await_version(1)
    assert tree(receiver.current) == tree(source)
