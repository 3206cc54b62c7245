"""A node with injected failures: while it starts and stops, and while it answers and crawls."""
import http.client
import json
import re
import shutil
import signal
import threading
import urllib.parse

import injector
from injections import (
    SCENARIOS, Broken, Result, SiteScenario, await_end, captures_of, check_end, check_reason, check_sound, expect, stacks_of,
    tiny_warc,
)
from waiting import wait_for

START_S = 60
ANSWER_S = 45  # a request that fails must do so some day
CRAWL_S = 20
QUIET = -1  # no answer: the connection was closed, which is an answer to those who are told that there was a failure


class Late(Broken):
    """Answers come, but not the one that is waited for."""


def read_requests(page):
    """What a reader asks for, and what comes back: path and status."""
    quoted = urllib.parse.quote(page, safe="")
    return [
        ("/", 200),
        ("/health", 200),
        (f"/web/20200101000000/{page}", 200),
        (f"/web/20200101000000id_/{page}", 200),
        (f"/web/20210101000000if_/{page}", 200),
        (f"/web/2020/{page}", 302),
        (f"/web/*/{page}", 200),
        (f"/web/timemap/link/{page}", 200),
        (f"/cdx?url={quoted}", 200),
        (f"/cdx?url=example.org/*&output=json&sort=reverse", 200),
        (f"/api/v1/calendar?url={quoted}&year=2020", 200),
        (f"/api/v1/capture?url={quoted}&timestamp=20200101000000", 200),
        ("/api/v1/holdings", 200),
        ("/api/v1/search?q=words", 200),
        ("/search?q=archive", 200),
        ("/api/v1/status", 200),
        ("/dashboard", 200),
        ("/metrics", 200),
        ("/jobs", 200),
        ("/nothing-here", 404),
    ]


class Node:
    """A process that serves, with a table of points."""

    def __init__(self, runner, table, data, out):
        self.runner = runner
        self.table = table
        self.data = data
        self.out = out
        self.process = runner.start(
            table, "serve", "--data", data, "--http", "0", "--allow-private", out=out
        )
        self.port = None
        try:
            wait_for(self.has_begun_or_ended, self.say_stacks, START_S, 0.01, Broken)
        except Broken:
            self.kill()
            raise

    def has_begun_or_ended(self):
        ended = self.process.poll() is not None  # before the look: what it said last is there then
        said = (self.out.parent / f"{self.out.name}.out").read_text()
        found = re.search(r"at http://[0-9.]+:(\d+)$", said, re.MULTILINE)
        self.port = int(found.group(1)) if found and not ended else None
        return ended or self.port is not None

    def say_stacks(self):
        return "does not begin to serve\n" + stacks_of(self.process.pid)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def ask(self, path, method="GET", body=None, token=False):
        """Status and body; QUIET if the connection is closed instead. It is Broken if nothing comes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_S)
        headers = {"Accept": "application/json"} if path == "/save" else {}
        if token:
            headers["Authorization"] = "Bearer " + (self.data / "token").read_text().strip()
        if isinstance(body, dict):
            body = urllib.parse.urlencode(body)
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        try:
            connection.request(method, path, body=body, headers=headers)
            response = connection.getresponse()
            return response.status, response.read()
        except TimeoutError:
            raise Broken(f"no answer to {method} {path}\n" + stacks_of(self.process.pid))
        except (OSError, http.client.HTTPException):
            return QUIET, b""
        finally:
            connection.close()

    def result(self):
        return Result(self.process.poll(), self.out)

    def expect_alive(self, what):
        if self.process.poll() is not None:
            result = self.result()
            check_end(result)
            raise Broken(f"ended {what}: {result.code} {result.err[-2000:]}")

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        await_end(self.process)
        return self.result()


class Serve(SiteScenario):
    """A whole life: start, requests, a job that is added and crawled, a page that is saved, stop."""

    name = "serve"

    def __init__(self, runner, scratch):
        super().__init__(runner, scratch)
        self.kept = captures_of(runner, self.start)
        self.reads = read_requests("http://example.org/")

    def prepare(self):
        warc = self.start.with_name("tiny.warc")
        warc.write_bytes(b"".join(tiny_warc()))
        self.must("import", "--quiet", "--data", self.start, warc)

    def open_node(self, table, place):
        return Node(self.runner, table, self.copy(place / "data"), place / "run")

    # ---- what is asked ----

    def read_all(self, node, is_clean, skips_search):
        for path, wanted in self.reads:
            status, body = node.ask(path)
            if is_clean and status == 503:  # what is counted or read in the background is tried again
                status, body = self.ask_until(node, path, lambda now, _: now != 503, CRAWL_S)
            if skips_search and "search" in path:
                continue  # it is read again in the background
            good = status == wanted if is_clean else status in (wanted, QUIET, 404) or status >= 500
            expect(good, f"GET {path} is answered with {status} instead of {wanted}:", body[:300])

    def job(self, node, is_clean):
        """Add a job, and remove it: what is said to be there is there."""
        wish = {"url": self.site.url("/b"), "scope": "page", "delay": "0", "period": "1 h"}
        status, body = node.ask("/api/v1/jobs", "POST", json.dumps(wish), token=True)
        expect(status == 201 if is_clean else status in (201, 409, QUIET) or status >= 500, "job:", status, body)
        if status != 201:
            return
        name = json.loads(body)["job"]
        expect((node.data / "jobs" / name).is_dir(), "a job that was added has no file:", name)
        if is_clean:
            self.wait(node, f"/api/v1/jobs/{name}", lambda answer: answer.get("state") == "complete")
        status, body = node.ask(f"/api/v1/jobs/{name}", "DELETE", token=True)
        expect(status == 200 if is_clean else status in (200, QUIET) or status >= 500, "remove:", status, body)

    def save(self, node, is_clean):
        status, body = node.ask("/save", "POST", {"url": self.site.url("/a")}, token=True)
        expect(status == 200 if is_clean else status in (200, QUIET) or status >= 500, "save:", status, body)
        if status != 200:
            return
        path = f"/save/status/{json.loads(body)['job_id']}"
        done = self.wait(node, path, lambda answer: answer.get("status") != "pending", is_clean)
        if is_clean:
            expect(done["status"] == "success", "a page is not saved:", done)
        if done and done["status"] == "success":
            status, body = node.ask(f"/web/{done['timestamp']}id_/{self.site.url('/a')}")
            expect(status == 200 or (not is_clean and (status == QUIET or status >= 500)),
                   "what was saved is not there:", status, body[:300])  # fmt: skip

    @staticmethod
    def ask_until(node, path, condition, patience_s):
        """The answer once it is as it should be: condition(status, body)."""
        last = None

        def is_answered():
            nonlocal last
            last = node.ask(path)
            return condition(*last)

        wait_for(is_answered, lambda: f"{path} does not come to an end: {last}", patience_s, 0.02, Late)
        return last

    def wait(self, node, path, condition, is_clean=True):
        try:
            _, body = self.ask_until(node, path, lambda status, text: status == 200 and condition(json.loads(text)),
                                     START_S if is_clean else CRAWL_S)  # fmt: skip
        except Late:
            if is_clean:
                raise
            return None
        return json.loads(body)

    def ask_all(self, node, is_clean, skips_search=False):
        self.read_all(node, is_clean, skips_search)
        self.job(node, is_clean)
        self.save(node, is_clean)

    # ---- a life ----

    def run(self, table, place):
        node = self.open_node(table, place)
        try:
            if node.process.poll() is None:
                is_clean = table.target() == 0
                self.ask_all(node, is_clean)
                node.expect_alive("while it served")
                result = node.stop()
            else:
                result = node.result()
                result.has_not_begun = True
            return result
        except Broken:
            if node.process.poll() is None:
                node.kill()
            raise

    def check(self, result, place, fired):
        data = place / "data"
        check_end(result)
        if result.code != 0:
            check_reason(result)
            expect(getattr(result, "has_not_begun", False) or "mnemon:" in result.err, "stops with an error", result.err)
        kept = captures_of(self.runner, data)
        expect(set(kept) >= set(self.kept), "captures are lost", set(self.kept) - set(kept), result.err)
        check_sound(self.runner, data)
        table = injector.Table(place / "table-again")
        node = Node(self.runner, table, data, place / "again")
        try:
            expect(node.port is not None, "does not start again:", node.result().err if node.port is None else "")
            for path, wanted in self.reads[:3]:
                status, body = node.ask(path)
                expect(status == wanted, f"afterwards GET {path} is answered with {status}:", body[:300])
            again = node.stop()
            expect(again.code == 0, "the next life ends with an error:", again.err)
        finally:
            if node.process.poll() is None:
                node.kill()


class Requests(Serve):
    """One node for many failures: each is ordered while it runs, and the node must go on serving afterwards."""

    name = "serve-requests"
    LIVES = 150  # of failures, until another node takes its place

    def __init__(self, runner, scratch):
        super().__init__(runner, scratch)
        self.scratch = scratch
        self.threads = threading.local()
        self.lock = threading.Lock()
        self.count = 0
        self.nodes = []

    def close(self):
        for node in self.nodes:
            if node.process.poll() is None:
                node.stop()
        super().close()

    def node(self):
        node = getattr(self.threads, "node", None)
        if node is None or node.process.poll() is not None or node.lives == 0:
            if node is not None and node.process.poll() is None:
                self.end_life(node)
            with self.lock:
                self.count += 1
                place = self.scratch / f"node{self.count}"
            place.mkdir()
            node = self.open_node(injector.Table(place / "table"), place)
            node.lives = self.LIVES
            self.ask_all(node, True, True)
            self.threads.node = node
            self.nodes.append(node)
        node.lives -= 1
        return node

    def end_life(self, node):
        result = node.stop()
        expect(result.code == 0, "stops with an error:", result.err[-2000:])
        kept = captures_of(self.runner, node.data)
        expect(set(kept) >= set(self.kept), "captures are lost", set(self.kept) - set(kept))
        check_sound(self.runner, node.data)
        shutil.rmtree(node.out.parent)

    def find(self, runs):
        """Points that requests pass, not those of the start."""
        found = {}
        node = self.node()
        for _ in range(runs):
            before = {point.hash: point.count for point in node.table.points()}
            self.ask_all(node, True, True)
            for point in node.table.points():
                if point.count > before.get(point.hash, 0):
                    point.count -= before.get(point.hash, 0)
                    found.setdefault(point.hash, point)
        return list(found.values())

    def try_case(self, case, place):
        fired, said = 0, ""
        try:
            node = self.node()
            node.table.arm(case.point.hash, case.number, case.stays, case.nth)
            try:
                self.ask_all(node, False)
            finally:
                fired = node.table.disarm()
            node.expect_alive("after a failure")
            self.ask_all(node, True, True)
            node.expect_alive("after a failure")
        except Broken as broken:
            fault = str(broken)
            node = getattr(self.threads, "node", None)
            if node is not None:
                said = (node.out.parent / f"{node.out.name}.err").read_text(errors="replace")[-600:]
                if node.process.poll() is None:
                    node.kill()
                self.threads.node = None
            return fault + "\nlog: " + said, fired, ""
        return None, fired, ""


SCENARIOS[Serve.name] = Serve
SCENARIOS[Requests.name] = Requests
