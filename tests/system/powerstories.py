"""Stories of a node for tests of power failures: what is done and promised, and what must hold after a failure.

Run as a script (under strace, by powercut.record()) it tells one story: powerstories.py NAME ROOT PROMISES. What the
story keeps lies below ROOT; what others have lies in ROOT.others. A promise is what the program has said: an exit
status of 0, a line, an answer. Subjects ("job 2") go through values, in order. After a failure each has the value
that was promised last, or the next one, which may have been under way.
"""
import http.client
import json
import os
import pathlib
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

from mirrornodes import tree
from waiting import wait_for
from webserver import FastHandler, Site

PROGRAM = os.environ.get("MNEMON", str(pathlib.Path(__file__).resolve().parents[2] / "build" / "mnemon"))
START_S = 60
SETTLE_S = 4  # of a node that has started
ABSENT = "absent"


class Failed(AssertionError):
    """What a failure must not do."""


def run(directory, *arguments, code=0, **options):
    done = subprocess.run([PROGRAM, *map(str, arguments), "--data", str(directory)], capture_output=True, text=True,
                          timeout=150, **options)
    if code is not None and done.returncode != code:
        raise Failed(f"mnemon {' '.join(map(str, arguments))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


class Node:
    """A process of its own, and what it says."""

    def __init__(self, directory, *options, settings=""):
        self.directory = pathlib.Path(directory)
        if settings and not (self.directory / "mnemon.conf").exists():
            self.directory.mkdir(parents=True, exist_ok=True)
            (self.directory / "mnemon.conf").write_text(settings)
            for path in (self.directory / "mnemon.conf", self.directory):  # it is the operator's, not the program's
                opened = os.open(path, os.O_RDONLY)
                os.fsync(opened)
                os.close(opened)
        self.log_path = self.directory.parent / f"{self.directory.name}.log"
        with self.log_path.open("w") as log:
            self.process = subprocess.Popen([PROGRAM, "serve", "--data", str(directory), "--http", "0", *map(str, options)],
                                            stdout=subprocess.PIPE, stderr=log, text=True)
        ready, _, _ = select.select([self.process.stdout], [], [], START_S)
        line = self.process.stdout.readline() if ready else ""
        if not line.startswith("serving"):
            self.kill()
            raise Failed(f"the node does not start: {self.said}")
        self.address, port = re.search(r"http://([0-9.]+):(\d+)", line).groups()
        self.port = int(port)

    @property
    def said(self):
        return self.log_path.read_text()

    def ask(self, path, method="GET", body=None, token=None):
        """(status, text)."""
        connection = http.client.HTTPConnection(self.address, self.port, timeout=60)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if body is not None:
            headers["Content-Type"] = "application/json" if body.startswith("{") else "application/x-www-form-urlencoded"
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
        connection.close()
        return answer.status, text

    def json(self, path):
        return json.loads(self.ask(path)[1])

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.stdout.read()
        assert self.process.wait(timeout=120) == 0
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()


class Teller:
    """What a story is told with."""

    def __init__(self, root, promises):
        self.root = pathlib.Path(root)
        self.others = pathlib.Path(f"{root}.others")
        self.others.mkdir(exist_ok=True)
        self.file = os.open(promises, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def promise(self, subject, value):
        os.write(self.file, (json.dumps([subject, value]) + "\n").encode())


def promised(lines):
    """subject: values that were promised, in order."""
    values = {}
    for line in lines:
        subject, value = json.loads(line)
        values.setdefault(subject, []).append(value)
    return values


def hold(story, subject, values, found):
    """The value is the one that was promised last, or the next."""
    course = story.courses.get(subject)
    said = values.get(subject, [])
    if course is None:  # of the recording: it never changes once it is there
        allowed = said[-1:] or None
    else:
        at = len(said)
        assert not said or course[at] == said[-1], f"{subject}: {said} is not {course}"
        allowed = course[at:at + 2]
    if allowed is not None and found not in allowed:
        raise Failed(f"{subject} is {found!r}; promised: {said!r}, so it may be {allowed!r}")


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


# ---- what an operator decides ----


class Desk:
    """Jobs, ring, decrees, groups, collections: by commands, some before the first start and most beside a running node."""

    courses = {
        "token": None,
        "key": None,
        "job 1": [ABSENT, "runs", "paused", "runs", ABSENT],
        "job 2": [ABSENT, "runs"],
        "job 3": [ABSENT, "runs", ABSENT],
        "charter": [0, 1, 2, 3, 0],
        "save": None,
        "takedown": ["shown", "hidden", "shown", "hidden"],
        "group a": [ABSENT, "open", "invite", ABSENT],
        "group b": [ABSENT, "approve"],
        "papers": [0, 1, 2, 3],
        "maps": [0, 1],
        "letters": [ABSENT, "subscribed", ABSENT],
    }
    takedown = "http://a.example/x"
    workers = 2
    spared = ()

    def open(self, others):
        return self

    def close(self):
        pass

    def tell(self, teller):
        data, say = teller.root / "data", teller.promise
        sources = teller.others
        for name in ("papers", "maps"):
            (sources / name / "sub").mkdir(parents=True)
            (sources / name / "sub" / "first").write_bytes(name.encode() * 3000)
        run(data, "ring", "create", "films", "--open")
        say("charter", 1)
        say("key", self.key_of(data))
        run(data, "job", "add", "http://127.0.0.1:9/1/", "--scope", "prefix")
        say("job 1", "runs")
        run(data, "mirror", "publish", "papers", sources / "papers")
        say("papers", 1)
        with Node(data, "--address", "127.0.0.1", "--port", "0",
                  settings="[crowd]\nenabled = no\n[crawl]\nallow_private = yes\n") as node:
            token = (data / "token").read_text().strip()
            say("token", token)
            run(data, "group", "create", "a", "--open")
            say("group a", "open")
            run(data, "ring", "takedown", self.takedown)
            say("takedown", "hidden")
            status, _ = node.ask("/api/v1/jobs", "POST", '{"url":"http://127.0.0.1:9/2/","scope":"prefix"}', token)
            assert status == 201
            say("job 2", "runs")
            name = self.names(data)["job 1"]
            assert node.ask(f"/api/v1/jobs/{name}/pause", "POST", "", token)[0] in (200, 204)
            say("job 1", "paused")
            status, text = node.ask("/save", "POST", "url=http://127.0.0.1:9/saved", token)
            assert status == 200, text
            say("save", json.loads(text)["job_id"])
            (sources / "papers" / "second").write_bytes(os.urandom(20000))
            run(data, "mirror", "publish", "papers", sources / "papers")
            say("papers", 2)
            run(data, "ring", "amend", "--replicas", "3")
            say("charter", 2)
            run(data, "job", "add", "http://127.0.0.1:9/3/", "--scope", "prefix")
            say("job 3", "runs")
            run(data, "group", "change", "a", "--invite")
            say("group a", "invite")
            run(data, "mirror", "subscribe", "letters", "--from", "127.0.0.1:9")
            say("letters", "subscribed")
            run(data, "mirror", "publish", "maps", sources / "maps")
            say("maps", 1)
            run(data, "ring", "restore", self.takedown)
            say("takedown", "shown")
            run(data, "job", "resume", name)
            say("job 1", "runs")
            run(data, "job", "remove", self.names(data)["job 3"])
            say("job 3", ABSENT)
            run(data, "group", "create", "b", "--approve")
            say("group b", "approve")
            run(data, "mirror", "unsubscribe", "letters")
            say("letters", ABSENT)
            run(data, "group", "leave", "a")
            say("group a", ABSENT)
            assert node.ask(f"/api/v1/jobs/{name}", "DELETE", None, token)[0] in (200, 204)
            say("job 1", ABSENT)
            run(data, "ring", "takedown", self.takedown)
            say("takedown", "hidden")
            node.stop()
        (sources / "papers" / "third").write_bytes(os.urandom(5000))
        run(data, "mirror", "publish", "papers", sources / "papers")
        say("papers", 3)
        run(data, "ring", "amend", "--replicas", "4")
        say("charter", 3)
        run(data, "ring", "leave")
        say("charter", 0)

    @staticmethod
    def key_of(data):
        return json.loads(run(data, "ring", "status", "--json", code=None).stdout)["key"]

    @staticmethod
    def names(data):
        """"job 1": its name, of those that are there."""
        jobs = [json.loads(line) for line in run(data, "job", "list", "--json").stdout.splitlines()]
        return {f"job {job['seeds'][0].split('/')[-2]}": job["job"] for job in jobs}

    def check(self, root, lines, others):
        data, values = root / "data", promised(lines)
        if not data.exists():
            if values:
                raise Failed("there is no data directory")
            return
        with Node(data, "--address", "127.0.0.1", "--port", "0") as node:
            self.await_hold(lambda: self.compare(node, data, values))
        self.check_next(data, values, others)

    @staticmethod
    def await_hold(compare):
        """A node knows some things only a moment after it has started."""
        failed = None

        def holds():
            nonlocal failed
            try:
                compare()
                return True
            except Failed as failure:
                failed = failure
                return False

        wait_for(holds, lambda: str(failed), SETTLE_S, error=Failed)

    def compare(self, node, data, values):
        ring = node.json("/api/v1/ring")
        jobs = {f"job {job['seeds'][0].split('/')[-2]}": "paused" if job["paused"] else "runs"
                for job in node.json("/api/v1/jobs")["jobs"]}
        mirrors = {mirror["name"]: mirror for mirror in node.json("/api/v1/mirrors")["mirrors"]}
        groups = {group["name"]: group for group in node.json("/api/v1/groups").get("groups", [])}
        for subject in ("job 1", "job 2", "job 3"):
            hold(self, subject, values, jobs.get(subject, ABSENT))
        if "save" in values and (answer := node.ask(f"/save/status/{values['save'][0]}"))[0] != 200:
            raise Failed(f"a page that was to be saved is not known: {answer}")
        hold(self, "token", values, (data / "token").read_text().strip())
        hold(self, "key", values, ring["key"])
        hold(self, "charter", values, (ring.get("charter") or {}).get("version", 0))
        hold(self, "takedown", values, self.access_of(data))
        for name, subject in (("a", "group a"), ("b", "group b")):
            hold(self, subject, values, groups[name]["admission"] if name in groups else ABSENT)
        for name in ("papers", "maps"):
            hold(self, name, values, (mirrors.get(name, {}).get("held") or {}).get("number", 0))
        hold(self, "letters", values, "subscribed" if "letters" in mirrors else ABSENT)

    @staticmethod
    def access_of(data):
        """What the rules of the ring say on the disk, which every reader obeys."""
        text = "".join(path.read_text() for path in sorted(data.glob("access/ring-*.aclj")))
        return "hidden" if '"exclude"' in text else "shown"

    def check_next(self, data, values, others):
        """A version that is made now follows all that were promised, and is whole."""
        for name in ("papers", "maps"):
            if name in values:
                done = run(data, "mirror", "publish", name, others / name)
                number = int(re.search(r"version (\d+)", done.stdout)[1])
                if number < values[name][-1]:
                    raise Failed(f"{name} goes back to version {number} after {values[name][-1]}")
        if (data / "ring" / "charter").exists():
            run(data, "ring", "amend", "--replicas", "5")


# ---- a crawl ----


class FixedSite(Site):
    def __init__(self, port, handler=FastHandler):
        self.fixed_port = port
        super().__init__(is_fast=True)
        for server in self.servers:
            server.RequestHandlerClass = handler

    def choose_port(self):
        return self.fixed_port


def pages_seen(site, node):
    """The numbers of pages that have captures."""
    status, text = node.ask(f"/cdx?url={site.host()}/*&fl=original&filter=statuscode:200")
    assert status == 200, text
    return {int(page) for page in re.findall(r"/(\d+)\"}", text)}


class Crawl:
    """A job from its first page to its last, with captures that a reader sees meanwhile, and their words."""

    courses = {"complete": [False, True]}
    pages_count = 43
    settings = "[crowd]\nenabled = no\n[crawl]\nallow_private = yes\n"
    workers = 1  # of checks: they share the site
    spared = ()

    def open(self, others):
        port_file = others / "port"
        if not port_file.exists():
            port_file.write_text(str(free_port()))
        self.site = FixedSite(int(port_file.read_text()))
        for i in range(self.pages_count):
            links = "".join(f'<a href="/{j}">{j}</a> ' for j in range(6 * i + 1, min(6 * i + 7, self.pages_count)))
            self.site.put(f"/{i}", f"<title>page{i}</title><p>word{i} {links}" + "text " * 300, wait=0.04)
        return self

    def close(self):
        self.site.close()

    def seen(self, node):
        return pages_seen(self.site, node)

    @staticmethod
    def is_complete(node):
        return [job["state"] for job in node.json("/api/v1/jobs")["jobs"]] == ["complete"]

    def tell(self, teller):
        data = teller.root / "data"
        self.open(teller.others)
        with Node(data, "--address", "127.0.0.1", settings=self.settings) as node:
            run(data, "job", "add", self.site.url("/0"), "--delay", "0")
            teller.promise("job", "runs")
            known = set()

            def promise_pages():
                for page in sorted(self.seen(node) - known):
                    teller.promise(f"page {page}", "seen")
                    known.add(page)

            def is_told():
                is_complete = self.is_complete(node)
                if not is_complete:
                    promise_pages()
                return is_complete

            wait_for(is_told, "the crawl does not come to its end", turn_s=0.2)
            teller.promise("complete", True)
            promise_pages()
            wait_for(lambda: node.json("/api/v1/search?q=word42")["results"], "the words are not there")
            node.stop()
        self.close()

    def check(self, root, lines, others):
        data, values = root / "data", promised(lines)
        if not data.exists():
            return
        self.site.forget()
        with Node(data, "--address", "127.0.0.1") as node:
            held = self.seen(node)
            for page in range(self.pages_count):
                if f"page {page}" in values and page not in held:
                    raise Failed(f"page {page} was shown and is gone")
            if "job" not in values:
                return
            wait_for(lambda: self.is_complete(node), lambda: f"the job does not end: {node.ask('/api/v1/jobs')[1]} {node.said}",
                     patience_s=30)
            if missing := set(range(self.pages_count)) - self.seen(node):
                raise Failed(f"the job is complete without {sorted(missing)}: forgotten")
            asked = [path for path in self.site.asked() if path[1:].isdigit()]
            if twice := {path for path in asked if asked.count(path) > 1}:
                raise Failed(f"asked for twice after the failure: {sorted(twice)}")
            wait_for(lambda: node.json("/api/v1/search?q=word42")["results"], "the words are not there", patience_s=20)


# ---- a copy of a collection ----


class Mirror:
    """A subscriber gets three versions; each that it says to have is whole, and what was torn is fetched again."""

    courses = {"held": [0, 1, 2, 3], "subscribed": [ABSENT, "yes"]}
    settings = "[mirror]\ngather = 100 ms\nperiod = 1 s\n[crowd]\nenabled = no\n"
    workers = 2
    spared = ()

    def open(self, others):
        """The publisher, as it was at the end."""
        self.port = int((others / "port").read_text())
        self.publisher = Node(others / "publisher", "--address", "127.0.0.1", "--port", self.port)
        self.trees = {number: tree(others / f"v{number}") for number in (1, 2, 3)}
        self.closed = others / "closed.conf"
        self.closed.write_text(self.settings.replace("[mirror]\n", "[mirror]\nlimit = no\n"))
        return self

    def close(self):
        self.publisher.kill()

    @staticmethod
    def change(directory, number):
        rng = random.Random(number)
        for i in range(6):
            (directory / f"dir{i % 3}").mkdir(parents=True, exist_ok=True)
            (directory / f"dir{i % 3}" / f"{number} {i}").write_bytes(rng.randbytes(rng.randrange(30000)))
        (directory / "large").write_bytes(random.Random(0).randbytes(200000) + rng.randbytes(70000))
        (directory / "dir1" / f"link{number}").symlink_to("../large")

    @staticmethod
    def held(node):
        found = {mirror["name"]: mirror for mirror in node.json("/api/v1/mirrors")["mirrors"]}.get("papers")
        return (found.get("held") or {}).get("number", 0) if found else ABSENT

    def tell(self, teller):
        data, others = teller.root / "data", teller.others
        port = free_port()
        (others / "port").write_text(str(port))
        with Node(others / "publisher", "--address", "127.0.0.1", "--port", port, settings=self.settings) as publisher:
            with Node(data, "--address", "127.0.0.1", "--port", "0", settings=self.settings) as node:
                for number in (1, 2, 3):
                    self.change(others / "source", number)
                    done = run(others / "publisher", "mirror", "publish", "papers", others / "source", "--public")
                    shutil.copytree(others / "source", others / f"v{number}", symlinks=True)
                    if number == 1:
                        run(data, "mirror", "subscribe", done.stdout.split("subscribe ")[1].strip(), "--from",
                            f"127.0.0.1:{port}")
                        teller.promise("subscribed", "yes")
                    wait_for(lambda: self.held(node) == number, lambda: node.ask("/api/v1/mirrors")[1])
                    teller.promise("held", number)
                node.stop()
            publisher.stop()

    def compare(self, data, number, when):
        found = tree(data / "collections" / "papers" / "current")
        if found != self.trees[number]:
            wrong = sorted(path for path in {*found, *self.trees[number]} if found.get(path) != self.trees[number].get(path))
            raise Failed(f"{when}, version {number} is held and not whole: {wrong}")

    def check(self, root, lines, others):
        data, values = root / "data", promised(lines)
        if not data.exists():
            return
        subscribed = (data / "collections" / "papers" / "setup.json").exists()
        if "subscribed" in values and not subscribed:
            raise Failed("it is no subscriber any more")
        if not subscribed:
            Node(data, "--address", "127.0.0.1", "--port", "0").kill()
            return
        with Node(data, "--address", "127.0.0.1", "--port", "0", "--config", self.closed) as node:
            wait_for(lambda: self.held(node) != ABSENT, patience_s=10)
            number = self.held(node)
            hold(self, "held", values, number)
            if number > 0:
                self.compare(data, number, "at the start")
        with Node(data, "--address", "127.0.0.1", "--port", "0") as node:
            wait_for(lambda: self.held(node) == 3, lambda: f"{node.ask('/api/v1/mirrors')[1]} {node.said}", patience_s=30)
            self.compare(data, 3, "at the end")


# ---- a member of a ring ----


class SlowHandler(FastHandler):
    """For a crawler that calls itself slow."""

    def do_GET(self):
        if "slow" in self.headers["User-Agent"]:
            time.sleep(0.3)
        super().do_GET()


class Member:
    """A node that joins a ring, confirms what its founder decrees, and takes links of a job that they share. The power of
    the founder does not fail; it is quick, and forgets links that the member has taken: then the member alone knows them."""

    courses = {"charter": [0, 1, 2], "takedown": ["shown", "hidden"], "key": None}
    hubs_count, pages_count = 8, 40
    workers = 1
    spared = ("founder",)

    @staticmethod
    def settings(name):
        return ("[crowd]\nenabled = no\n[crawl]\nallow_private = yes\nallow_private_ring = yes\n"
                f"user_agent = {name}\n[search]\nenabled = no\n")

    def open_site(self, others):
        port_file = others / "port"
        if not port_file.exists():
            port_file.write_text(f"{free_port()} {free_port()} {free_port()}")
        site_port, self.founder_port, self.member_port = map(int, port_file.read_text().split())
        self.site = FixedSite(site_port, SlowHandler)
        for i in range(self.pages_count):
            links = "".join(f'<a href="/{j}">{j}</a> ' for j in range(self.hubs_count, self.pages_count)
                            if i < self.hubs_count and j % self.hubs_count == i)
            self.site.put(f"/{i}", f"<title>page{i}</title>{links}")

    def start(self, data, name, *options):
        address, port = ("127.0.0.1", self.founder_port) if name == "quick" else ("127.0.0.2", self.member_port)
        return Node(data, "--address", address, "--port", port, *options, settings=self.settings(name))

    def open(self, others):
        self.open_site(others)
        return self

    def close(self):
        self.site.close()

    def seen(self, *nodes):
        return set().union(*(pages_seen(self.site, node) for node in nodes))

    def tell(self, teller):
        data, others, say = teller.root / "data", teller.others, teller.promise
        self.open_site(others)
        founder_data = teller.root / "founder"
        run(founder_data, "ring", "create", "films", "--open", "--replicas", "1")
        with self.start(founder_data, "quick") as founder:
            with self.start(data, "slow", "--join", f"127.0.0.1:{self.founder_port}") as member:
                wait_for(lambda: member.json("/api/v1/ring")["state"] == "member")
                say("charter", 1)
                say("key", member.json("/api/v1/ring")["key"])
                done = run(founder_data, "ring", "takedown", Desk.takedown)
                wait_for(lambda: Desk.access_of(data) == "hidden")
                if "2 of 2" in done.stdout:
                    say("takedown", "hidden")
                urls = [self.site.url(f"/{i}") for i in range(self.hubs_count)]
                run(founder_data, "job", "add", "--ring", *urls, "--delay", "0")
                say("job", "given")
                run(founder_data, "ring", "amend", "--period", "2 d")
                wait_for(lambda: (member.json("/api/v1/ring").get("charter") or {}).get("version") == 2)
                say("charter", 2)
                wait_for(lambda: len(self.seen(founder, member)) == self.pages_count,
                         lambda: f"{sorted(self.seen(founder, member))} {founder.ask('/api/v1/jobs')[1]}")
                member.stop()
            founder.stop()
        self.site.close()

    def check(self, root, lines, others):
        data, values = root / "data", promised(lines)
        if not data.exists() or "charter" not in values:
            return
        with self.start(root / "founder", "quick") as founder, self.start(data, "slow") as member:
            ring = member.json("/api/v1/ring")
            hold(self, "charter", values, (ring.get("charter") or {}).get("version", 0))
            hold(self, "key", values, ring["key"])
            hold(self, "takedown", values, Desk.access_of(data))
            if "job" in values:
                wait_for(lambda: len(self.seen(founder, member)) == self.pages_count,
                         lambda: f"forgotten: {sorted(set(range(self.pages_count)) - self.seen(founder, member))}; "
                         f"{member.ask('/api/v1/jobs')[1]} {founder.ask('/api/v1/jobs')[1]} {member.said}", patience_s=30)


STORIES = {"desk": Desk, "crawl": Crawl, "mirror": Mirror, "member": Member}


def main():
    name, root, promises = sys.argv[1:]
    pathlib.Path(root).mkdir(exist_ok=True)
    STORIES[name]().tell(Teller(root, promises))


if __name__ == "__main__":
    main()
