"""Who keeps how much: even parts of the ring, and disks with a quota."""
import pytest
from ringnodes import await_agreement, found, many
from waiting import wait_for


@pytest.fixture
def node(mnemon, tmp_path):
    with many(mnemon, tmp_path) as make:
        yield make


def share_of(each):
    return sum(place["share"] for place in each.status().get("vnodes", []))


def start_ring(nodes, *options):
    found(nodes[0], "--open", *options)
    nodes[0].start()
    for each in nodes[1:]:
        each.start("--join", nodes[0].place)
    await_agreement(nodes)


def test_five_nodes_own_even_parts_and_keep_them(node):
    nodes = [node(number) for number in range(2, 7)]
    start_ring(nodes)
    mean = 1 / len(nodes)

    def shares():
        return [round(share_of(each) / mean, 3) for each in nodes]

    wait_for(lambda: all(0.85 <= share <= 1.15 for share in shares()), lambda: str(shares()) + nodes[1].said)
    await_agreement(nodes)
    before = shares()
    nodes[2].stop()
    nodes[2].start()
    await_agreement(nodes)
    assert shares() == before  # a restart moves nothing
    assert all("warning" not in each.status() for each in nodes)


def test_lists_that_are_too_short_for_the_copies_are_told(node):
    nodes = [node(number) for number in range(2, 7)]
    start_ring(nodes, "--list-size", "2", "--replicas", "4")
    wait_for(lambda: all(each.status()["mode"] == "chord" for each in nodes), lambda: str(nodes[0].status()))
    state = nodes[0].status()
    assert state["short_lists"] == len(state["vnodes"]) == 1  # two others: three nodes, not four
    warning = "lists of 2 are too short for 4 copies: 1 of 1 name fewer nodes, down to 3"
    assert warning in state["warning"]
    assert f"warning   {warning}" in nodes[0].run("ring", "status").stdout
