"""What is run with an injected failure, and what must hold afterwards, whatever failed: see tools/inject."""
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import injector
from webserver import Site

PATIENCE_S = 60  # for a run that takes less than one
WAIT_S = 10  # until a crawl that waits for memory or a disk is interrupted
AGAIN_S = 50  # until one must have tried again what failed once
# A reason that a user can act upon. The first are the words of src/base/err.c.
CLEAR = re.compile(
    r"out of memory|no space left|disk quota|reading or writing failed|too many open files|input/output error|"
    r"the system starts no more threads|no thread for|not enough memory|cannot allocate memory|IO error: ",
    re.IGNORECASE,
)


class Broken(Exception):
    """What must hold does not."""


def expect(condition, *words):
    if not condition:
        raise Broken(" ".join(str(word) for word in words)[:3000])


class Runner:
    """Starts the program, with and without the injector."""

    def __init__(self, program, library):
        self.program = str(program)
        self.library = library

    def plain(self, *arguments):
        return subprocess.run(
            [self.program, *map(str, arguments)], capture_output=True, text=True, errors="replace", timeout=PATIENCE_S
        )

    def start(self, table, *arguments, out):
        """Output goes to files, as it may by a user's redirection: then writing it can fail, too."""
        with open(f"{out}.out", "wb") as stdout, open(f"{out}.err", "wb") as stderr:
            return subprocess.Popen(
                [self.program, *map(str, arguments)], stdout=stdout, stderr=stderr, stdin=subprocess.DEVNULL,
                env=table.environment(self.library),
            )

    def run(self, table, *arguments, out, may_wait=False):
        """may_wait: for better times, as a crawl does; a user who is tired of it presses Ctrl-C."""
        process = self.start(table, *arguments, out=out)
        was_interrupted = False
        if may_wait:
            try:
                process.wait(timeout=WAIT_S if table.stays() else AGAIN_S)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
                was_interrupted = True
        result = Result(await_end(process), out)
        result.waited = was_interrupted and table.stays()
        return result


def await_end(process):
    try:
        return process.wait(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        stacks = stacks_of(process.pid)
        process.kill()
        process.wait()
        raise Broken("hangs\n" + stacks)


class Result:
    library = ""  # whose call failed

    def __init__(self, code, out):
        self.code = code
        self.out = pathlib.Path(f"{out}.out").read_text(errors="replace")
        self.err = pathlib.Path(f"{out}.err").read_text(errors="replace")


def stacks_of(pid):
    if shutil.which("gdb") is None:
        return ""
    said = subprocess.run(
        ["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 14"], capture_output=True, text=True
    )
    return "\n".join(line for line in said.stdout.splitlines() if line.startswith(("#", "Thread")))


# RocksDB of Debian is built with its assertions, and one of them is wrong: a file that could not be synced and is closed.
LIBRARY_BUGS = ("AssertFalseAndGetStatusForPrevError",)


def check_end(result):
    """libuv ends the process if it gets neither memory nor a pipe for a loop. What was stored must be there all the same."""
    if result.code == -6 and (any(bug in result.err for bug in LIBRARY_BUGS) or result.library.startswith("libuv")):
        return
    expect(result.code >= 0, "died of signal", -result.code, result.err[-2000:])
    for text in ("assertion failed", "AddressSanitizer", "LeakSanitizer", "runtime error:"):
        expect(text not in result.err, text, result.err[-6000:])


# ---- an archive in a directory ----


def captures_of(runner, data):
    """What the archive lists: URL, time, status and digest."""
    listed = runner.plain("list", "--data", data, "*")
    if listed.returncode != 0 and "there is no archive" in listed.stderr:
        return []
    expect(listed.returncode == 0, "list fails:", listed.stderr)
    captures = []
    for line in listed.stdout.splitlines():
        surt, time, fields = line.split(" ", 2)
        fields = json.loads(fields)
        captures.append((fields["url"], time, fields.get("status"), fields["digest"]))
    return sorted(captures)


def check_sound(runner, data):
    if (data / "volumes").exists():
        said = runner.plain("store", "verify", "--data", data)
        if "there is no archive" in said.stderr:
            return
        expect(said.returncode == 0 and "all sound" in said.stdout, "not sound:", said.stdout, said.stderr)


def check_reason(result):
    if result.code < 0:
        return
    expect("mnemon" in result.err, "fails without a word:", result.code, result.out, result.err)
    expect(CLEAR.search(result.err), "unclear:", result.err)


# ---- import ----


def record(kind, url, date, block, **fields):
    head = {"WARC-Type": kind, "WARC-Target-URI": url, "WARC-Date": date, **fields}
    head["WARC-Record-ID"] = f"<urn:uuid:00000000-0000-4000-8000-{abs(hash((kind, url, date))) % 10**12:012d}>"
    types = {"response": "application/http;msgtype=response", "request": "application/http;msgtype=request"}
    head["Content-Type"] = types.get(kind, "text/plain")
    head["Content-Length"] = len(block)
    text = "WARC/1.1\r\n" + "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in head.items())
    return text.encode() + b"\r\n" + block + b"\r\n\r\n"


def answer(body, kind="text/html"):
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def tiny_warc():
    """A page with its request, the same page again, a picture of two pages' size, and a resource."""
    page = answer("<title>One</title><p>archive of words</p>" + '<a href="/two">two</a>' * 20)
    get = b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"
    return [
        record("response", "http://example.org/", "2020-01-01T00:00:00Z", page),
        record("request", "http://example.org/", "2020-01-01T00:00:00Z", get),
        record("response", "http://example.org/", "2021-01-01T00:00:00Z", page),
        record("response", "http://example.org/data", "2020-01-01T00:00:01Z", answer(os.urandom(9000).hex(), "image/x")),
        record("resource", "http://example.org/note", "2020-01-01T00:00:02Z", b"a note"),
    ]


class Scenario:
    """What all have: an archive to start from, of which each run has a copy."""

    def __init__(self, runner, scratch):
        self.runner = runner
        scratch.mkdir(parents=True)
        self.start = scratch / "start"

    def must(self, *arguments):
        done = self.runner.plain(*arguments)
        assert done.returncode == 0, done.stderr
        return done

    def prepare(self):
        self.start.mkdir()

    def copy(self, place):
        shutil.copytree(self.start, place)
        return place

    def close(self):
        pass


class Import(Scenario):
    """mnemon import of a WARC file, compressed by record, and of a WACZ file with another; into a new archive."""

    name = "import"
    has_wacz = True

    def __init__(self, runner, scratch):
        super().__init__(runner, scratch)
        self.files = [scratch / "tiny.warc.gz"]
        self.files[0].write_bytes(b"".join(gzip.compress(one) for one in tiny_warc()))
        if self.has_wacz:
            plain = scratch / "other.warc"
            plain.write_bytes(
                record("response", "http://example.net/", "2022-01-01T00:00:00Z", answer("<p>other"))
            )
            other = scratch / "other"
            self.must("import", "--quiet", "--data", other, plain)
            self.must("export", "--data", other, "--output", scratch / "other.wacz")
            self.files.append(scratch / "other.wacz")
        self.prepare()
        whole = self.copy(scratch / "whole")
        self.said = self.must(*self.command(whole)).stdout
        self.expected = captures_of(runner, whole)
        assert len(self.expected) == 4 + self.has_wacz, self.expected

    def command(self, data):
        return ["import", "--quiet", "--json", "--data", data, *self.files]

    def run(self, table, place):
        return self.runner.run(table, *self.command(self.copy(place / "data")), out=place / "run")

    def check(self, result, place, fired):
        data = place / "data"
        check_end(result)
        kept = captures_of(self.runner, data) if (data / "volumes").exists() else []
        if result.code == 0:
            expect(kept == self.expected, "says that all is stored:", kept, result.err)
            expect(result.out == self.said, "says something else:", result.out, result.err)
        else:
            check_reason(result)
            said = json.loads(result.out) if result.out.strip().endswith("}") else {"captures": 0}
            expect(len(kept) >= said["captures"], "counts more than it stored:", result.out, kept)
        check_sound(self.runner, data)
        again = self.runner.plain(*self.command(data))
        expect(again.returncode == 0, "the next run fails:", again.stderr, "after", result.err)
        expect(captures_of(self.runner, data) == self.expected, "the next run does not complete it", result.err)
        check_sound(self.runner, data)


class ImportMore(Import):
    """The same into an archive that holds a part of it."""

    name = "import-more"

    def prepare(self):
        first = self.files[0].with_name("first.warc")
        first.write_bytes(tiny_warc()[0])
        self.must("import", "--quiet", "--data", self.start, first)


class ImportTiny(Import):
    """One small WARC file: for the gate."""

    name = "import-tiny"
    has_wacz = False


# ---- archive ----


def put_site(site):
    site.put("/robots.txt", "User-agent: *\nDisallow: /no\nSitemap: /map.xml\n", kind="text/plain")
    site.put("/", '<title>Start</title><link rel=stylesheet href=/s.css><a href="/a">a</a><a href="/no">no</a>')
    site.put("/a", "<p>" + "words and words " * 400 + '<a href="/moved">moved</a><img src=/i.gif>')
    site.put("/moved", status=301, headers={"Location": "/b"}, validates=False)
    site.put("/b", "the end")
    site.put("/s.css", "body { background: url(bg.gif) }", kind="text/css")
    site.put("/i.gif", b"GIF89a" + b"i" * 40, kind="image/gif")
    site.put("/bg.gif", b"GIF89a" + b"b" * 40, kind="image/gif")


class SiteScenario(Scenario):
    """With a web server."""

    def __init__(self, runner, scratch):
        super().__init__(runner, scratch)
        self.site = Site(is_fast=True)
        put_site(self.site)
        self.prepare()

    def close(self):
        self.site.close()


class Archive(SiteScenario):
    """mnemon archive of a small site; into a new archive."""

    name = "archive"

    def __init__(self, runner, scratch):
        super().__init__(runner, scratch)
        whole = self.copy(scratch / "whole")
        done = self.must(*self.command(whole))
        self.summary = json.loads(done.stdout)
        assert self.summary["state"] == "complete", done.stdout
        self.expected = self.pages(whole)
        assert len(self.expected) == 8, self.expected

    def pages(self, data):
        """URLs and what they are. A revisit has the digest of what it is one of."""
        return {(url, digest) for url, time, status, digest in captures_of(self.runner, data)}

    def command(self, data):
        options = ["--allow-private", "--delay", "0", "--json", "--quiet"]
        return ["archive", self.site.url("/"), *options, "--data", data]

    def run(self, table, place):
        return self.runner.run(table, *self.command(self.copy(place / "data")), out=place / "run", may_wait=True)

    def check(self, result, place, fired):
        data = place / "data"
        check_end(result)
        kept = captures_of(self.runner, data) if (data / "volumes").exists() else []
        summary = json.loads(result.out) if result.out.strip().endswith("}") else None
        if result.code == 0:
            expect(summary is not None, "is done without a summary", result.err)
            complete = summary["state"] == "complete" and summary["failed"] == 0
            pages = {(url, digest) for url, time, status, digest in kept}
            expect(not complete or pages >= self.expected, "says that it is complete:", self.expected - pages, result.err)
            said_why = result.err.strip() or summary["failed"] > 0 or result.waited
            expect(complete or said_why, "incomplete, and nobody says why", result.out)
        else:
            check_reason(result)
        if summary is not None:
            expect(len(kept) >= summary["stored"], "counts more than it stored:", result.out, kept)
        check_sound(self.runner, data)
        again = self.runner.plain(*self.command(data))
        expect(again.returncode == 0, "the next run fails:", again.stderr, "after", result.err)
        summary = json.loads(again.stdout)
        expect(summary["state"] == "complete", "the next run does not complete it", again.stdout, again.stderr)
        expect(self.pages(data) >= self.expected, "missing for ever:", self.expected - self.pages(data), result.err)
        check_sound(self.runner, data)


class ArchiveAgain(Archive):
    """The second visit of a site."""

    name = "archive-again"

    def prepare(self):
        self.must(*self.command(self.start))


SCENARIOS = {one.name: one for one in (ImportTiny, Import, ImportMore, Archive, ArchiveAgain)}


# ---- a campaign ----


class Case:
    """One failure at one point."""

    def __init__(self, point, number, stays, nth):
        self.point = point
        self.number = number
        self.stays = stays
        self.nth = nth

    def __str__(self):
        word = "short" if self.number == injector.SHORT else injector.errno.errorcode[self.number]
        library = f" of {self.point.library}" if self.point.library else ""
        return (
            f"{self.point.name}{library} {word}{' from then on' if self.stays else ''}, time {self.nth} "
            f"of {self.point.count} [{self.point.hash:x}]"
        )


def cases_of(points):
    """Every fault of every point at its first time; what fails once, also at its last."""
    cases = []
    for point in sorted(points, key=lambda one: one.hash):
        for number, stays in point.faults():
            cases.append(Case(point, number, stays, 1))
            if point.count > 1 and not stays:
                cases.append(Case(point, number, stays, point.count))
    return cases


def find_points(scenario, scratch, runs=2):
    """All points of a few runs, which differ a little by who is first."""
    if hasattr(scenario, "find"):
        return scenario.find(runs)
    found = {}
    for i in range(runs):
        place = scratch / f"count{i}"
        place.mkdir(parents=True)
        table = injector.Table(place / "table")
        result = scenario.run(table, place)
        assert result.code == 0, result.err
        for point in table.points():
            known = found.setdefault(point.hash, point)
            known.count = min(known.count, point.count)
        table.close()
        shutil.rmtree(place)
    return list(found.values())


def try_case(scenario, case, place):
    """None if all is well, a text if not; how many calls have failed; what the program said."""
    if hasattr(scenario, "try_case"):
        return scenario.try_case(case, place)
    place.mkdir(parents=True)
    table = injector.Table(place / "table")
    table.arm(case.point.hash, case.number, case.stays, case.nth)
    fault = None
    said = ""
    try:
        result = scenario.run(table, place)
        result.library = case.point.library
        said = result.err
        scenario.check(result, place, table.fired())
    except Broken as broken:
        fault = str(broken)
    except subprocess.TimeoutExpired as slow:
        fault = f"hangs: {slow}"
    fired = table.fired()
    table.close()
    shutil.rmtree(place)
    return fault, fired, said
