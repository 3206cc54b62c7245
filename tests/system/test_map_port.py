"""A node behind a home router asks it for a port (--map-port), and is a member like others: with the real miniupnpd, and with
routers that know only NAT-PMP, that lie, or that answer nothing."""
import contextlib
import datetime
import os
import socket
import struct
import threading
import time

import pytest

import natrouter
from natrouter import GATE, HOME, OUTER, OUTER_LATER, PORT, WORLD
from netlinks import inside
from ringnodes import found, many
from waiting import wait_for

JOIN_S_MAX = 5
BOTH = {("tcp", PORT): f"{HOME}:{PORT}", ("udp", PORT): f"{HOME}:{PORT}"}


@pytest.fixture
def router(tmp_path):
    made = natrouter.make(tmp_path)
    try:
        yield made
    finally:
        made.end()


@pytest.fixture
def node(mnemon, tmp_path):
    with many(mnemon, tmp_path) as make:
        yield make


def port_of(each):
    return each.status().get("port_map", {})


def begin_outside(node, router):
    first = node(1, WORLD, router.world)
    first.port = PORT
    found(first, "--open")
    return first.start()


def at_home(node, router):
    each = node(2, HOME, router.home)
    each.port = PORT
    return each


def join_from_home(node, router, first, *options):
    second = at_home(node, router)
    begun = time.monotonic()
    second.start("--join", first.place, "--map-port", *options)
    wait_for(lambda: second.status()["state"] == "member", lambda: second.said + str(second.status()))
    took = time.monotonic() - begun
    print(f"joined in {took:.1f} s")
    assert took < JOIN_S_MAX or os.getloadavg()[0] > os.cpu_count(), took
    return second


def services(each):
    return each.status().get("services", {})


def check_membership(first, second, public):
    wait_for(lambda: first.neighbours() == {public} and second.neighbours() == {first.place})
    # Both ask over streams: one of them may have been opened by the outside.
    wait_for(lambda: all(services(each).get("answered", 0) > 0 for each in (first, second)),
             lambda: str([services(each) for each in (first, second)]))
    assert first.status()["counters"]["blamed"] == second.status()["counters"]["blamed"] == 0


def check_words(each, way, public):
    """What it says is what the kernel of the router does; and the screen says what the program does."""
    state = port_of(each)
    assert (state["mapped"], state["by"], state["public"], state["own"]) == (True, way, public, f"{HOME}:{PORT}")
    assert (state["router"], state["why"]) == (GATE, None)
    until = datetime.datetime.fromisoformat(state["until"].replace("Z", "+00:00"))
    left = (until - datetime.datetime.now(datetime.timezone.utc)).total_seconds()
    assert 3000 < left <= 3600, left
    text = f"{public} leads to {HOME}:{PORT}, UDP and TCP: mapped by {way} until "
    assert state["text"].startswith(text)
    assert f"\nport      {text}" in each.run("ring", "status").stdout
    assert f"port: {text}" in each.said


def test_a_node_behind_a_home_router_is_a_member_like_others(node, router):
    router.map_ports("enable_natpmp=yes", "enable_upnp=no")
    first = begin_outside(node, router)
    second = join_from_home(node, router, first)
    public = f"{OUTER}:{PORT}"
    assert router.mapped() == BOTH
    assert second.status()["address"] == public
    check_words(second, "PCP", public)
    check_membership(first, second, public)
    second.stop()
    assert router.mapped() == {}


def test_a_router_that_knows_upnp_only(node, router, tmp_path):
    router.map_ports("enable_natpmp=no", "enable_upnp=yes")
    config = tmp_path / "mnemon.conf"
    config.write_text("[node]\nconfine = strict\n[ring]\nmap_port = yes\n")
    first = begin_outside(node, router)
    second = join_from_home(node, router, first, "--config", config)
    public = f"{OUTER}:{PORT}"
    assert router.mapped() == BOTH
    check_words(second, "UPnP", public)
    check_membership(first, second, public)
    second.stop()
    assert router.mapped() == {}


def test_a_router_that_knows_nat_pmp_only(node, router):
    router.map_ports("enable_natpmp=yes", "enable_upnp=no")
    router.nft("add chain inet filter input { type filter hook input priority 0; }")
    router.nft("add rule inet filter input udp dport 5351 @th,64,8 2 drop")  # version 2, which is PCP
    second = at_home(node, router)
    found(second, "--open")
    second.start("--map-port")
    assert router.mapped() == BOTH
    check_words(second, "NAT-PMP", f"{OUTER}:{PORT}")
    second.stop()
    assert router.mapped() == {}


def answer_pcp(question):
    """First what is no answer, then that the port is there, at an address that nobody outside can reach."""
    yield b""
    yield b"\xff" * 1400
    yield bytes(60)
    if len(question) < 60:
        return
    mapping = question[24:42] + b"\x1b\x9e"
    private = bytes(10) + b"\xff\xff" + bytes([192, 168, 1, 1])
    head = struct.pack("!BBBBII12x", 2, 0x81, 0, 0, 3600, 1)
    yield head + bytes(12) + mapping[12:] + private  # another nonce
    yield head + mapping + private


def answer_search(question):
    """The first of them leads to another machine, and the second to one that never ends."""
    for host in (HOME, WORLD, GATE):
        yield b"HTTP/1.1 200 OK\r\nLOCATION: http://%s:5000/description\r\n\r\n" % host.encode()


@contextlib.contextmanager
def liar(space, ip, udp=(), http=None):
    """A machine that answers datagrams at these ports, and connections at port 5000."""
    sockets = []
    with inside(space):
        for port, _ in udp:
            sockets.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            sockets[-1].bind((ip, port))
        listener = socket.create_server((ip, 5000)) if http is not None else None
    ending = threading.Event()

    def talk(heard, answers):
        heard.settimeout(0.1)
        while not ending.is_set():
            with contextlib.suppress(OSError):
                question, asker = heard.recvfrom(2048)
                for answer in answers(question):
                    heard.sendto(answer, asker)

    def serve():
        listener.settimeout(0.1)
        while not ending.is_set():
            with contextlib.suppress(OSError):
                connection = listener.accept()[0]
                with connection:
                    http(connection, ending)

    threads = [threading.Thread(target=talk, args=(heard, answers)) for heard, (_, answers) in zip(sockets, udp)]
    threads += [threading.Thread(target=serve)] if http is not None else []
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ending.set()
        for thread in threads:
            thread.join()
        for each in sockets + ([listener] if listener else []):
            each.close()


def test_a_router_behind_another_router_is_named(node, router):
    second = at_home(node, router)
    found(second, "--open")
    with liar(router.gate, GATE, [(5351, answer_pcp)]):
        second.start("--map-port")
        why = f"the router {GATE}: its own outer address, 192.168.1.1, is a private address: there is another router between"
        assert port_of(second)["why"] == why and port_of(second)["mapped"] is False
        wait_for(lambda: second.status()["address"] == f"{HOME}:{PORT}", lambda: str(second.status()))


def test_a_router_that_lies_by_upnp_is_heard_for_a_bounded_time_and_size(node, router):
    contacted, sent = [], []

    def note(connection, ending):
        contacted.append(connection.getpeername())

    def flood(connection, ending):
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n<root>")
        while not ending.is_set():
            sent.append(connection.send(b"<a>" * 1000))

    second = at_home(node, router)
    found(second, "--open")
    with liar(router.world, WORLD, http=note), liar(router.home, HOME, http=note), \
            liar(router.gate, GATE, [(1900, answer_search)], http=flood):
        second.start("--map-port")
        state = port_of(second)
        assert state["why"] == f"the router {GATE}: by UPnP it says more than anybody needs at http://{GATE}:5000/description"
        assert contacted == [] and sent != []
        second.stop()


def test_a_router_that_begins_anew_gets_the_mapping_again(node, router):
    settings = ("enable_natpmp=yes", "enable_upnp=no")
    router.map_ports(*settings)
    first = begin_outside(node, router)
    second = join_from_home(node, router, first)
    assert router.mapped() == BOTH
    router.stop_mapping()
    router.translate()
    assert router.mapped() == {}
    router.map_ports(*settings)
    wait_for(lambda: router.mapped() == BOTH, lambda: second.said)
    check_words(second, "PCP", f"{OUTER}:{PORT}")
    check_membership(first, second, f"{OUTER}:{PORT}")


def test_another_address_outside_moves_the_node(node, router):
    router.map_ports("enable_natpmp=yes", "enable_upnp=no")
    first = begin_outside(node, router)
    second = join_from_home(node, router, first)
    router.stop_mapping()
    router.move()
    router.translate()
    router.map_ports("enable_natpmp=yes", "enable_upnp=no")
    public = f"{OUTER_LATER}:{PORT}"
    wait_for(lambda: "the node begins again" in second.said, lambda: second.said)
    wait_for(lambda: second.run("ring", "status").returncode == 0 and second.status().get("state") == "member" and
             second.status()["address"] == public, lambda: f"{second.said}\n{first.said}\n{router.connections()}")
    check_words(second, "PCP", public)
    wait_for(lambda: public in first.neighbours() and second.neighbours() == {first.place})


def test_a_router_without_any_of_it_is_named(node, router):
    second = at_home(node, router)
    found(second, "--open")
    second.start("--map-port")
    why = f"the router {GATE} answers neither PCP nor NAT-PMP nor UPnP"
    state = port_of(second)
    assert (state["mapped"], state["why"], state["router"]) == (False, why, GATE) and "public" not in state
    assert f"\nport      no port is mapped: {why}; " in second.run("ring", "status").stdout
    assert f"port: no port is mapped: {why}; " in second.said
    wait_for(lambda: second.status()["address"] == f"{HOME}:{PORT}", lambda: str(second.status()))  # nobody is told what does not hold


def test_no_router_at_all_and_addresses_that_none_could_map(node, mnemon, tmp_path):
    each = node(3)
    each.port = 17071
    found(each, "--open")
    each.start("--map-port")
    assert port_of(each)["why"] == "this node listens at a loopback address, which no router passes anything to"
    each.stop()
    for options, words in ((("--public", "192.0.2.1:7"), "use one of them"), (("--port", "0"), "needs a port that stays")):
        done = mnemon("serve", "--data", tmp_path / "data", "--http", "0", "--map-port", *options)
        assert done.returncode == 1 and words in done.stderr, done.stderr
