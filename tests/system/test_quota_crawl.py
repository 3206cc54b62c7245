"""A node of a ring reaches its quota of disk in the middle of a crawl: the quota is kept, nothing is lost, and all words are true."""
import hashlib
import http.server
import json
import threading
import urllib.error
import urllib.request

from ringnodes import await_agreement, found
from test_disks import QUOTA, disk_of, make_node, node, store_of  # noqa: F401 (a fixture by its name)
from waiting import PATIENCE_S, wait_for

RULES = ("[ring]", "grace = 6 s", "compare = 2 s")
SERVE = ("--allow-private", "--allow-private-ring")
FILES = [f"/{i}" for i in range(110)]
FILE_SIZE = 1_300_000
TURN_S = 0.5  # each look asks all nodes for all that they have


class Files(http.server.BaseHTTPRequestHandler):
    """A page with links to files that do not compress."""

    bodies = {path: hashlib.shake_128(path.encode()).digest(FILE_SIZE) for path in FILES}
    bodies["/"] = "".join(f"<a href={path}>{path}</a>" for path in FILES).encode()

    def do_GET(self):
        body = self.bodies.get(self.path, b"")
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html" if self.path == "/" else "image/x-noise")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def read(each, url):
    """None while the capture is on its way from one node to another."""
    try:
        with urllib.request.urlopen(f"{each.url}/web/2030id_/{url}", timeout=PATIENCE_S) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        assert error.code in (404, 503), error.code
        return None


def test_a_quota_that_is_reached_in_the_middle_of_a_crawl_costs_nothing(node):  # noqa: F811
    nodes = [make_node(node, number, *RULES) for number in (2, 3, 4)]
    small = nodes[1]
    found(nodes[0], "--open", "--replicas", "2")
    nodes[0].start(*SERVE)
    small.start("--join", nodes[0].place, "--capacity", "8", "--disk", f"{QUOTA}B", *SERVE)
    nodes[2].start("--join", nodes[0].place, *SERVE)
    await_agreement(list(nodes))
    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
    site.daemon_threads = True
    threading.Thread(target=site.serve_forever, daemon=True).start()
    root = f"http://127.0.0.1:{site.server_port}"
    wanted = {root + path for path in Files.bodies}
    added = nodes[0].run("job", "add", "--ring", f"{root}/", "--scope", "host", "--delay", "0")
    assert added.returncode == 0, added.stderr

    def held(each):
        done = each.run("list", "--local", "--json", f"{root}/*")
        assert done.returncode == 0, done.stderr
        return {(capture["url"], capture["timestamp"]) for capture in map(json.loads, done.stdout.splitlines())}

    told = set()  # what any node has said to have

    def is_nearly_full():
        assert disk_of(small) <= 1.01 * QUOTA
        told.update(*(held(each) for each in nodes))
        return store_of(small)["used_bytes"] > 0.95 * QUOTA

    def describe():
        return str([(store_of(each)["used_bytes"], len(held(each))) for each in nodes]) + small.said

    wait_for(is_nearly_full, describe, turn_s=TURN_S)

    # Until nothing moves: the quota is kept, what it says of its disk is so, and it reads.
    def is_at_rest():
        before = told.copy()
        return is_nearly_full() and told == before

    wait_for(is_at_rest, describe, turn_s=2 * TURN_S)
    store = store_of(small)
    assert store["quota_bytes"] == QUOTA and abs(store["used_bytes"] - disk_of(small)) <= QUOTA / 100
    assert "The quota of disk is nearly used" in small.get("/dashboard")
    # Captures go from one node to another, so a moment later it may be the other one that has it.
    wait_for(lambda: told <= set().union(*(held(each) for each in nodes)), describe, turn_s=TURN_S)
    for url in sorted(url for url, _ in told)[::7]:
        body = wait_for(lambda: read(small, url), f"{url}\n{small.said}")
        assert body == Files.bodies[url.removeprefix(root)]

    # With room it goes on by itself.
    small.stop()
    small.start("--disk", "1GB", *SERVE)

    def copies():
        urls = [{url for url, _ in held(each)} for each in nodes]
        return {url: sum(url in has for has in urls) for url in wanted}

    wait_for(lambda: min(copies().values()) >= 2, lambda: str(sorted(copies().values())[:9]) + describe(), turn_s=TURN_S)
    wait_for(lambda: told <= set().union(*(held(each) for each in nodes)), describe, turn_s=TURN_S)
    site.shutdown()
