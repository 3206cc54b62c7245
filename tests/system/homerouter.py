"""Routers that let nothing in unasked.

HomeRouter: as people have it at home: it makes a port of its own for what goes out, and takes in
only what answers. `symmetric`: another port for each address that is spoken to, at random; else one for each port behind it (a
cone), whoever is spoken to. It is this process, between two network namespaces (test_nat.py).

KernelRouter: Linux's own (nft masquerade), which keeps ports as far as it can, or with `fully-random` takes another one for each
connection."""
import os
import random
import struct
import subprocess

import pytest

import natrouter
from netlinks import ip
from test_nat import INSIDE, ROUTER, Router, translate

MEMBERS = ("198.51.100.1", "198.51.100.2", "198.51.100.3", "198.51.100.4")  # outside; the first is the router's neighbour


def ends(packet):
    """Protocol, and the addresses and ports that it goes from and to."""
    head = (packet[0] & 15) * 4
    source, target = struct.unpack_from("!HH", packet, head)
    return packet[9], (packet[12:16], source), (packet[16:20], target)


class HomeRouter(Router):
    members = MEMBERS

    def __init__(self, symmetric):
        super().__init__()
        self.symmetric = symmetric
        self.random = random.Random(1)
        self.ports = {}  # what goes out: the port that it has outside
        self.inner = {}  # and back: protocol and port outside: the port inside, and whom it may be from
        self.turned_away = 0

    def begin(self):
        super().begin()
        for address in MEMBERS[1:]:
            ip("-n", self.names[1], "address", "add", f"{address}/32", "dev", "eth0")

    def port_of(self, protocol, source, target):
        name = (protocol, source, target if self.symmetric else None)
        if name not in self.ports:
            port = self.random.randrange(20000, 60000)
            while (protocol, port) in self.inner:
                port = self.random.randrange(20000, 60000)
            self.ports[name] = port
            self.inner[protocol, port] = (source[1], set())
        port = self.ports[name]
        self.inner[protocol, port][1].add(target)
        return port

    def pass_on(self, packet, is_out):
        if translate(packet, 12, ROUTER, 0, {}) is None:
            return None
        protocol, source, target = ends(packet)
        if is_out:
            return translate(packet, 12, ROUTER, 0, {source[1]: self.port_of(protocol, source, target)})
        inner, partners = self.inner.get((protocol, target[1]), (None, ()))
        if source not in partners:
            self.turned_away += 1
            return None
        return translate(packet, 16, INSIDE, 2, {target[1]: inner})

    def forget(self):
        """As a router that was switched off and on."""
        self.ports.clear()
        self.inner.clear()


class KernelRouter(natrouter.Router):
    members = (natrouter.WORLD, "93.184.215.3", "93.184.215.4")
    turned_away = 0  # not counted

    def __init__(self, directory, options):
        super().__init__(directory)
        self.options = options
        self.names = [self.home, self.world]

    def begin(self):
        super().begin()
        for address in self.members[1:]:
            ip("-n", self.world, "address", "add", f"{address}/24", "dev", "eth0")

    def translate(self):
        self.nft("-f", "-", input=natrouter.RULES.replace("masquerade", f"masquerade {self.options}"))

    def forget(self):
        """It remembers connections."""


def make(directory, kind):
    """One that runs, to be ended: "cone", "symmetric", "nft" or "nft fully-random"."""
    is_kernel = kind.startswith("nft")
    missing = [name for name in ("ip", "nft")[:1 + is_kernel] if natrouter.find(name) is None]
    if os.geteuid() != 0 or missing or not os.path.exists("/dev/net/tun"):
        pytest.skip(f"a router needs root, /dev/net/tun and {' '.join(missing)}")
    made = KernelRouter(directory, kind[3:]) if is_kernel else HomeRouter(kind == "symmetric")
    try:
        made.begin()
    except (AssertionError, OSError, subprocess.CalledProcessError) as error:
        made.end()
        pytest.skip(f"no NAT in network namespaces here: {error}")
    return made
