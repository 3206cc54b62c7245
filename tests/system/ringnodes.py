"""Real nodes for tests of the ring: each has an address of its own and a directory that outlives its process."""
import concurrent.futures
import contextlib
import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from waiting import PATIENCE_S, wait_for


class Node:
    """ip: where others reach it. namespace: of the network, where it is not this one."""

    def __init__(self, mnemon, directory, ip, namespace=None):
        self.mnemon = mnemon
        self.directory = directory
        self.ip = ip
        self.namespace = namespace
        self.program = program(mnemon)
        self.port = 0
        self.process = None
        self.log = directory.parent / f"{directory.name}.log"

    @property
    def wrap(self):
        return ("ip", "netns", "exec", self.namespace) if self.namespace else ()

    def run(self, *arguments):
        if not self.namespace:
            return self.mnemon(*arguments, "--data", self.directory)
        return subprocess.run([*self.wrap, program(self.mnemon), *arguments, "--data", self.directory],
                              capture_output=True, text=True, timeout=150)

    def launch(self, *options, wrap=()):
        """Begin to start; ready() waits until it runs."""
        self.process = subprocess.Popen(
            [*self.wrap, *wrap, self.program, "serve", "--data", self.directory, "--address", self.ip, "--http", "0",
             "--port", str(self.port), *options],
            stdout=subprocess.PIPE, stderr=self.log.open("a"), text=True,
        )
        return self

    def ready(self):
        lines = [self.process.stdout.readline() for _ in range(3)]
        match = re.search(r"in its ring at (?:[0-9.]+|\[[0-9a-f:.]+\]):(\d+);", lines[2])
        assert match, "".join(lines) + self.said
        self.port = int(match.group(1))
        self.url = lines[0].split()[-1]
        return self

    def start(self, *options, wrap=()):
        return self.launch(*options, wrap=wrap).ready()

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE_S) as answer:
            return answer.read().decode()

    @property
    def place(self):
        return f"[{self.ip}]:{self.port}" if ":" in self.ip else f"{self.ip}:{self.port}"

    @property
    def said(self):
        return self.log.read_text()

    def status(self):
        if not self.namespace and self.process is not None:
            return json.loads(self.get("/api/v1/ring"))
        done = self.run("ring", "status", "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def owner(self, url, places=1):
        """Who is responsible, as this node finds it: None where it cannot say now."""
        if self.namespace:
            done = self.run("ring", "lookup", url, "--json", "--places", str(places))
            found = json.loads(done.stdout) if done.returncode == 0 else {"places": []}
        else:
            try:
                found = json.loads(self.get(f"/api/v1/ring/lookup?places={places}&url={urllib.parse.quote(url, safe='')}"))
            except urllib.error.HTTPError:
                found = {"places": []}
        return tuple(p["address"] for p in found["places"]) or None

    @property
    def key(self):
        return json.loads(self.run("ring", "status", "--json").stdout)["key"]

    def neighbours(self):
        return {n["address"] for n in self.status().get("neighbours", [])}

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process = None

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=PATIENCE_S)
        assert self.process.returncode == 0, self.said
        self.process = None


def end(nodes):
    """After a test: nobody needs them any more. With sanitizers they end by themselves, which is when leaks are told."""
    running = [each.process for each in nodes if each.process is not None]
    signals = (signal.SIGTERM, signal.SIGCONT) if "MNEMON_SANITIZED" in os.environ else (signal.SIGKILL,)
    for process in running:
        for number in signals:
            process.send_signal(number)
    for process in running:
        try:
            process.wait(timeout=PATIENCE_S)
        finally:
            process.kill()
    for each in nodes:
        each.process = None


def program(mnemon):
    return mnemon("version").args[0]


def found(node, *options):
    created = node.run("ring", "create", "films", *options)
    assert created.returncode == 0, created.stderr
    return created.stdout


def is_circle(states):
    """The arcs are the whole ring, once."""
    arcs = sorted((p["id"], p["from"] or "", p["share"]) for s in states for p in s.get("places", []))
    return all(arcs[i][1] == arcs[i - 1][0] for i in range(len(arcs))) and abs(sum(a[2] for a in arcs) - 1) < 1e-4


def is_settled(state, place, places):
    known = {n["address"] for n in state.get("neighbours", [])}
    is_whole = known == places - {place} if state.get("mode") == "small" else known <= places
    return state["state"] == "member" and is_whole


def agree(nodes):
    """Everybody is in, and nobody claims what another does; those of a small ring know all others."""
    places = {n.place for n in nodes}
    states = []
    for each in nodes:  # to ask all of them again and again would take the time that they need
        states.append(each.status())
        if not is_settled(states[-1], each.place, places):
            nodes.remove(each)
            nodes.insert(0, each)  # is asked first next time
            return False
    return is_circle(states)


def await_agreement(nodes, patience_s=PATIENCE_S):
    def describe():
        shown = ("address", "state", "mode", "places", "neighbours", "complaints")
        return "\n\n".join(str({name: n.status().get(name) for name in shown}) + "\n" + n.said for n in nodes)

    asked = list(nodes)
    wait_for(lambda: agree(asked), describe, patience_s)


def places_of(nodes):
    return {n.place: [p["id"] for p in n.status()["places"]] for n in nodes}


def await_same_owners(nodes, urls):
    """All find the same owner and successors; what a node was told lately it may believe for half a minute."""
    waiting = list(urls)

    def differences():
        with concurrent.futures.ThreadPoolExecutor(max_workers=8) as pool:  # who asks a dead node waits
            while waiting:
                found_by = dict(zip(nodes, pool.map(lambda n: n.owner(waiting[0], 3), nodes)))
                if len(set(found_by.values())) != 1 or None in found_by.values():
                    return waiting[0], {n.place: places for n, places in found_by.items()}
                waiting.pop(0)
        return None

    wait_for(lambda: differences() is None, lambda: str(differences()))


@contextlib.contextmanager
def many(mnemon, tmp_path):
    """make(2) is a node at 127.0.0.2 with a directory of its own; what runs is ended with the block."""
    nodes = []

    def make(number, ip=None, namespace=None):
        made = Node(mnemon, tmp_path / f"node{number}", ip or f"127.0.0.{number}", namespace)
        nodes.append(made)
        return made

    try:
        yield make
    finally:
        end(nodes)
