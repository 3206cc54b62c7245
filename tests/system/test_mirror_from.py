"""Collections between nodes that are in no ring and no group together: where one is to be had from, and for whom it is."""
import pytest

import mirrornodes
from mirrornodes import NAME, fill, tree
from ringnodes import wait_for


@pytest.fixture()
def nodes(mnemon, tmp_path):
    with mirrornodes.neighbours(mnemon, tmp_path) as new:
        yield new


def subscribe(replica, wish, source, *options):
    replica.do("subscribe", wish, "--from", source.node.place, *options)
    return replica


def named(replica):
    return [n["state"] for n in replica.state().get("named", [])]


def test_named_readers_get_it_and_its_updates_and_others_are_refused(nodes, tmp_path):
    origin, reader, other = nodes(3)
    source = tmp_path / "source"
    fill(source, large=500_000, small=20)
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "file").write_text("for nobody")
    wish = origin.publish(source, "--public")
    origin.do("publish", "secret", str(secret))
    origin.start()
    subscribe(reader, wish, origin).start()  # gets a key
    reader.await_version(1)
    origin.do("publish", NAME, "--private")
    origin.do("publish", NAME, "--reader", reader.node.key)
    wait_for(lambda: (origin.state()["public"], origin.state()["readers"]) == (False, 1), lambda: str(origin.state()))

    subscribe(other, NAME, origin).start()
    other.do("subscribe", "secret", "--from", origin.node.place)
    wait_for(lambda: named(other) == ["refuses"], lambda: other.node.said)
    wait_for(lambda: f"collection {NAME}: {origin.node.place} does not let this node read it" in other.node.said,
             lambda: other.node.said)
    wait_for(lambda: f"collection secret: {origin.node.place} does not let" in other.node.said, lambda: other.node.said)
    assert f"refused   by {origin.node.place}: its owner would have to name this node with --reader {other.node.key}" \
        in other.do("status")

    (source / "new").write_text("new")
    origin.publish(source)
    reader.await_version(2)
    assert tree(reader.current) == tree(source)
    assert not other.current.exists() and not reader.state()["sources"][0]["barred"]

    origin.do("publish", NAME, "--reader", other.node.key)
    other.await_version(2)
    assert tree(other.current) == tree(source)


def test_a_copy_is_handed_on_by_who_has_it(nodes, tmp_path):
    origin, middle, last = nodes(3)
    source = tmp_path / "source"
    fill(source, large=200_000, small=10)
    wish = origin.publish(source, "--public")
    origin.start()
    subscribe(middle, wish, origin, "--public").start()
    subscribe(last, wish, middle).start()
    last.await_version(1)
    (source / "new").write_text("new")
    origin.publish(source)
    last.await_version(2)
    assert tree(last.current) == tree(source)


def test_a_node_begins_to_exchange_when_it_is_told_to(nodes, tmp_path):
    origin, receiver = nodes(2)
    source = tmp_path / "source"
    fill(source, large=100_000, small=5)
    wish = origin.publish(source, "--public")
    origin.start()
    receiver.configure()
    receiver.node.launch()
    receiver.node.url = receiver.node.process.stdout.readline().split()[-1]
    subscribe(receiver, wish, origin)
    receiver.await_version(1)
    assert tree(receiver.current) == tree(source)


def test_mistakes_are_told(nodes, tmp_path):
    origin = nodes(1)[0]
    (tmp_path / "source").mkdir()
    for arguments, sentence in [
        (("--reader", "nobody"), "not the key of a node"),
        (("--private", "--public"), "cannot be combined with"),
    ]:
        done = origin.node.run("mirror", "publish", NAME, str(tmp_path / "source"), *arguments)
        assert done.returncode != 0 and sentence in done.stderr, done.stderr
