"""What a running node may be told over HTTP, and by whom: login, save, jobs; and what it tells: status, metrics, health."""
import http.client
import json
import os
import re
import resource
import signal
import socket
import subprocess
import threading
import urllib.parse

import pytest

from waiting import wait_for
from webserver import Site


def page(*links, title="a page"):
    return f"<title>{title}</title>" + "".join(f'<a href="{link}">x</a>' for link in links)


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)


class Node:
    """A running node, and how to ask it."""

    def __init__(self, program, directory, options=(), settings=""):
        self.directory = directory
        directory.mkdir(exist_ok=True)
        if settings:
            (directory / "mnemon.conf").write_text(settings)
        self.process = subprocess.Popen(
            [program, "serve", "--data", directory, "--http", "0", "--allow-private", *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, restore_signals=False,
        )
        line = self.process.stdout.readline()
        match = re.search(r"at http://([0-9.]+):(\d+)$", line.strip())
        assert match, line + self.process.stderr.read()
        self.address, self.port = match.group(1), int(match.group(2))
        self.host = f"{self.address}:{self.port}"

    @property
    def token(self):
        return (self.directory / "token").read_text().strip()

    def ask(self, path, method="GET", body=None, headers=None, to=None, token=False):
        connection = http.client.HTTPConnection(to or self.address, self.port, timeout=120)
        headers = dict(headers or {})
        if token:
            headers["Authorization"] = "Bearer " + self.token
        if isinstance(body, dict):
            body = urllib.parse.urlencode(body)
            headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
        connection.request(method, path, body=body, headers=headers)
        answer = Answer(connection.getresponse())
        connection.close()
        return answer

    def login(self):
        answer = self.ask("/login", "POST", {"token": self.token})
        assert answer.status == 303
        return answer.headers["Set-Cookie"].split(";")[0]

    def form_token(self, cookie):
        """What its own pages put into their forms for this session."""
        return re.search(r"name=csrf value=([0-9a-f]{64})>", self.ask("/login", headers={"Cookie": cookie}).text)[1]

    def own(self, cookie):
        """The headers of a request of its own pages."""
        return {"Cookie": cookie, "Origin": f"http://{self.host}", "X-CSRF-Token": self.form_token(cookie)}

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        _, err = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, err
        return err


@pytest.fixture
def start(mnemon, tmp_path):
    """start(settings="…") gives a node with an archive of its own; it ends with the test."""
    program = mnemon("version").args[0]
    running = []

    def begin(name="data", **options):
        node = Node(program, tmp_path / name, **options)
        running.append(node)
        return node

    yield begin
    for node in running:
        if node.process.poll() is None:
            node.process.kill()
        node.process.communicate()


@pytest.fixture
def node(start):
    return start()


@pytest.fixture
def web():
    site = Site()
    yield site
    site.close()


BROWSER = {"Accept": "text/html,application/xhtml+xml"}

# Everything that changes something, and how.
CHANGES = [
    ("POST", "/save", {"url": "http://127.0.0.9:1/"}),
    ("POST", "/jobs", {"urls": "http://127.0.0.9:1/"}),
    ("POST", "/jobs/x-1/pause", {}),
    ("POST", "/jobs/x-1/remove", {}),
    ("POST", "/api/v1/jobs", '{"url":"http://127.0.0.9:1/"}'),
    ("POST", "/api/v1/jobs/x-1/pause", {}),
    ("DELETE", "/api/v1/jobs/x-1", None),
]


# ---- who may


def test_what_changes_something_needs_the_token(node):
    for method, path, body in CHANGES:
        answer = node.ask(path, method, body)
        assert answer.status == 401 and answer.headers["WWW-Authenticate"].startswith("Bearer"), path
        wrong = node.ask(path, method, body, {"Authorization": "Bearer wrong-wrong-wrong"})
        assert wrong.status == 401, path
        if path.startswith("/api/"):
            assert wrong.json["error"] == "permission"
    shown = node.ask("/save", "POST", {"url": "http://127.0.0.9:1/"}, BROWSER)
    assert shown.status == 401 and 'action="/login"' in shown.text
    assert node.ask("/api/v1/jobs").json == {"jobs": []}


def test_a_login_gives_a_cookie_that_scripts_and_other_sites_never_have(node):
    answer = node.ask("/login", "POST", {"token": node.token})
    cookie = answer.headers["Set-Cookie"]
    assert answer.status == 303 and answer.headers["Location"] == "/jobs"
    assert re.fullmatch(
        rf"mnemon_{node.port}=[0-9a-f]{{64}}; Path=/; Max-Age=\d+; HttpOnly; SameSite=Strict", cookie
    )
    link = node.ask(f"/login?token={node.token}")
    assert link.status == 303 and "Set-Cookie" in link.headers and node.token not in link.headers["Location"]
    assert link.headers["Set-Cookie"] != cookie
    for token in ("", "x" * 64, node.token[:-1], node.token + "0"):
        refused = node.ask("/login", "POST", {"token": token}, BROWSER)
        assert refused.status == 401 and "Set-Cookie" not in refused.headers and "wrong" in refused.text or not token
    assert node.ask("/login", "POST", "").status == 401
    assert "Log out" in node.ask("/jobs", headers={"Cookie": cookie.split(";")[0]}).text
    assert "Log out" not in node.ask("/jobs").text


def test_on_a_terminal_a_link_logs_in_and_logs_never_have_it(mnemon, node, tmp_path):
    assert "token=" not in node.process.stdout.readline()
    terminal, inside = os.openpty()
    command = [mnemon("version").args[0], "serve", "--data", tmp_path / "terminal", "--http", "0"]
    with subprocess.Popen(command, stdout=inside, stderr=subprocess.DEVNULL) as process:
        said = ""
        while "login?token=" not in said or not said.endswith("\n"):
            said += os.read(terminal, 4096).decode()
        link = re.search(r"http://127\.0\.0\.1:(\d+)(/login\?token=\w+)", said)
        connection = http.client.HTTPConnection("127.0.0.1", int(link.group(1)), timeout=120)
        connection.request("GET", link.group(2))
        answer = connection.getresponse()
        assert answer.status == 303 and "HttpOnly" in answer.headers["Set-Cookie"]
        connection.close()
        process.terminate()
    os.close(terminal)
    os.close(inside)


def test_a_cookie_counts_only_from_pages_of_this_host(node):
    cookie = node.login()
    own = {"Origin": f"http://{node.host}"}
    shown = {"X-CSRF-Token": node.form_token(cookie)}
    shapes = {
        403: [
            {},
            {"Origin": "null"},
            {"Origin": "http://evil.example"},
            {"Origin": f"http://{node.host}.evil.example"},
            {"Origin": f"http://{node.address}:1"},
            {"Origin": "http://" },
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
            {"Sec-Fetch-Site": "none"},
            {**own, "Sec-Fetch-Site": "cross-site"},
            {"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"},
        ],
        404: [own, {"Sec-Fetch-Site": "same-origin"}, {**own, "Sec-Fetch-Site": "same-origin"}],
    }
    for status, headers in ((status, headers) for status, list_ in shapes.items() for headers in list_):
        for path in ("/jobs/x-1/pause", "/api/v1/jobs/x-1/pause"):
            answer = node.ask(path, "POST", {}, {**headers, **shown, "Cookie": cookie})
            assert answer.status == status, (headers, path, answer.text)
    for wrong in (cookie[:-1] + "g", cookie.replace("_", "_1"), cookie.split("=")[0] + "=", "a=b; c"):
        assert node.ask("/jobs/x-1/pause", "POST", {}, {**own, "Cookie": wrong}).status == 401, wrong
    among = f"a=b; {cookie}; c=d"
    assert node.ask("/jobs/x-1/pause", "POST", {}, {**own, **shown, "Cookie": among}).status == 404
    foreign = node.ask("/login", "POST", {"token": node.token}, {"Origin": "http://evil.example"})
    assert foreign.status == 403 and "Set-Cookie" not in foreign.headers


def test_a_logout_ends_the_session(node):
    cookie, other = node.login(), node.login()
    own, others = node.own(cookie), node.own(other)
    foreign = node.ask("/logout", "POST", {}, {"Origin": "null", "Cookie": cookie})
    assert foreign.status == 403
    assert node.ask("/jobs/x-1/pause", "POST", {}, own).status == 404
    answer = node.ask("/logout", "POST", {}, own)
    assert answer.status == 303 and "Max-Age=0" in answer.headers["Set-Cookie"]
    assert node.ask("/jobs/x-1/pause", "POST", {}, own).status == 401
    assert node.ask("/jobs/x-1/pause", "POST", {}, others).status == 404


BY_COOKIE = [
    ("POST", "/save", {"url": "http://a.example/"}),
    ("POST", "/jobs", {"urls": "http://a.example/"}),
    ("POST", "/jobs/x-1/pause", {}),
    ("POST", "/jobs/x-1/remove", {}),
    ("POST", "/logout", {}),
    ("POST", "/api/v1/jobs", '{"url": "http://a.example/"}'),
    ("POST", "/api/v1/jobs/x-1/resume", ""),
    ("DELETE", "/api/v1/jobs/x-1", ""),
]


def test_a_change_by_cookie_shows_the_token_of_its_form(node):
    """An Origin or Referer alone would let a page that got into this origin's name change things with one click."""
    cookie, other = node.login(), node.login()
    mine, theirs = node.form_token(cookie), node.form_token(other)
    assert mine != theirs and mine == node.form_token(cookie)
    asking = {"Cookie": cookie, "Origin": f"http://{node.host}", "Sec-Fetch-Site": "same-origin", "Referer": f"http://{node.host}/jobs"}
    for method, path, body in BY_COOKIE:
        wrong = [{}, {"X-CSRF-Token": theirs}, {"X-CSRF-Token": mine[:-1]}, {"X-CSRF-Token": mine + "0"}, {"X-CSRF-Token": node.token}]
        for headers in wrong:
            assert node.ask(path, method, body, {**asking, **headers}).status == 403, (path, headers)
        if isinstance(body, dict):
            for given in ("", theirs, mine.upper(), mine + mine):
                assert node.ask(path, method, {**body, "csrf": given}, asking).status == 403, (path, given)
            assert node.ask(path, method, {**body, "csrf": mine}, {**asking, "X-CSRF-Token": theirs}).status == 403
    assert node.ask("/api/v1/jobs").json["jobs"] == []
    assert node.ask("/jobs/x-1/pause", "POST", {"csrf": mine}, asking).status == 404
    assert node.ask("/api/v1/jobs/x-1/pause", "POST", "", {**asking, "X-CSRF-Token": mine}).status == 404
    assert node.ask("/api/v1/jobs/x-1", "DELETE", token=True).status == 404, "programs send the token and nothing else"
    for path in ("/jobs", "/save", "/login"):
        shown = node.ask(path, headers={"Cookie": cookie, **BROWSER}).text
        assert shown.count("method=post") == shown.count(f"name=csrf value={mine}>") > 0, path
    assert mine not in node.ask("/jobs", headers=BROWSER).text
    assert node.ask("/logout", "POST", {"csrf": mine}, asking).status == 303


def test_sessions_are_bounded(node):
    cookies = [node.login() for _ in range(66)]
    own = {"Origin": f"http://{node.host}"}
    states = [node.ask("/jobs/x-1/pause", "POST", {}, {**own, "Cookie": cookie}).status for cookie in cookies]
    assert states.count(401) == 2 and states[-1] == 403
    assert node.ask("/jobs/x-1/pause", "POST", {}, node.own(cookies[-1])).status == 404


def test_guessing_is_limited_per_address(node):
    states = [node.ask("/login", "POST", {"token": f"guess-{i}-0123456789"}).status for i in range(14)]
    assert states[:10] == [401] * 10 and states[-1] == 429
    limited = node.ask("/login", "POST", {"token": node.token})
    assert limited.status == 429 and 1 <= int(limited.headers["Retry-After"]) <= 60
    assert node.ask("/api/v1/jobs/x-1", "DELETE", token=True).status == 429
    assert node.ask("/health").status == 200


def test_names_of_other_machines_get_nothing(start):
    node = start(settings='[http]\nhosts = "archive.example"\nhosts = "other.example:99"\n')
    good = [node.host, "localhost", f"localhost:{node.port}", "LOCALHOST:1", "a.localhost", "127.9.9.9", "[::1]",
            "[::1]:80", "archive.example", "archive.example:8080", "Archive.Example", "other.example:99"]
    bad = ["evil.example", f"evil.example:{node.port}", "localhost.evil.example", "127.0.0.1.evil.example", "other.example",
           "xlocalhost", ".localhost.", "128.0.0.1", "[::2]", "0.0.0.0", "localhost:99999", "localhost:", "[::1", ":80",
           "127.0.0.1@evil.example", "evil.example#localhost"]
    for host in good:
        assert node.ask("/health", headers={"Host": host}).status == 200, host
    for host in bad:
        answer = node.ask("/health", headers={"Host": host})
        assert answer.status == 421 and "http.hosts" in answer.text, host
        assert node.ask("/web/http://a.example/", headers={"Host": host}).status == 421
        assert node.ask("/login?token=" + node.token, headers={"Host": host}).status == 421
    open_to_all = start("open", settings='[http]\nhosts = "*"\n')
    assert open_to_all.ask("/health", headers={"Host": "any.example"}).status == 200


def test_reads_can_need_the_token_too(start):
    node = start(settings="[http]\nreads = token\n")
    paths = ["/", "/jobs", "/dashboard", "/metrics", "/api/v1/status", "/cdx?url=a.example", "/web/http://a.example/", "/nothing"]
    for path in paths:
        assert node.ask(path).status == 401, path
        asked = node.ask(path, headers=BROWSER)
        assert asked.status == 303 and asked.headers["Location"] == "/login", path
    assert node.ask("/health").status == node.ask("/login").status == node.ask("/static/style.css").status == 200
    assert node.ask("/api/v1/status", token=True).status == 200
    assert node.ask("/api/v1/status", headers={"Authorization": "Bearer no"}).status == 401
    cookie = node.login()
    assert node.ask("/jobs", headers={"Cookie": cookie}).status == 200
    assert node.ask("/jobs").status == 401
    assert node.ask("/web/http://a.example/").status == 404, "parts of replayed pages come without a cookie"


def own_address():
    """An address of this machine other than loopback, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address = probe.getsockname()[0]
    return None if address.startswith("127.") else address


def test_an_address_has_a_rate(start):
    address = own_address()
    if address is None:
        pytest.skip("this machine has no address but loopback")
    node = start(options=("--address", "0.0.0.0"), settings="[http]\nrate = 5\n")
    states = [node.ask("/health", to=address) for _ in range(30)]
    refused = [answer for answer in states if answer.status == 429]
    assert states[0].status == 200 and len(refused) >= 5
    assert int(refused[0].headers["Retry-After"]) >= 1
    assert all(node.ask("/health", to="127.0.0.1").status == 200 for _ in range(30))
    assert all(node.ask("/health", to=address, token=True).status == 200 for _ in range(30))
    assert node.ask("/health", to=address, headers={"Host": "any.example"}).status in (200, 429)
    metric = wait_for(lambda: re.search(r"mnemon_http_requests_limited_total ([1-9]\d*)", node.ask("/metrics", to="127.0.0.1").text))
    assert int(metric.group(1)) >= 5


# ---- save


def save(node, url, headers=None):
    return node.ask("/save", "POST", {"url": url}, {"Accept": "application/json", **(headers or {})}, token=True)


def outcome(node, job_id):
    return wait_for(lambda: (s := node.ask(f"/save/status/{job_id}").json)["status"] != "pending" and s)


def test_a_page_is_saved_and_can_be_seen_at_once(node, web):
    web.put("/p?a=1&b=2", '<title>now</title><img src="/i.png"><a href="/other">x</a>')
    web.put("/i.png", b"\x89PNG", kind="image/png")
    url = web.url("/p?a=1&b=2")
    begun = save(node, url)
    assert begun.status == 200 and begun.headers["Content-Type"] == "application/json"
    assert begun.json["url"] == url and re.fullmatch("save-[0-9a-f]{16}", begun.json["job_id"])
    done = outcome(node, begun.json["job_id"])
    assert done["status"] == "success" and done["original_url"] == url and re.fullmatch(r"\d{14}", done["timestamp"])
    assert done["stored"] == 2 and done["failed"] == 0 and done["job_id"] == begun.json["job_id"]
    raw = node.ask(f"/web/{done['timestamp']}id_/{url}")
    assert raw.status == 200 and "<title>now</title>" in raw.text
    assert web.asked("/i.png") == 1 and web.asked("/other") == 0
    wait_for(lambda: node.ask("/api/v1/jobs").json == {"jobs": []})
    wait_for(lambda: not list((node.directory / "jobs").iterdir()))
    again = save(node, url)
    assert outcome(node, again.json["job_id"])["status"] == "success" and web.asked("/p?a=1&b=2") == 2
    node.stop()


def test_people_are_led_through_a_save(node, web):
    web.put("/", page(), wait=0.5)
    shown = node.ask("/save/" + web.url("/x?y=%3Cz"), headers=BROWSER)
    assert shown.status == 200 and web.url("/x?y=%3Cz") in shown.text and 'action="/login"' in shown.text
    assert web.asked() == [], "a GET changes nothing"
    assert "<script>" not in node.ask('/save/http://a/"><script>', headers=BROWSER).text
    cookie = {**node.own(node.login()), **BROWSER}
    assert 'action="/login"' not in node.ask("/save/http://a.example/", headers=cookie).text
    begun = node.ask("/save", "POST", {"url": web.url("/")}, cookie)
    assert begun.status == 303 and begun.headers["Location"].startswith("/save/status/save-")
    pending = node.ask(begun.headers["Location"], headers=BROWSER)
    assert pending.status == 200 and pending.headers["Refresh"] == "2"
    done = wait_for(lambda: (a := node.ask(begun.headers["Location"], headers=BROWSER)).headers["Refresh"] is None and a)
    assert re.search(rf'href="/web/\d{{14}}/{re.escape(web.url("/"))}"', done.text)


def test_a_save_that_fails_says_why(node, web):
    with socket.socket() as taken:
        taken.bind(("127.0.2.9", 0))
        closed = save(node, f"http://127.0.2.9:{taken.getsockname()[1]}/")
        web.put("/robots.txt", "User-agent: *\nDisallow: /", kind="text/plain")
        denied = save(node, web.url("/"))
        done = outcome(node, denied.json["job_id"])
        assert done["status"] == "error" and "robots.txt" in done["message"] and "timestamp" not in done
        shown = node.ask(f"/save/status/{denied.json['job_id']}", headers=BROWSER)
        assert shown.status == 200 and "robots.txt" in shown.text
        done = outcome(node, closed.json["job_id"])
        assert done["status"] == "error" and done["message"]


def test_what_is_no_url_is_not_saved(node):
    for url in ("", "ftp://a.example/", "http://", "http://a b/", "a\nb", "javascript:alert(1)", "http://a.example/\nhttp://b.example/",
                "http://a.example/" + "x" * 70000):
        answer = save(node, url)
        assert answer.status == 400 and answer.json["text"], url[:40]
    assert node.ask("/save", "POST", "no=url", token=True).status == 400
    assert node.ask("/save", "POST", "x" * 300000, token=True).status == 413
    for job_id in ("", "save-0123456789abcdef", "..", "%2e%2e", "save-0123456789abcdeg", "x" * 5000):
        assert node.ask("/save/status/" + job_id).status == 404, job_id
    assert not (node.directory / "jobs").exists() or not list((node.directory / "jobs").iterdir())


def test_saves_are_bounded_and_a_running_one_is_used(node, web):
    for i in range(70):
        web.put(f"/{i}", page(), wait=5)
    first = save(node, web.url("/0"))
    assert save(node, web.url("/0")).json["job_id"] == first.json["job_id"]
    answers = [save(node, web.url(f"/{i}")) for i in range(1, 70)]
    refused = [answer for answer in answers if answer.status == 429]
    assert 1 <= len(refused) <= 6 and refused[0].headers["Retry-After"] and "try again" in refused[0].json["text"]
    node.process.kill()


def test_a_save_survives_the_end_of_the_node(start, web):
    web.put("/", page(), wait=2)
    node = start()
    begun = save(node, web.url("/")).json["job_id"]
    wait_for(lambda: web.asked("/"))
    node.process.kill()
    node.process.wait()
    node = start()
    assert outcome(node, begun)["status"] == "success"


# ---- jobs


def test_the_life_of_a_job(node, web):
    web.put("/", page(*[f"/{i}" for i in range(20)]))
    for i in range(20):
        web.put(f"/{i}", page(), wait=0.05)
    wish = {"url": web.url("/"), "scope": "host", "delay": "0", "period": "1 h", "limit": 1000, "exclude": ["*/19"]}
    added = node.ask("/api/v1/jobs", "POST", json.dumps(wish), token=True)
    assert added.status == 201, added.text
    name = added.json["job"]
    wait_for(lambda: web.asked("/"))
    paused = node.ask(f"/api/v1/jobs/{name}/pause", "POST", token=True)
    assert paused.status == 200 and paused.json == {"job": name, "paused": True}
    job = node.ask(f"/api/v1/jobs/{name}").json
    assert job["paused"] and job["state"] == "paused" and job["scope"] == "host" and job["period_seconds"] == 3600
    assert job["seeds"] == [web.url("/")] and job["seeds_count"] == 1
    assert node.ask(f"/api/v1/jobs/{name}/resume", "POST", token=True).json["resumed"]
    done = wait_for(lambda: (j := node.ask(f"/api/v1/jobs/{name}").json)["state"] == "complete" and j)
    assert done["stored"] >= 1 and done["waiting"] == 0 and web.asked("/19") == 0
    assert [j["job"] for j in node.ask("/api/v1/jobs").json["jobs"]] == [name]
    assert node.ask(f"/api/v1/jobs/{name}", "DELETE", token=True).json == {"job": name, "removed": True}
    wait_for(lambda: not (node.directory / "jobs" / name).exists())
    assert node.ask("/api/v1/jobs").json == {"jobs": []}
    assert node.ask(f"/api/v1/jobs/{name}").status == 404
    node.stop()


def test_a_wish_that_is_wrong_is_refused_with_the_reason(node):
    url = "http://127.0.0.9:1/"
    wishes = {
        "": "JSON", "[]": "object", "{}": "URL", '"x"': "JSON", '{"url":1}': "text", '{"urls":[1]}': "texts",
        '{"url":"ftp://a/"}': "", '{"url":"' + url + '","scope":"world"}': "scope",
        '{"url":"' + url + '","depth":-1}': "depth", '{"url":"' + url + '","nonsense":1}': "nonsense",
        '{"url":"' + url + '","period":"soon"}': "period", '{"url":"' + url + '","include":"re:("}': "include",
        '{"url":"' + url + '","scope":"page\\"\\nperiod = 1 s"}': "scope", '{"url":"' + url + '","a b":1}': "setting",
        '{"url":"' + url + '","url":"' + url + '"}': "JSON", '{"url":"' + url + '","scope":{}}': "scope",
    }
    for wish, word in wishes.items():
        answer = node.ask("/api/v1/jobs", "POST", wish, token=True)
        assert answer.status == 400 and word in answer.json["text"], (wish, answer.text)
    announced = {"Content-Length": str(9 << 20), "Expect": "100-continue"}
    assert node.ask("/api/v1/jobs", "POST", headers=announced, token=True).status == 413
    for name in ("none", "..", "../..", "a/b", "%2e%2e", "x" * 200, ".hidden", "A"):
        assert node.ask(f"/api/v1/jobs/{name}").status == 404, name
        assert node.ask(f"/api/v1/jobs/{name}", "DELETE", token=True).status == 404, name
        assert node.ask(f"/api/v1/jobs/{name}/pause", "POST", token=True).status == 404, name
    assert node.ask("/api/v1/jobs/none/explode", "POST", token=True).status == 404
    assert node.ask("/api/v1/jobs").json == {"jobs": []}


def test_jobs_of_the_command_line_and_of_the_page_are_the_same(node, web, mnemon):
    web.put("/", page())
    own = {**node.own(node.login()), **BROWSER}
    form = {"urls": f"{web.url('/')}\n# a comment\n{web.url('/b')}", "scope": "page", "period": "2 h", "depth": "", "limit": "5"}
    assert node.ask("/jobs", "POST", form, own).headers["Location"] == "/jobs"
    listed = [json.loads(line) for line in mnemon("job", "list", "--json", "--data", str(node.directory)).stdout.splitlines()]
    assert len(listed) == 1 and listed[0]["seeds"] == [web.url("/"), web.url("/b")] and listed[0]["period_seconds"] == 7200
    name = listed[0]["job"]
    shown = node.ask("/jobs", headers=own)
    assert f'action="/jobs/{name}/pause"' in shown.text and web.url("/") in shown.text and "and 1 more" in shown.text
    assert f'action="/jobs/{name}/pause"' not in node.ask("/jobs", headers=BROWSER).text
    assert node.ask(f"/jobs/{name}/pause", "POST", {}, own).status == 303
    assert f'action="/jobs/{name}/resume"' in node.ask("/jobs", headers=own).text
    assert mnemon("job", "resume", name, "--data", str(node.directory)).returncode == 0
    assert not node.ask(f"/api/v1/jobs/{name}").json["paused"]
    assert node.ask(f"/jobs/{name}/remove", "POST", {}, own).status == 303
    assert mnemon("job", "list", "--data", str(node.directory)).stdout == ""
    bad = node.ask("/jobs", "POST", {"urls": "http://a.example/", "period": "<b>soon"}, own)
    assert bad.status == 400 and "period" in bad.text and "<b>soon" not in bad.text


# ---- what it tells


def test_status_metrics_and_history_tell_what_happened(node, web):
    web.put("/", page("/a"))
    web.put("/a", page())
    node.ask("/api/v1/jobs", "POST", json.dumps({"url": web.url("/"), "delay": "0"}), token=True)
    status = wait_for(lambda: (s := node.ask("/api/v1/status").json)["crawl"]["documents"] >= 2 and s)
    assert status["version"] == 1 and status["title"] == "mnemon" and status["uptime_seconds"] >= 0
    assert status["store"]["commits"] >= 1 and status["store"]["committed_documents"] >= 2 and status["store"]["captures"] >= 2
    assert 0 < status["store"]["sync_seconds"] <= status["store"]["commit_seconds"]
    volume = status["store"]["volumes"][0]
    assert volume["state"] == "up" and volume["free_bytes"] > 0 and volume["number"] == 0
    assert status["http"]["requests"] >= 1 and status["process"]["memory_bytes"] > 1 << 20
    assert isinstance(status["slow"], list) and all(set(item) == {"what", "text"} for item in status["slow"])
    history = wait_for(lambda: (h := node.ask("/api/v1/history").json)["series"]["crawl_urls_waiting"] and h)
    assert history["step_seconds"] == 2
    assert len({len(values) for values in history["series"].values()}) == 1


def parse_metrics(text):
    """The rules of the text format: HELP and TYPE once and first, names, labels, numbers, buckets that add up."""
    types, samples, current = {}, {}, None
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            current = line.split()[2]
            assert current not in types and len(line.split()) > 3
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name == current and kind in ("counter", "gauge", "histogram")
            types[name] = kind
        else:
            match = re.fullmatch(r'([a-z_]+)(\{(?:[a-z]+="[^"\\\n]*",?)*\})? (-?[0-9.e+]+|\+Inf|NaN)', line)
            assert match, line
            base = re.sub("_(bucket|sum|count)$", "", match[1]) if types[current] == "histogram" else match[1]
            assert base == current and current.startswith("mnemon_"), line
            assert types[current] != "counter" or current.endswith("_total")
            key = (match[1], match[2] or "")
            assert key not in samples, line
            samples[key] = float(match[3])
    for (name, labels), value in samples.items():
        if name.endswith("_count") and types.get(name[:-6]) == "histogram":
            inf = labels[:-1] + ',le="+Inf"}'
            assert samples[(name[:-6] + "_bucket", inf)] == value
    return types, samples


def test_metrics_are_as_prometheus_wants_them(node):
    assert node.ask("/web/http://a.example/").status == 404
    answer = node.ask("/metrics")
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    types, samples = parse_metrics(answer.text)
    assert len(types) > 40 and types["mnemon_http_answer_seconds"] == "histogram"
    assert samples[("mnemon_volume_up", '{volume="0"}')] == 1
    assert samples[("mnemon_http_answers_total", '{page="web",status="4xx"}')] == 1
    assert samples[("mnemon_http_answer_seconds_count", '{page="web"}')] == 1


def test_pages_work_without_script_and_say_what_they_show(node):
    shown = node.ask("/dashboard", headers=BROWSER).text
    for word in ("What is slow, and why", "Crawl", "Store", "HTTP", "Process", "Volumes", "Nothing is held up", 'data-path="store.captures"'):
        assert word in shown, word
    for name in ("dashboard.js", "jobs.js"):
        assert node.ask(f"/static/{name}").headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert "Disallow: /web/" in node.ask("/robots.txt").text
    assert node.ask("/favicon.ico").headers["Content-Type"] == "image/svg+xml"
    titled = node.ask("/jobs", headers=BROWSER).text
    assert "There are no jobs yet" in titled


def test_methods_that_do_not_fit_are_refused(node):
    for method, path in (("GET", "/logout"), ("PUT", "/jobs"), ("DELETE", "/save"), ("POST", "/dashboard"), ("PUT", "/api/v1/jobs/x"),
                         ("POST", "/metrics"), ("PATCH", "/login")):
        assert node.ask(path, method, "", token=True).status == 405, (method, path)
    for path in ("/health", "/metrics", "/api/v1/status", "/jobs", "/dashboard"):
        answer = node.ask(path, "HEAD")
        assert answer.status == 200 and answer.body == b"" and int(answer.headers["Content-Length"]) > 0


def test_a_disk_that_takes_nothing_is_told_and_forgotten_when_it_does(node, web):
    web.put("/", page(), wait=1)
    files = resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE)
    begun = save(node, web.url("/")).json["job_id"]
    wait_for(lambda: web.asked("/"))
    assert node.ask("/health").text == "ok\n"
    resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (1, files[1]))  # no file can grow: write() fails
    told = wait_for(lambda: (a := node.ask("/health")).status == 503 and a)
    assert "nothing can be stored" in told.text
    assert "disk" in [item["what"] for item in node.ask("/api/v1/status").json["slow"]]
    assert node.ask("/jobs").status == 200, "it serves on"
    resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, files)
    failed = outcome(node, begun)
    assert failed["status"] == "error" and failed["message"]
    assert outcome(node, save(node, web.url("/")).json["job_id"])["status"] == "success"
    wait_for(lambda: node.ask("/health").status == 200)


def test_the_title_is_escaped_and_search_can_be_switched_off(start):
    node = start(settings='[archive]\ntitle = "Bob\'s <archive> & more"\n[search]\nenabled = no\n')
    shown = node.ask("/jobs", headers=BROWSER).text
    assert "<archive>" not in shown and "Bob" in shown
    assert node.ask("/api/v1/status").json["search"] == {"enabled": False}
    assert node.ask("/health").text == "ok\n"


def test_many_ask_at_once(node):
    cookie = node.login()
    errors = []

    def hammer():
        for path in ("/jobs", "/dashboard", "/api/v1/status", "/metrics", "/api/v1/jobs", "/api/v1/history") * 5:
            answer = node.ask(path, headers={"Cookie": cookie})
            if answer.status != 200:
                errors.append((path, answer.status))

    threads = [threading.Thread(target=hammer) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    node.stop()
