"""A user and a password in a URL: used for the fetch that a person asked for, stored and passed on nowhere."""
import base64
import gzip
import http.server
import json
import threading
import uuid

import pytest

from test_desk import Node

USER, PASSWORD = "reader", "hushhush"
BASIC = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
SECRETS = (PASSWORD, BASIC.split()[1])


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        web = self.server
        web.requests.append((self.path, self.headers.get("Authorization")))
        is_let_in = web.password is None or self.headers.get("Authorization") == web.password
        status, headers, body = web.pages.get(self.path, (404, {}, "none")) if is_let_in else (401, {}, "who are you?")
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *arguments):
        pass


class Web(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, password=None):
        super().__init__(("127.0.3.1", 0), Handler)
        self.password, self.pages, self.requests = password, {}, []
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def port(self):
        return self.server_address[1]

    def url(self, path="/", userinfo=""):
        return f"http://{userinfo}127.0.3.1:{self.port}{path}"

    def put(self, path, body="", status=200, **headers):
        self.pages[path] = (status, headers, body)

    def asked(self):
        return {path for path, _ in self.requests}


@pytest.fixture
def webs():
    """One that wants a password, and another origin: the same host, another port."""
    locked, other = Web(BASIC), Web()
    locked.put("/", '<a href="a">a</a> <a href="/away">away</a> <img src="i.gif">'
               f'<a href="http://own:linked@127.0.3.1:{locked.port}/own">own</a>'
               f'<a href="http://own:linked@127.0.3.1:{other.port}/foreign">foreign</a>')
    locked.put("/a", '<a href="b?x=1">b</a>')
    locked.put("/b?x=1", "b")
    locked.put("/i.gif", "gif")
    locked.put("/own", "own")
    locked.put("/away", status=302, Location=f"http://moved:along@127.0.3.1:{other.port}/landed")
    other.put("/landed", '<a href="next">next</a>')
    other.put("/next", "next")
    other.put("/foreign", "foreign")
    yield locked, other
    for web in (locked, other):
        web.shutdown()
        web.server_close()


@pytest.fixture
def data(tmp_path, monkeypatch):
    directory = tmp_path / "data"
    monkeypatch.setenv("MNEMON_DATA", str(directory))
    return directory


@pytest.fixture
def archive(mnemon, data):
    def run(*arguments, **options):
        return mnemon("archive", *arguments, "--allow-private", "--delay", "0", "--scope", "any", "--json", **options)

    return run


def assert_silent(*texts):
    for text in texts:
        for secret in SECRETS:
            assert secret not in text


def listed(mnemon):
    lines = mnemon("list", "*").stdout
    assert_silent(lines)
    return sorted({json.loads(line.split(" ", 2)[2])["url"] for line in lines.splitlines()})


def exported(mnemon, tmp_path):
    out = tmp_path / "out.warc.gz"
    assert mnemon("export", "-o", str(out)).returncode == 0
    text = gzip.open(out).read()
    out.unlink()
    return text


def every_file(directory):
    return b"".join(path.read_bytes() for path in directory.rglob("*") if path.is_file())


def test_password_of_a_seed_is_used_and_kept_nowhere(webs, archive, mnemon, data, tmp_path):
    locked, other = webs
    done = archive(locked.url(userinfo=f"{USER}:{PASSWORD}@"))
    assert done.returncode == 0, done.stderr
    assert_silent(done.stdout, done.stderr)

    # Sent to its origin with every request, to no other origin; the user info of links is nobody's.
    assert {"/", "/a", "/b?x=1", "/i.gif", "/own", "/away"} <= locked.asked()
    assert {value for _, value in locked.requests} == {BASIC}
    assert {"/landed", "/next", "/foreign"} <= other.asked()
    assert {value for _, value in other.requests} == {None}

    urls = listed(mnemon)
    assert all("@" not in url for url in urls)
    assert {locked.url(path) for path in ("/", "/a", "/b?x=1", "/i.gif", "/own", "/away")} <= set(urls)
    assert {other.url(path) for path in ("/landed", "/next", "/foreign")} <= set(urls)

    text = exported(mnemon, tmp_path)
    assert b"\r\nAuthorization" not in text and b"GET /a HTTP/1.1" in text
    assert_silent(text.decode("latin-1"))
    assert b"WARC-Target-URI: " in text and b"@" not in b"".join(
        line for line in text.split(b"\r\n") if line.startswith(b"WARC-Target-URI"))
    assert_silent(every_file(data).decode("latin-1"))
    assert (next(data.glob("jobs/*/seeds"))).read_text() == locked.url() + "\n"


def test_same_job_goes_on_without_the_password_and_says_so(webs, archive, data):
    locked, _ = webs
    first = archive(locked.url(userinfo=f"{USER}:{PASSWORD}@"), "--limit", "1")
    assert first.returncode == 0 and "401" not in first.stderr
    locked.requests.clear()
    second = archive(locked.url())
    assert second.returncode == 0
    assert json.loads(second.stdout)["job"] == json.loads(first.stdout)["job"]
    assert len(list(data.glob("jobs/*"))) == 1
    assert {value for _, value in locked.requests} == {None}
    assert "401" in second.stderr and "password" in second.stderr
    third = archive(locked.url(userinfo=f"{USER}:other@"))  # the password is no part of the job's name
    assert json.loads(third.stdout)["job"] == json.loads(first.stdout)["job"]


def test_messages_do_not_show_the_password(webs, archive, mnemon, data):
    locked, _ = webs
    broken = [f"http://{USER}:{PASSWORD}@127.0.3.1:99999/", f"http://{USER}:{PASSWORD}@bad host/",
              f"ftp://{USER}:{PASSWORD}@127.0.3.1/", f"http://{USER}:a/{PASSWORD}@127.0.3.1/", f"http://{USER}:{PASSWORD}@/"]
    for url in broken:
        for done in (archive(url), archive("--seeds", "-", stdin=url + "\n"), mnemon("job", "add", url)):
            assert done.returncode != 0
            assert_silent(done.stdout, done.stderr)
        done = archive(locked.url(), "--explain", url)
        assert_silent(done.stdout, done.stderr)
    url = locked.url("/a", f"{USER}:{PASSWORD}@")
    done = archive(url, "--explain", url)
    assert done.returncode == 0 and locked.url("/a") in done.stdout
    assert_silent(done.stdout, done.stderr)
    assert_silent(every_file(data).decode("latin-1"))


def test_two_passwords_for_one_origin_are_refused(webs, archive):
    locked, _ = webs
    done = archive(locked.url(userinfo=f"{USER}:{PASSWORD}@"), locked.url("/a", "other:one@"))
    assert done.returncode == 2 and "origin" in done.stderr
    assert_silent(done.stderr)
    done = archive("--seeds", "-", stdin=locked.url(userinfo=f"{USER}:{PASSWORD}@") + "\n" + locked.url("/a") + "\n")
    assert done.returncode == 0
    assert {value for _, value in locked.requests} == {BASIC}


def test_authorization_of_an_own_header_is_not_recorded(webs, archive, mnemon, data, tmp_path):
    locked, _ = webs
    done = archive(locked.url("/a"), "--header", "authorization: " + BASIC)
    assert done.returncode == 0, done.stderr
    assert {value for _, value in locked.requests} == {BASIC}
    text = exported(mnemon, tmp_path)
    assert b"GET /a HTTP/1.1" in text and b"authorization" not in text.lower().replace(b"www-auth", b"")
    assert_silent(text.decode("latin-1"), every_file(data).decode("latin-1"))


@pytest.mark.parametrize("options", [[], ["--ring"]])
def test_jobs_that_run_later_refuse_a_password(mnemon, data, options):
    done = mnemon("job", "add", f"http://{USER}:{PASSWORD}@127.0.3.1/", *options)
    assert done.returncode == 2
    assert "password" in done.stderr and "mnemon archive" in done.stderr
    assert_silent(done.stdout, done.stderr)
    assert not list(data.glob("jobs/*"))


def test_job_file_with_a_password_is_read_without_it(webs, archive, mnemon, data):
    locked, _ = webs
    name = json.loads(archive(locked.url("/a"), "--limit", "1").stdout)["job"]
    seeds = data / "jobs" / name / "seeds"
    seeds.write_text(locked.url("/a", f"{USER}:{PASSWORD}@") + "\n")
    done = mnemon("job", "list")
    assert done.returncode == 0
    assert_silent(done.stdout, done.stderr)
    locked.requests.clear()
    archive(locked.url("/a"))
    assert {value for _, value in locked.requests} == {None}
    assert_silent(every_file(data).decode("latin-1"))


def test_node_refuses_a_password(mnemon, data):
    node = Node(mnemon("version").args[0], data)
    try:
        url = f"http://{USER}:{PASSWORD}@127.0.3.1:9/"
        for path, body in (("/save", {"url": url}), ("/api/v1/jobs", json.dumps({"urls": [url]}))):
            answer = node.ask(path, "POST", body, token=True)
            assert answer.status == 400 and "password" in answer.text
            assert_silent(answer.text)
        assert not list(data.glob("jobs/*"))
    finally:
        assert_silent(node.stop())
    assert_silent(every_file(data).decode("latin-1"))


def old_capture(url, name, login=b""):
    request = b"GET / HTTP/1.1\r\nHost: host.example\r\n" + login + b"\r\n"
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nthis is " + name
    records = b""
    for kind, http in (("response", answer), ("request", request)):
        head = (
            f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{uuid.uuid4()}>\r\n"
            f"WARC-Date: 2020-01-01T00:00:00Z\r\nWARC-Target-URI: {url}\r\n"
            f"Content-Type: application/http; msgtype={kind}\r\nContent-Length: {len(http)}\r\n\r\n"
        )
        records += head.encode() + http + b"\r\n\r\n"
    return records


def test_captures_of_older_versions_are_found_and_leave_the_disk(mnemon, data, tmp_path):
    held = {
        f"http://{USER}:{PASSWORD}@host.example/": b"one",
        f"http://{USER}:{PASSWORD}@host.example/page?x=a@b": b"two",
        f"https://{PASSWORD}@host.example:8443/": b"three",
    }
    free = {"http://host.example/page?x=a@b": b"four", "http://host.example/@/a": b"five",
            "http://host.example?mail=a@b": b"six"}  # fmt: skip
    warc = tmp_path / "old.warc"
    login = f"Authorization: {BASIC}\r\n".encode()  # older versions kept it in the request, too
    records = [old_capture(url, name, login) for url, name in held.items()]
    warc.write_bytes(b"".join(records + [old_capture(url, name) for url, name in free.items()]))
    assert mnemon("import", str(warc)).returncode == 0
    warc.unlink()

    found = mnemon("list", "*", "--userinfo", "--json")
    assert {json.loads(line)["url"] for line in found.stdout.splitlines()} == set(held)
    dry = mnemon("rm", "*", "--userinfo", "--dry-run")
    assert dry.returncode == 0 and dry.stdout.endswith("3 captures would be removed\n"), dry.stderr
    done = mnemon("rm", "host.example/page*", "--userinfo", "--quiet")
    assert done.returncode == 0 and done.stdout.startswith("1 capture removed"), done.stderr
    done = mnemon("rm", "*", "--userinfo", "--quiet")
    assert done.returncode == 0 and done.stdout.startswith("2 captures removed"), done.stderr
    assert mnemon("list", "*", "--userinfo").stdout == ""
    assert PASSWORD in every_file(data).decode("latin-1")
    assert mnemon("store", "compact").returncode == 0
    assert_silent(every_file(data).decode("latin-1"), exported(mnemon, tmp_path).decode("latin-1"))
    assert len(listed(mnemon)) == len(free)
    assert mnemon("rm", "*", "--userinfo").returncode == 1
