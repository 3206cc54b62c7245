"""A home behind a router, in network namespaces: "in" ── "router" ── "out". The router is Linux's NAT (nft) with Debian's
miniupnpd, which maps ports by PCP, NAT-PMP and UPnP. Needs root, iproute2, nftables and miniupnpd; skips where one is missing."""
import os
import re
import shutil
import signal
import subprocess

import pytest

from netlinks import inside, ip
from waiting import wait_for

# miniupnpd and mnemon both tell nobody an outer address that is for documentation, so it is one that could be real.
HOME, GATE, OUTER, OUTER_LATER, WORLD = "10.7.0.2", "10.7.0.1", "93.184.215.1", "93.184.215.9", "93.184.215.2"
PORT = 7070

RULES = """
flush ruleset
table inet filter {
  chain upnp {
  }
  chain upnp_nat {
  }
  chain upnp_post {
  }
  chain forward {
    type filter hook forward priority 0; policy drop
    iifname "home" accept
    ct state established,related accept
    jump upnp
  }
  chain prerouting {
    type nat hook prerouting priority -100
    jump upnp_nat
  }
  chain postrouting {
    type nat hook postrouting priority 100
    jump upnp_post
    oifname "wan" masquerade
  }
}
"""

SETTINGS = """
ext_ifname=wan
listening_ip=home
secure_mode=yes
ipv6_disable=yes
uuid=4a2bd2b5-cc5e-4d5b-9df5-1f0f9d2b1c11
upnp_table_name=filter
upnp_nat_table_name=filter
upnp_forward_chain=upnp
upnp_nat_chain=upnp_nat
upnp_nat_postrouting_chain=upnp_post
allow 1024-65535 10.7.0.0/24 1024-65535
deny 0-65535 0.0.0.0/0 0-65535
"""


def find(name):
    return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")


class Router:
    def __init__(self, directory):
        self.directory = directory
        self.home, self.gate, self.world = (f"mup{os.getpid()}-{side}" for side in ("in", "gate", "out"))
        self.daemon = None
        self.log = directory / "miniupnpd.log"

    def begin(self):
        for name in (self.home, self.gate, self.world):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        for space, device, other, address, own in ((self.home, "eth0", "home", HOME, GATE),
                                                   (self.world, "eth0", "wan", WORLD, OUTER)):
            ip("link", "add", "name", device, "netns", space, "type", "veth", "peer", "name", other, "netns", self.gate)
            ip("-n", space, "address", "add", f"{address}/24", "dev", device)
            ip("-n", self.gate, "address", "add", f"{own}/24", "dev", other)
            ip("-n", space, "link", "set", device, "up")
            ip("-n", self.gate, "link", "set", other, "up")
        ip("-n", self.home, "route", "add", "default", "via", GATE)
        with inside(self.gate), open("/proc/sys/net/ipv4/ip_forward", "w") as file:
            file.write("1\n")
        self.translate()

    def nft(self, *arguments, **options):
        return subprocess.run(["ip", "netns", "exec", self.gate, find("nft"), *arguments], capture_output=True,
                              text=True, check=True, **options).stdout

    def translate(self):
        """As after a restart of the router: nothing is mapped, and no connection is known."""
        self.nft("-f", "-", input=RULES)

    def map_ports(self, *settings):
        """Start miniupnpd."""
        file = self.directory / "miniupnpd.conf"
        file.write_text(SETTINGS + "\n".join(settings) + "\n")
        with self.log.open("a") as log:
            begun = log.tell()
            self.daemon = subprocess.Popen(
                ["ip", "netns", "exec", self.gate, find("miniupnpd"), "-d", "-f", file, "-P",
                 self.directory / "miniupnpd.pid"], stdout=log, stderr=log)

        def is_ready():
            assert self.daemon.poll() is None, self.log.read_text()
            return re.search(r"HTTP listening|NAT-PMP/PCP traffic", self.log.read_text()[begun:])

        wait_for(is_ready, lambda: self.log.read_text())

    def stop_mapping(self):
        """As when the power goes: it says good-bye to nobody."""
        self.daemon.send_signal(signal.SIGKILL)
        self.daemon.wait()
        self.daemon = None

    def move(self):
        """The provider gives another address, and passes nothing on to the first."""
        ip("-n", self.gate, "address", "del", f"{OUTER}/24", "dev", "wan")
        ip("-n", self.gate, "address", "add", f"{OUTER_LATER}/24", "dev", "wan")
        ip("-n", self.world, "neighbour", "flush", "all")

    def connections(self):
        """For people: what the NAT has under way."""
        with inside(self.gate), open("/proc/net/nf_conntrack") as file:
            return file.read()

    def mapped(self):
        """What the kernel passes on: {("udp", 7070): "10.7.0.2:7070"}."""
        rules = self.nft("list", "chain", "inet", "filter", "upnp_nat")
        found = {}
        for line in rules.splitlines():
            match = re.search(r"(?:@nh,72,8 0x(6|11) th|(tcp|udp)) dport (\d+) dnat ip to ([\d.]+:\d+)", line)
            if match:
                protocol = match.group(2) or {"6": "tcp", "11": "udp"}[match.group(1)]
                found[protocol, int(match.group(3))] = match.group(4)
        return found

    def end(self):
        if self.daemon is not None:
            self.stop_mapping()
        for name in (self.home, self.gate, self.world):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def make(directory):
    """A router that runs, without miniupnpd; to be ended."""
    missing = [name for name in ("ip", "nft", "miniupnpd") if find(name) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"a router needs root and {' '.join(missing) or 'network namespaces'}")
    made = Router(directory)
    try:
        made.begin()
    except (AssertionError, OSError, subprocess.CalledProcessError) as error:
        made.end()
        pytest.skip(f"no NAT in network namespaces here: {error}")
    return made
