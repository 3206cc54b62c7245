"""An update to several replicas at once: two copies leave the origin, the replicas hand on to each other what they have."""
import pytest

import mirrornodes
from mirrornodes import fill, tree
from ringnodes import wait_for

NEEDED_SIZE_MAX = (4 << 20) + (256 << 10)  # of one batch that nobody else gave


@pytest.fixture()
def replicas(mnemon, tmp_path):
    with mirrornodes.many(mnemon, tmp_path) as new:
        yield new


def spread(nodes, source, sources_of):
    """Publish, subscribe all, wait; what the origin gave, and the version."""
    fill(source, large=8_000_000, small=100)
    wish = nodes[0].publish(source)
    for each in nodes[1:]:
        named = [argument for one in sources_of(each) for argument in ("--from", one.node.place)]
        each.do("subscribe", wish, *named)
    for each in nodes[1:]:
        each.await_version(1)
        assert tree(each.current) == tree(source)
    version = nodes[0].state()["held"]
    wait_for(lambda: nodes[0].state()["given_size"] >= version["size"], lambda: nodes[0].state())
    return nodes[0].state()["given_size"], version


def test_two_copies_leave_an_origin(replicas, tmp_path):
    nodes = replicas(5)
    given, version = spread(nodes, tmp_path / "source", lambda each: [n for n in nodes if n is not each])
    states = [each.state() for each in nodes[1:]]
    manifests = sum(1 + s["again"] + s["late"] for s in states) * version["manifest_size"]
    needed = sum(s["needed"] for s in states) * NEEDED_SIZE_MAX
    assert given <= 2 * version["size"] + manifests + needed


def test_nothing_is_withheld_from_who_has_no_other_source(replicas, tmp_path):
    nodes = replicas(4)
    _, version = spread(nodes, tmp_path / "source", lambda _: nodes[:1])
    wait_for(lambda: nodes[0].state()["given_size"] >= 3 * version["size"], lambda: nodes[0].state())
