"""What suddenly everybody wants: one node has it, all others ask at once. At the size of its issue: MNEMON_CROWD_NODES=40."""

import concurrent.futures
import http.server
import json
import os
import pathlib
import random
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

from ringnodes import found, many, program, wait_for

COUNT = int(os.environ.get("MNEMON_CROWD_NODES", "10"))
SIZE = 300_000
BUSY_S = 120
TITLE = "The bridge has fallen"


class Origin:
    """A page that is worth reading, and how often it was fetched."""

    def __init__(self):
        origin = self
        self.fetched = 0
        self.body = f"<title>{TITLE}</title><p>".encode() + random.Random(7).randbytes(SIZE // 2).hex().encode()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                is_page = self.path == "/news.html"
                origin.fetched += is_page
                self.send_response(200 if is_page else 404)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(origin.body if is_page else b"")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.9.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.9.1:{self.server.server_address[1]}/news.html"


@pytest.fixture
def origin():
    made = Origin()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def node(mnemon, tmp_path):
    with many(mnemon, tmp_path) as make:
        yield make


def crowd(node):
    return json.loads(node.get("/api/v1/crowd"))


def configure(node, *lines):
    node.directory.mkdir(exist_ok=True)
    (node.directory / "mnemon.conf").write_text("\n".join(("[crowd]", "shuffle = 500 ms", *lines, "")))


def start_crowd(node, count, options=lambda number: ()):
    nodes = [node(2 + i, ip=f"127.0.9.{2 + i}") for i in range(count)]
    start_all(nodes, options)
    return nodes


def start_all(nodes, options):
    """The first one offers what it keeps, the others only what was read at them."""
    count = len(nodes)
    for number, each in enumerate(nodes):
        configure(each, *(("offers = kept",) if number == 0 else ()), *options(number))
    found(nodes[0], "--open", "--replicas", "1")
    nodes[0].start("--allow-private")
    for each in nodes[1:]:
        each.launch("--allow-private", "--join", nodes[0].place)
    for each in nodes[1:]:
        each.ready()
    least = min(count - 1, 6) // 2
    wait_for(lambda: all(len(crowd(n).get("view", [])) > least for n in nodes), "views", BUSY_S)


def archive(node, origin):
    """The first node has it, signed by itself."""
    added = node.run("job", "add", origin.url, "--scope", "page", "--delay", "0")
    assert added.returncode == 0, added.stderr
    wait_for(lambda: "/news.html" in node.run("list", "*").stdout, "the capture")


def locate(node, url, **more):
    query = urllib.parse.urlencode({"url": url, **more})
    try:
        with urllib.request.urlopen(f"{node.url}/api/v1/crowd/locate?{query}", timeout=60) as answer:
            return answer.read() if more.get("content") == "payload" else json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return {**json.loads(error.read()), "status": error.code}


def await_found(node, origin):
    """What it finds, at the first time or later: on a busy machine its neighbours may seem to be gone for a while."""
    last = {}

    def has_it():
        last.clear()
        last.update(locate(node, origin.url))
        return last if last.get("size") == len(origin.body) else None

    return wait_for(has_it, lambda: f"{node.place}: {last}\n{node.said}")


def locate_or_die(node, url):
    try:
        locate(node, url)
    except OSError:
        pass


def test_everybody_gets_it_and_the_only_holder_gives_it_a_few_times(node, origin):
    nodes = start_crowd(node, COUNT)
    archive(nodes[0], origin)
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(max_workers=COUNT) as pool:
        answers = list(pool.map(lambda n: locate(n, origin.url), nodes[1:]))
    seconds = time.monotonic() - begin
    assert all(a.get("size") == len(origin.body) for a in answers), answers
    assert {a["fetched_by"] for a in answers} == {nodes[0].status()["key"]}
    states = [crowd(n) for n in nodes]
    given = [state["offers"]["given"] for state in states]
    total = sum(state["offers"]["given_size"] for state in states)
    print(f"{COUNT - 1} nodes in {seconds:.2f} s; given by the first {given[0]} times, {total / SIZE / (COUNT - 1):.2f} of the least bytes")
    assert given[0] <= 6
    assert total <= 1.5 * len(origin.body) * (COUNT - 1)
    assert origin.fetched == 1, "nobody fetches on another's word"

    # Each has it now, without asking anybody.
    again = locate(nodes[-1], origin.url)
    assert again["source"] == "own"
    assert locate(nodes[-1], origin.url, content="payload") == origin.body


def test_by_digest_by_words_and_by_time(node, origin):
    a, b, c, d = start_crowd(node, 4)
    archive(a, origin)
    first = locate(b, origin.url)
    assert first["source"] == "crowd", first
    by_digest = json.loads(c.get(f"/api/v1/crowd/locate?digest={first['digest']}"))
    assert by_digest["url"] == origin.url
    by_words = json.loads(d.get("/api/v1/crowd/locate?words=Bridge%20FALLEN"))
    assert by_words["url"] == origin.url and by_words["digest"] == first["digest"]
    assert locate(c, origin.url, since=3600)["timestamp"] == first["timestamp"]
    assert locate(c, origin.url, at="1999")["timestamp"] == first["timestamp"]
    assert locate(d, "http://127.0.9.1:1/absent")["status"] == 404

    # As a person would.
    shown = b.run("crowd", "locate", origin.url)
    assert shown.returncode == 0 and first["digest"] in shown.stdout and "/web/" in shown.stdout
    saved = b.directory / "saved.html"
    assert b.run("crowd", "locate", origin.url, "--output", saved).returncode == 0
    assert saved.read_bytes() == origin.body
    assert b.run("crowd", "status").stdout.startswith("crowd")
    lost = d.run("crowd", "locate", "http://127.0.9.1:1/absent")
    assert lost.returncode == 1 and lost.stderr


def beside(mnemon, name):
    path = pathlib.Path(program(mnemon)).parent / "tests" / "system" / name
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return str(path)


def liar_of(node):
    """The same node, run by a program that lies about objects."""
    honest = node.mnemon
    node.program = beside(honest, "mnemon-liar")
    return node


def test_found_among_mutes_liars_and_the_dying(node, origin):
    """Half of the nodes drop all queries, two lie, four are killed while everybody searches."""
    mutes, liars, dying, honest = 9, 2, 4, 4
    parts = ["full"] + ["full"] * (honest + dying) + ["mute"] * mutes + ["full"] * liars
    nodes = [node(2 + i, ip=f"127.0.9.{2 + i}") for i in range(len(parts))]
    for each in nodes[-liars:]:
        liar_of(each)
    start_all(nodes, lambda number: (f"part = {parts[number]}",))
    archive(nodes[0], origin)
    victims = nodes[1 + honest : 1 + honest + dying]
    askers = [n for n in nodes[1:-liars] if n not in victims]
    with concurrent.futures.ThreadPoolExecutor(max_workers=len(nodes)) as pool:
        searches = {each.place: pool.submit(locate, each, origin.url) for each in askers}
        doomed = [pool.submit(locate_or_die, each, origin.url) for each in victims]
        for each in victims:
            time.sleep(0.05)  # one by one, while the searches are under way: the moment is the subject
            each.kill()
        answers = {place: search.result() for place, search in searches.items()}
        concurrent.futures.wait(doomed)
    found_count = sum(a.get("size") == len(origin.body) for a in answers.values())
    lost = [a for a in answers.values() if "size" not in a]
    print(f"{found_count} of {len(askers)} found it at once; {lost}")
    true_key = nodes[0].status()["key"]
    for each in askers:
        # Who lost it at once finds it when it asks again; what was not found is remembered for a while.
        assert await_found(each, origin)["fetched_by"] == true_key
        assert locate(each, origin.url, content="payload") == origin.body
    refused = sum(crowd(each)["obtained"]["false"] for each in askers)
    print(f"refused as false: {refused}")
    assert found_count >= 0.5 * len(askers)  # all of them where the machine has time for so many nodes


def test_one_who_floods_hinders_nobody(node, origin):
    """Queries for what nobody has, findings that nobody asked for, as fast as they go, at each node; others search meanwhile."""
    nodes = start_crowd(node, 6)
    archive(nodes[0], origin)
    ring = nodes[0].status()["charter"]["id"]
    stranger = beside(nodes[0].mnemon, "stranger")
    floods = [subprocess.Popen([stranger, each.place, what, "8000", ring], stdout=subprocess.DEVNULL)
              for each in nodes for what in ("queries", "hits")]
    try:
        wait_for(lambda: sum(crowd(n)["queries"]["received"] for n in nodes) > 1000, "the flood")
        answers = [await_found(each, origin) for each in nodes[1:]]
    finally:
        for flood in floods:
            flood.wait(timeout=120)
    states = [crowd(n) for n in nodes]
    received = sum(s["queries"]["received"] for s in states)
    forwarded = sum(s["queries"]["forwarded"] for s in states)
    limited = sum(s["queries"]["limited"] + s["queries"]["crowded_out"] for s in states)
    print(f"{received} queries received, {limited} dropped, {forwarded} copies sent on")
    assert limited > 0.5 * received
    assert forwarded < received, "a flood is not multiplied"
    assert sum(s["messages"]["unasked"] for s in states) > 0
    assert {a["fetched_by"] for a in answers} == {nodes[0].status()["key"]}


def test_what_is_taken_down_is_not_handed_on(node, origin):
    a, b, c = start_crowd(node, 3)
    archive(a, origin)
    assert locate(b, origin.url)["source"] == "crowd"
    assert a.run("ring", "takedown", origin.url).returncode == 0
    wait_for(lambda: crowd(a)["offers"]["count"] + crowd(b)["offers"]["count"] == 0, "the offers are withdrawn")
    assert "size" not in locate(c, origin.url)
    assert "size" not in locate(b, origin.url)
    assert a.run("ring", "restore", origin.url).returncode == 0
    wait_for(lambda: "size" in locate(c, origin.url), "it is there again")


def write_warc(path, url, body, *fields):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    block = head + body
    lines = ["WARC/1.1", "WARC-Type: response", f"WARC-Target-URI: {url}", "WARC-Date: 2011-05-06T07:08:09Z",
             "WARC-Record-ID: <urn:uuid:6f5d8b1e-0c9f-4f7e-9f43-2f3f3a3c9d01>", *fields,
             "Content-Type: application/http;msgtype=response", f"Content-Length: {len(block)}", "", ""]
    path.write_bytes("\r\n".join(lines).encode() + block + b"\r\n\r\n")
    return path


def test_what_a_member_imported_is_found_under_the_name_of_the_importer(node, tmp_path):
    a, b, c = start_crowd(node, 3)
    url = "http://old.example/news.html"
    body = f"<title>{TITLE}</title><p>in 2011".encode()
    file = write_warc(tmp_path / "old.warc", url, body)
    imported = a.run("import", file)
    assert imported.returncode == 0, imported.stderr
    importer = a.status()["key"]

    class Wanted:
        pass

    Wanted.url, Wanted.body = url, body
    found = await_found(b, Wanted)
    assert found["imported_by"] == importer and "fetched_by" not in found, found
    assert found["timestamp"] == "20110506070809" and locate(b, url, content="payload") == body
    # b, whose arc it is in, takes it when it has heard what the ring takes.
    wait_for(lambda: url in b.run("list", "--local", url).stdout, lambda: b.said)
    # Readers are told so: by the header, in the banner and on the page of details.
    with urllib.request.urlopen(f"{b.url}/web/20110506070809id_/{url}", timeout=60) as answer:
        assert (answer.headers["X-Mnemon-Imported-By"], answer.read()) == (importer, body)
    for each, is_named in ((b, True), (a, False)):  # at home it goes without saying
        asked = urllib.request.Request(f"{each.url}/web/20110506070809/{url}", headers={"Accept": "text/html", "Sec-Fetch-Dest": "document"})
        with urllib.request.urlopen(asked, timeout=60) as answer:
            frame = answer.read().decode()
        assert "id=banner" in frame and (f"imported by {importer}" in frame) == is_named, frame
    details = b.get(f"/details/20110506070809/{url}")
    assert f"<dt>Imported by</dt><dd>{importer}" in details and "Fetched by" not in details, details
    # From the second hand, too: c takes it from b if a is gone, and the importer is still a.
    a.kill()
    again = await_found(c, Wanted)
    assert again["imported_by"] == importer and "fetched_by" not in again, again
    shown = c.run("crowd", "locate", url)
    assert shown.returncode == 0 and f"imported by {importer}" in shown.stdout and "fetched by" not in shown.stdout
    assert [crowd(each)["obtained"]["false"] for each in (b, c)] == [0, 0]


def test_a_false_signature_in_a_file_is_not_handed_on(node, tmp_path):
    """The file claims to have been fetched, and imported, by a member: neither is so."""
    a, b = start_crowd(node, 2)
    url = "http://old.example/forged.html"
    body = b"<title>forged</title>"
    other = b.status()["key"]
    file = write_warc(tmp_path / "forged.warc", url, body, f"Mnemon-Signature: {other} {'00' * 64}",
                      f"Mnemon-Imported: {other} {'11' * 64}")
    assert a.run("import", file).returncode == 0

    class Wanted:
        pass

    Wanted.url, Wanted.body = url, body
    found = await_found(b, Wanted)
    assert found["imported_by"] == a.status()["key"] and "fetched_by" not in found, found
    assert crowd(b)["obtained"]["false"] == 0, "the importer is not blamed for what the file said"
