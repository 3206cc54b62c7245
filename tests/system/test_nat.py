"""A node behind a router that forwards a port: it listens at one address, and others reach it at another. The router is this
process, with a TUN device in each of two network namespaces. Needs root, iproute2 and /dev/net/tun; skips where one is missing."""
import contextlib
import fcntl
import os
import re
import select
import shutil
import struct
import subprocess
import threading
import time

import pytest

from netlinks import inside, ip
from ringnodes import found, many
from waiting import wait_for

OUTSIDE, ROUTER, INSIDE = "198.51.100.1", "198.51.100.7", "10.7.0.2"
PORT, FORWARDED = 7070, 17070
JOIN_S_MAX = 5
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
UDP, TCP = 17, 6


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def translate(packet, at, address, port_offset, ports):
    """The address at this offset of the header becomes another one, and so may the port. None: nothing for a router."""
    protocol, head = packet[9], (packet[0] & 15) * 4
    if packet[0] >> 4 != 4 or protocol not in (UDP, TCP) or len(packet) < head + 8:
        return None
    packet = bytearray(packet)
    packet[at:at + 4] = bytes(map(int, address.split(".")))
    port = struct.unpack_from("!H", packet, head + port_offset)[0]
    struct.pack_into("!H", packet, head + port_offset, ports.get(port, port))
    packet[10:12] = b"\0\0"
    struct.pack_into("!H", packet, 10, checksum(bytes(packet[:head])))
    place = head + (6 if protocol == UDP else 16)
    packet[place:place + 2] = b"\0\0"
    pseudo = bytes(packet[12:20]) + struct.pack("!BBH", 0, protocol, len(packet) - head)
    struct.pack_into("!H", packet, place, checksum(pseudo + bytes(packet[head:])) or 0xFFFF)
    return bytes(packet)


class Router:
    def __init__(self):
        self.names = [f"mnat{os.getpid()}-{side}" for side in ("in", "out")]
        self.devices = []
        self.ending = threading.Event()

    def begin(self):
        for name, own in zip(self.names, (INSIDE, OUTSIDE)):
            ip("netns", "add", name)
            with inside(name):
                device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
                fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"eth0", IFF_TUN | IFF_NO_PI))
            self.devices.append(device)
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "address", "add", f"{own}/32", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "route", "add", "default", "dev", "eth0")
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        inner, outer = self.devices
        while not self.ending.is_set():
            for device in select.select(self.devices, [], [], 0.1)[0]:
                with contextlib.suppress(BlockingIOError):
                    packet = self.pass_on(os.read(device, 65536), device == inner)
                    if packet is not None:
                        os.write(outer if device == inner else inner, packet)

    def pass_on(self, packet, is_out):
        """As it leaves, or None."""
        if is_out:
            return translate(packet, 12, ROUTER, 0, {PORT: FORWARDED})
        return translate(packet, 16, INSIDE, 2, {FORWARDED: PORT})

    def end(self):
        self.ending.set()
        if hasattr(self, "thread"):
            self.thread.join()
        for device in self.devices:
            os.close(device)
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


@pytest.fixture
def router():
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    made = Router()
    try:
        try:
            made.begin()
        except (AssertionError, OSError) as error:
            pytest.skip(f"no network namespaces here: {error}")
        yield made
    finally:
        made.end()


@pytest.fixture
def node(mnemon, tmp_path):
    with many(mnemon, tmp_path) as make:
        yield make


def services(each):
    return each.status().get("services", {})


def test_a_node_behind_a_forwarded_port_is_a_member_like_others(node, router):
    public = f"{ROUTER}:{FORWARDED}"
    first, second = node(1, OUTSIDE, router.names[1]), node(2, INSIDE, router.names[0])
    first.port = second.port = PORT
    found(first, "--open")
    first.start()
    begun = time.monotonic()
    second.start("--join", first.place, "--public", public)
    wait_for(lambda: second.status()["state"] == "member", lambda: second.said)
    took = time.monotonic() - begun
    print(f"joined in {took:.1f} s")
    assert took < JOIN_S_MAX or os.getloadavg()[0] > os.cpu_count(), took
    status = second.status()
    assert (status["address"], status["listening"]) == (public, f"{INSIDE}:{PORT}")
    assert re.search(rf"^listens +at {re.escape(INSIDE)}:{PORT}$", second.run("ring", "status").stdout, re.MULTILINE)
    wait_for(lambda: first.neighbours() == {public} and second.neighbours() == {first.place})
    # Both ask over streams: one of them may have been opened by the outside.
    wait_for(lambda: all(services(each).get("answered", 0) > 0 for each in (first, second)),
             lambda: str([services(each) for each in (first, second)]))
    assert first.status()["counters"]["blamed"] == second.status()["counters"]["blamed"] == 0


def test_a_public_address_that_leads_nowhere_is_named(node, router):
    first, second = node(1, OUTSIDE, router.names[1]), node(2, INSIDE, router.names[0])
    first.port = second.port = PORT
    found(first, "--open")
    first.start()
    second.start("--join", first.place, "--public", f"{ROUTER}:{FORWARDED + 1}")
    wait_for(lambda: any(f"reach this one at {ROUTER}:{FORWARDED + 1} (--public)" in complaint["text"]
                         for complaint in second.status().get("complaints", [])), lambda: str(second.status()))
    assert second.status()["state"] == "joining"
    assert "(--public)" in second.run("ring", "status").stdout


def test_a_public_address_that_is_none_is_refused(mnemon, tmp_path):
    for wrong in ("example.org", "0.0.0.0", "198.51.100.7:0", "224.0.0.1"):
        done = mnemon("serve", "--data", tmp_path / "data", "--http", "0", "--public", wrong)
        assert done.returncode == 1 and "is not an IP address" in done.stderr, done.stderr
