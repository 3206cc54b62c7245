"""Nodes that are reached by IPv4 and by IPv6 at once, and members that have one of them only, in network namespaces with a line
between them. Needs root and iproute2; skips where one is missing."""
import os
import shutil
import subprocess

import pytest

from netlinks import ip
from ringnodes import found, is_circle, many
from waiting import wait_for

PORT = 7070


def ipv4(number):
    return f"10.9.0.{number}"


def ipv6(number):
    return f"fd00:9::{number}"


class Street:
    """A namespace for each number, on one bridge; each has the families that it is given."""

    def __init__(self):
        self.middle = f"mtw{os.getpid()}-0"
        self.names = {}

    def begin(self):
        ip("netns", "add", self.middle)
        ip("-n", self.middle, "link", "add", "name", "street", "type", "bridge")
        ip("-n", self.middle, "link", "set", "street", "up")

    def build(self, number, families):
        name = self.names[number] = f"mtw{os.getpid()}-{number}"
        ip("netns", "add", name)
        ip("link", "add", "name", "eth0", "netns", name, "type", "veth", "peer", "name", f"door{number}", "netns", self.middle)
        ip("-n", self.middle, "link", "set", f"door{number}", "master", "street", "up")
        ip("-n", name, "link", "set", "lo", "up")
        if "4" in families:
            ip("-n", name, "address", "add", f"{ipv4(number)}/24", "dev", "eth0")
        if "6" in families:
            ip("-n", name, "address", "add", f"{ipv6(number)}/64", "dev", "eth0", "nodad")
        ip("-n", name, "link", "set", "eth0", "up")
        return name

    def refuse_streams(self, number, family):
        """Nobody connects to it: the streams that there are, it opened itself."""
        rule = ("-n", self.names[number], f"-{family}", "rule")
        ip(*rule, "add", "pref", "9", "lookup", "local")
        ip(*rule, "del", "pref", "0")
        ip(*rule, "add", "pref", "1", "iif", "eth0", "ipproto", "tcp", "dport", str(PORT), "blackhole")

    def end(self):
        for name in (*self.names.values(), self.middle):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


@pytest.fixture
def street():
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    made = Street()
    try:
        try:
            made.begin()
        except (AssertionError, OSError) as error:
            made.end()
            pytest.skip(f"no network namespaces here: {error}")
        yield made
    finally:
        made.end()


@pytest.fixture
def node(mnemon, tmp_path):
    with many(mnemon, tmp_path) as make:
        yield make


def place(address):
    return f"[{address}]:{PORT}" if ":" in address else f"{address}:{PORT}"


def build(node, street, number, families, main):
    """families: "4", "6" or "46"; main: the family of its places on the ring."""
    each = node(number, {"4": ipv4, "6": ipv6}[main](number), street.build(number, families))
    each.port = PORT
    each.options = ()
    if len(families) == 2:
        other = {"4": ipv6, "6": ipv4}[main](number)
        each.options = ("--public", f"{each.ip},{other}")
        each.main, each.ip = each.ip, "::"  # it listens everywhere
        each.second = place(other)
    else:
        each.main, each.second = each.ip, None
    return each


def services(each):
    return each.status().get("services", {})


def is_one_ring(nodes):
    states = [each.status() for each in nodes]
    places = {place(each.main) for each in nodes}
    return (all(state["state"] == "member" for state in states) and is_circle(states) and
            all({n["address"] for n in state["neighbours"]} == places - {place(each.main)}
                for state, each in zip(states, nodes)))


def check_ring(nodes):
    def describe():
        shown = ("address", "second_address", "state", "neighbours", "nodes", "complaints")
        return "\n\n".join(str({name: each.status().get(name) for name in shown}) + each.said for each in nodes)

    wait_for(lambda: is_one_ring(nodes), describe)
    # All ask over streams, each other in both directions.
    wait_for(lambda: all(services(each).get("answered", 0) > 0 for each in nodes),
             lambda: str([services(each) for each in nodes]))
    for each in nodes:
        status = each.status()
        assert status["counters"]["blamed"] == 0, status["blamed"]
        assert (status["address"], status["second_address"]) == (place(each.main), each.second)
        assert ("\nalso      at " in each.run("ring", "status").stdout) == (each.second is not None)


def begin(founder, *others):
    found(founder, "--open")
    founder.start(*founder.options)
    for each, contact in others:
        each.start("--join", contact, *each.options)


@pytest.mark.parametrize("main, only", (("4", "6"), ("6", "4")))
def test_a_member_of_one_family_reaches_a_node_at_its_second_address(node, street, main, only):
    first = build(node, street, 1, "46", main)
    second = build(node, street, 2, only, only)
    street.refuse_streams(2, only)
    begin(first, (second, first.second))
    check_ring([first, second])
    told = {each["address"]: each.get("second_address") for each in second.status()["nodes"]}
    assert told[place(first.main)] == first.second


def test_nodes_of_both_families_with_places_in_either(node, street):
    first, second, third = (build(node, street, number, families, main)
                            for number, families, main in ((1, "46", "4"), (2, "46", "6"), (3, "6", "6")))
    begin(first, (second, place(first.main)), (third, first.second))
    check_ring([first, second, third])


def test_public_addresses_that_are_no_pair_are_refused(mnemon, tmp_path):
    for address, wrong in (("::", "192.0.2.1,192.0.2.2"), ("127.0.0.1", "192.0.2.1,2001:db8::1")):
        done = mnemon("serve", "--data", tmp_path / "data", "--http", "0", "--address", address, "--public", wrong)
        assert done.returncode == 1 and "one of IPv4 and one of IPv6" in done.stderr, done.stderr
