"""mnemon archive: a site to its end, politely, resumed, and visited again."""
import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import time

import pytest

from waiting import wait_for
from webserver import Answer, Site

PIXEL = bytes.fromhex("47494638396101000100800000ffffff00000021f90401000000002c00000000010001000002024401003b")


@pytest.fixture
def site():
    opened = []

    def make(hosts=1, is_fast=False):
        opened.append(Site(hosts, is_fast))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


@pytest.fixture
def data(tmp_path, monkeypatch):
    directory = tmp_path / "data"
    monkeypatch.setenv("MNEMON_DATA", str(directory))
    return directory


@pytest.fixture
def archive(mnemon, data):
    """Run `mnemon archive` without pauses; the summary, and what it printed."""

    def run(*arguments, delay="0", status=0):
        done = mnemon("archive", *arguments, "--allow-private", "--delay", delay, "--json", "--quiet")
        assert done.returncode == status, done.stderr
        return json.loads(done.stdout)

    return run


def page(*links, title="page", extra=""):
    anchors = "".join(f'<p><a href="{link}">{link}</a></p>' for link in links)
    return f"<!DOCTYPE html><title>{title}</title><body>{anchors}{extra}"


def captures(mnemon, text="*"):
    """Without what is kept of URLs that could not be fetched."""
    lines = mnemon("list", text).stdout.splitlines()
    return [json.loads(line.split(" ", 2)[2]) for line in lines if not line.startswith("urn:fetch-failure:")]


def urls(mnemon):
    return sorted({capture["url"] for capture in captures(mnemon)})


def small_site(web):
    web.put("/", page("/a", "/b?x=1&y=2", "https://elsewhere.invalid/", extra='<link rel=stylesheet href="/s.css">'))
    web.put("/a", page("/", "/c", "/missing", extra='<img src="/i.gif" srcset="/i2.gif 2x">'))
    web.put("/b?x=1&y=2", page("/a", title="b"))
    web.put("/c", page("/moved", "javascript:void(0)", "mailto:x@example.org", "#top"))
    web.put("/moved", status=301, headers={"Location": "/d"}, validates=False)
    web.put("/d", page(title="d"))
    web.put("/s.css", "body { background: url(bg.gif) } @import 'more.css';", kind="text/css")
    web.put("/more.css", ".a{color:red}", kind="text/css")
    for name in ["/i.gif", "/i2.gif", "/bg.gif"]:
        web.put(name, PIXEL + name.encode(), kind="image/gif")
    web.put("/robots.txt", "User-agent: *\nDisallow: /private\n", kind="text/plain")
    return ["/", "/a", "/b?x=1&y=2", "/c", "/moved", "/d", "/s.css", "/more.css", "/i.gif", "/i2.gif", "/bg.gif",
            "/missing", "/robots.txt"]


def test_a_site_is_archived_to_its_end(mnemon, archive, site):
    web = site()
    paths = small_site(web)
    summary = archive(web.url("/"))
    assert summary["state"] == "complete"
    assert urls(mnemon) == sorted(web.url(path) for path in paths)
    assert all(web.asked(path) == 1 for path in paths)
    assert summary["stored"] == len(paths) - 1
    assert summary["statuses"] == {"200": 10, "301": 1, "404": 1}
    assert summary["types"]["image/gif"]["count"] == 3
    got = mnemon("get", web.url("/b?x=1&y=2"))
    assert got.stdout == page("/a", title="b")
    assert mnemon("store", "verify").returncode == 0


def test_request_and_response_are_kept_byte_for_byte(mnemon, archive, site, tmp_path):
    web = site()
    web.put("/", "plain", kind="text/plain")
    archive(web.url("/"), "--user-agent", "tester/1.0", "--header", "X-Test: yes")
    out = tmp_path / "out.warc.gz"
    assert mnemon("export", "-o", str(out)).returncode == 0
    text = gzip.decompress(out.read_bytes())
    assert f"GET / HTTP/1.1\r\nHost: {web.host()}\r\n".encode() in text
    assert b"User-Agent: tester/1.0\r\n" in text and b"X-Test: yes\r\n" in text
    assert b"HTTP/1.1 200 OK\r\nServer: test" in text
    assert b"WARC-IP-Address: 127.0.2.1" in text
    headers = web.requests[-1][3]
    assert headers["User-Agent"] == "tester/1.0"


def test_robots_txt_is_obeyed(mnemon, archive, site):
    web = site()
    web.put("/robots.txt", "User-agent: mnemon\nDisallow: /no\nAllow: /no/but\n", kind="text/plain")
    web.put("/", page("/no/a", "/no/but/yes", "/yes"))
    for path in ["/no/a", "/no/but/yes", "/yes"]:
        web.put(path, page())
    summary = archive(web.url("/"))
    assert summary["robots_denied"] == 1
    assert not web.asked("/no/a") and web.asked("/no/but/yes") and web.asked("/yes")
    assert web.asked()[0] == "/robots.txt"
    ignored = archive(web.url("/"), "--ignore-robots", "--depth", "9")
    assert ignored["robots_denied"] == 0 and web.asked("/no/a")


def test_nothing_is_fetched_where_robots_txt_fails(archive, site, mnemon):
    web = site()
    web.put("/robots.txt", "x", status=500, validates=False)
    web.put("/", page("/a"))
    summary = archive(web.url("/"), "--limit-time", "20 s", status=1)
    assert not web.asked("/") and web.asked("/robots.txt") >= 2
    assert summary["stored"] == 0 and summary["failed"] == 1
    assert [(row["reason"], row["why"]) for row in summary["reasons"]] == [("no_robots", "status 500")]


def test_a_robots_txt_that_is_refused_for_now_is_asked_for_again(archive, site):
    web = site()
    small_site(web)
    web.put("/", page("/a", "/private"))
    rules = web.find(web.host(), "/robots.txt")
    find = web.find
    refused = Answer("later", status=429, headers={"Retry-After": "1"}, validates=False)
    web.find = lambda host, path: refused if path == "/robots.txt" and web.asked(path) < 2 else find(host, path)
    assert rules.status == 200
    summary = archive(web.url("/"))
    assert summary["state"] == "complete" and summary["robots_denied"] == 1
    assert web.asked("/robots.txt") == 2 and web.asked("/private") == 0 and web.asked("/a") == 1
    times = [at for at, _, path, _ in web.requests]
    assert times[1] - times[0] >= 1


def test_segments_say_who_crawled_and_by_which_rules(archive, data, site):
    if not shutil.which("zstd"):
        pytest.skip("skipped: zstd is not installed")
    web = site()
    small_site(web)
    archive(web.url("/"), "--user-agent", "tester/7 (+http://example.org/)")
    segment = next(iter(sorted(data.glob("volumes/**/*.warc.zst"))))
    text = subprocess.run(["zstd", "-dc", str(segment)], capture_output=True).stdout
    assert b"http-header-user-agent: tester/7 (+http://example.org/)\r\n" in text
    assert b"robots: classic\r\n" in text


@pytest.mark.parametrize("scope,expected", [
    ("page", ["/x/p", "/far.gif"]),
    ("prefix", ["/x/p", "/x/below", "/far.gif"]),
    ("host", ["/x/p", "/x/below", "/y", "/far.gif"]),
])
def test_scope(archive, site, scope, expected):
    web = site(2)
    web.put("/x/p", page("/x/below", "/y", web.url("/other", 1), extra=f'<img src="{web.url("/far.gif", 1)}">'))
    web.put("/x/below", page())
    web.put("/y", page())
    web.put("/other", page(), host=1)
    web.put("/far.gif", PIXEL, kind="image/gif", host=1)
    archive(web.url("/x/p"), "--scope", scope)
    asked = [path for path in web.asked() + web.asked(host=1) if path != "/robots.txt"]
    assert sorted(asked) == sorted(expected)


def test_guesses_of_one_page_are_fetched(mnemon, archive, site):
    """What `mnemon links --guesses` prints of it, whatever it looks like."""
    web = site()
    web.put("/", page(extra='<p data-full-src="/full.jpg"><script>load("/api/v1/items", "/next.html")</script>', title="x"))
    for path in ("/full.jpg", "/api/v1/items", "/next.html"):
        web.put(path, "x", "text/plain")
    archive(web.url("/"), "--scope", "page", "--guesses")
    assert all(web.asked(path) for path in ("/full.jpg", "/api/v1/items", "/next.html"))


def test_depth_include_and_exclude(archive, site):
    web = site()
    web.put("/", page("/1", "/skip/1"))
    web.put("/1", page("/2"))
    web.put("/2", page("/3"))
    web.put("/3", page())
    archive(web.url("/"), "--depth", "2", "--exclude", web.url("/skip/*"))
    assert web.asked("/2") and not web.asked("/3") and not web.asked("/skip/1")


def test_a_seed_may_redirect_to_another_host(archive, site):
    web = site(2)
    web.put("/", status=301, headers={"Location": web.url("/home", 1)}, validates=False)
    web.put("/home", page("/more"), host=1)
    web.put("/more", page(), host=1)
    archive(web.url("/"))
    assert web.asked("/more", host=1) == 1


def test_redirect_loops_and_long_chains_end(archive, site):
    web = site()
    web.put("/", page("/loop1", "/chain/0"))
    web.put("/loop1", status=302, headers={"Location": "/loop2"}, validates=False)
    web.put("/loop2", status=302, headers={"Location": "/loop1"}, validates=False)
    for i in range(1000):
        web.put(f"/chain/{i}", status=302, headers={"Location": f"/chain/{i + 1}"}, validates=False)
    archive(web.url("/"))
    assert web.asked("/loop1") == web.asked("/loop2") == 1
    assert 5 < len([path for path in web.asked() if path.startswith("/chain/")]) < 50


def test_a_second_visit_moves_little_and_sees_what_is_new(mnemon, archive, site):
    web = site()
    paths = small_site(web)
    archive(web.url("/"))
    web.forget()
    second = archive(web.url("/"))
    assert second["visit"] == 2 and second["state"] == "complete"
    assert second["not_modified"] == 10 and second["changed"] == 0
    assert sorted(web.asked()) == sorted(paths)
    web.put("/d", page("/new", title="d, changed"))
    web.put("/new", page())
    third = archive(web.url("/"))
    assert third["changed"] == 2 and web.asked("/new") == 1
    profiles = [capture["mime"] for capture in captures(mnemon, web.url("/a"))]
    assert profiles == ["text/html", "warc/revisit", "warc/revisit"]
    assert "d, changed" in mnemon("get", web.url("/d")).stdout
    assert "<title>d</title>" in mnemon("get", web.url("/d"), "--at", "2000").stdout
    assert mnemon("get", web.url("/a")).stdout == web.find(web.host(), "/a").body.decode()


def test_a_second_visit_takes_no_longer_than_the_first(archive, site):
    web = site(4, is_fast=True)
    for host in range(4):
        web.put("/", page(*[f"/{number}" for number in range(80)], web.url("/", (host + 1) % 4)), host=host)
        for number in range(80):
            web.put(f"/{number}", page("/", title=f"{host} {number}"), host=host)
    durations = []
    for _ in range(2):
        started = time.monotonic()
        summary = archive(web.url("/"), "--scope", "any")
        durations.append(time.monotonic() - started)
        assert summary["failed"] == 0 and summary["retried"] == 0
    assert summary["not_modified"] == 324
    assert durations[1] < 2 * durations[0]  # twice as long is not the machine's mood


def test_what_was_not_modified_leaves_and_comes_back_as_such(mnemon, archive, site, tmp_path):
    web = site()
    web.put("/", page(title="same"))
    archive(web.url("/"))
    time.sleep(1.1)  # the two captures need timestamps of their own, which count seconds
    archive(web.url("/"))
    out = tmp_path / "all.warc"
    assert mnemon("export", "-o", str(out)).returncode == 0
    assert b"revisit/server-not-modified" in out.read_bytes()
    assert mnemon("import", str(out), "--data", str(tmp_path / "other")).returncode == 0
    fields = ("url", "mime", "status", "digest")
    here = [[capture[field] for field in fields] for capture in captures(mnemon, web.url("/"))]
    lines = mnemon("list", web.url("/"), "--data", str(tmp_path / "other")).stdout.splitlines()
    there = [[json.loads(line.split(" ", 2)[2])[field] for field in fields] for line in lines]
    assert here == there and len(here) == 2 and here[1][1] == "warc/revisit"
    mnemon("import", str(out), "--data", str(tmp_path / "other"))
    assert len(mnemon("list", web.url("/"), "--data", str(tmp_path / "other")).stdout.splitlines()) == 2
    # Alone it is written as the answer that was not modified.
    second = mnemon("list", web.url("/")).stdout.splitlines()[1].split(" ")[1]
    late = tmp_path / "late.warc"
    done = mnemon("export", web.url("/"), "--from", second, "-o", str(late))
    assert done.returncode == 0, done.stderr
    text = late.read_bytes()
    assert b"HTTP/1.1 200 OK" in text and b"HTTP/1.1 304" not in text.split(b"WARC-Type: request")[0]
    assert b"<title>same</title>" in text


def test_identical_content_is_stored_once(archive, site):
    web = site()
    web.put("/", page(*[f"/copy/{i}" for i in range(10)]))
    for i in range(10):
        web.put(f"/copy/{i}", "x" * 50000, kind="text/plain")
    archive(web.url("/copy/0"))  # first and alone: of those that arrive at the same moment several may be new
    summary = archive(web.url("/"))
    assert summary["duplicates"] >= 9  # all that are new to this crawl
    assert summary["saved_bytes"] == summary["duplicates"] * 50000


def test_a_limit_stops_and_the_same_command_goes_on(archive, site):
    web = site()
    web.put("/", page(*[f"/p{i}" for i in range(30)]))
    for i in range(30):
        web.put(f"/p{i}", page(title=str(i)))
    first = archive(web.url("/"), "--limit", "10")
    assert first["state"] == "limited" and first["waiting"] == 21
    second = archive(web.url("/"), "--limit", "100")
    assert second["state"] == "complete" and second["visit"] == 1
    assert all(web.asked(f"/p{i}") == 1 for i in range(30))


def test_traps_count_on_over_restarts(archive, site):
    web = site(is_fast=True)

    def filters(path):
        number = int(path.split("=")[-1]) if "=" in path else 0
        links = [f"/shop?color={n % 7}&size={n % 11}&sort=up&view=list&page={n}" for n in range(number + 1, number + 101)]
        return Answer(page(*links, title=path), validates=False)

    web.find = lambda host, path: filters(path) if path.startswith("/shop") else Answer("", status=404, validates=False)
    stored = 0
    for _ in range(20):
        summary = archive(web.url("/shop"), "--limit", "300")
        stored += summary["stored"]
        if summary["state"] == "complete":
            break
    assert summary["state"] == "complete", "without an end"
    assert summary["traps"]["query"] > 0 and stored < 2000


def test_ctrl_c_stops_cleanly_and_the_same_command_resumes(mnemon, data, site):
    web = site()
    web.put("/", page(*[f"/p{i}" for i in range(100)]))
    for i in range(100):
        web.put(f"/p{i}", page(title=str(i)), wait=0.02)
    program = mnemon("version").args[0]
    command = [program, "archive", web.url("/"), "--allow-private", "--delay", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(lambda: len(web.asked()) >= 20, turn_s=0.01)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    first = json.loads(out)
    assert first["state"] == "stopped" and 0 < first["waiting"] < 100
    second = json.loads(subprocess.run(command, capture_output=True, timeout=60).stdout)
    assert second["state"] == "complete"
    assert all(web.asked(f"/p{i}") == 1 for i in range(100))


def test_the_state_can_be_read_while_it_runs(mnemon, data, site):
    web = site()
    web.put("/", page(*[f"/{number}" for number in range(2000)]))
    for number in range(2000):
        web.put(f"/{number}", page(title=f"{number}"), wait=0.02)
    program = mnemon("version").args[0]
    command = [program, "archive", web.url("/"), "--allow-private", "--delay", "0", "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    state = {}
    while process.poll() is None and state.get("stored", 0) == 0:
        time.sleep(0.05)  # a turn, until something is stored
        for path in data.glob("jobs/*/state.json"):
            state = json.loads(path.read_text())
    assert process.poll() is None and state["state"] == "running" and state["waiting"] > 0
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0


def test_killed_at_random_it_resumes_with_the_same_captures(mnemon, data, site):
    web = site(3)
    rounds = int(os.environ.get("MNEMON_KILL_ROUNDS", "12"))
    count = 60 if rounds <= 12 else 10 * rounds  # so many that no visit ends before the last round
    for host in range(3):
        links = [web.url(f"/p{i}", (host + i) % 3) for i in range(count)]
        web.put("/", page(*links, title=f"root {host}"), host=host)
        for i in range(count):
            web.put(f"/p{i}", page(web.url("/", (host + 1) % 3), title=f"{host} {i}"), host=host)
    program = mnemon("version").args[0]
    command = [program, "archive", web.url("/"), "--scope", "any", "--allow-private", "--delay", "0", "--json", "-q"]
    dice = random.Random(1)
    for _ in range(rounds):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(dice.uniform(0.02, 0.35))  # killed at any time: the moment is the subject
        process.kill()
        process.wait()
    done = subprocess.run(command, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = [capture["url"] for capture in captures(mnemon)]
    pages = [url for url in found if not url.endswith("robots.txt")]
    assert len(pages) == len(set(pages)), "a URL was stored twice in one visit"
    expected = {web.url(f"/p{i}", (host + i) % 3) for host in range(3) for i in range(count)}
    assert set(pages) >= expected and len(set(pages)) == len(expected | {web.url("/", h) for h in range(3)})
    assert mnemon("store", "verify").returncode == 0


def test_429_is_honoured(archive, site):
    web = site()
    count = {"n": 0}

    def answer(path):
        from webserver import Answer
        count["n"] += 1
        if count["n"] == 1:
            return Answer("slow down", status=429, headers={"Retry-After": "1"}, validates=False)
        return Answer(page(), validates=False)

    web.put("/", page())
    web.pages[(web.host(), "/")].body = answer
    summary = archive(web.url("/"))
    times = [at for at, _, path, _ in web.requests if path == "/"]
    assert len(times) == 2 and times[1] - times[0] >= 0.95
    assert summary["statuses"] == {"200": 1} and summary["retried"] == 1


def test_a_host_gets_one_request_at_a_time_with_a_pause(archive, site):
    web = site()
    web.put("/", page(*[f"/p{i}" for i in range(5)]))
    for i in range(5):
        web.put(f"/p{i}", page())
    archive(web.url("/"), delay="200 ms")
    times = [at for at, _, _, _ in web.requests]
    assert len(times) == 7
    assert min(b - a for a, b in zip(times, times[1:])) >= 0.19


def test_sitemaps_named_in_robots_txt_are_read(archive, site):
    web = site()
    index = web.url("/sitemap-index.xml")
    web.put("/robots.txt", f"Sitemap: {index}\n", kind="text/plain")
    web.put("/sitemap-index.xml",
            f"<sitemapindex><sitemap><loc>{web.url('/one.xml.gz')}</loc></sitemap></sitemapindex>", kind="text/xml")
    urlset = f"<urlset><url><loc>{web.url('/hidden')}</loc></url></urlset>"
    web.put("/one.xml.gz", gzip.compress(urlset.encode()), kind="application/x-gzip")
    web.put("/", page())
    web.put("/hidden", page())
    archive(web.url("/"))
    assert web.asked("/hidden") == 1


def test_private_addresses_are_refused_unless_allowed(mnemon, data, site):
    web = site()
    web.put("/", page())
    done = mnemon("archive", web.url("/"), "--json", "-q")
    assert done.returncode == 1 and "--allow-private" in done.stderr
    assert json.loads(done.stdout)["failed"] == 1 and not web.asked()


def test_explain(mnemon, archive, site):
    web = site()
    small_site(web)
    web.put("/c", page("/private/x"))
    archive(web.url("/"))
    seen = mnemon("archive", web.url("/"), "--explain", web.url("/a"), "--allow-private").stdout
    assert "fetched   yes" in seen and "status 200" in seen
    denied = mnemon("archive", web.url("/"), "--explain", web.url("/private/x")).stdout
    assert "Disallow: /private" in denied and denied.endswith("fetched   no\n")
    outside = mnemon("archive", web.url("/"), "--explain", "https://elsewhere.invalid/").stdout
    assert "scope     no" in outside


def test_seeds_come_from_a_file_or_standard_input(mnemon, data, site, tmp_path):
    web = site()
    for i in range(3):
        web.put(f"/{i}", page("/never"))
    listed = "".join(web.url(f"/{i}") + "\n" for i in range(3))
    options = ["--scope", "page", "--allow-private", "--delay", "0", "--json", "-q"]
    done = mnemon("archive", "--seeds", "-", *options, stdin="# three\n\n" + listed)
    assert json.loads(done.stdout)["stored"] == 3
    bad = mnemon("archive", "--seeds", "-", *options, stdin="https://ok.example/\nftp://bad.example/\n")
    assert bad.returncode != 0 and "line 2" in bad.stderr


@pytest.mark.parametrize("arguments,text", [
    (["archive"], "at least one URL"),
    (["archive", "gopher://x/"], "http"),
    (["archive", "https://example.org/", "--delay", "soon"], "auto"),
    (["archive", "https://example.org/", "--include", "re:("], "include"),
    (["archive", "https://example.org/", "--scope", "world"], "scope"),
])
def test_wrong_usage_is_explained(mnemon, data, arguments, text):
    done = mnemon(*arguments)
    assert done.returncode == 2 and text in done.stderr


def test_jobs_are_listed_paused_and_removed(mnemon, archive, site, data):
    web = site()
    web.put("/", page())
    archive(web.url("/"))
    added = mnemon("job", "add", "https://example.org/", "--period", "6 h", "--scope", "domain")
    assert added.returncode == 0
    jobs = {job["job"]: job for job in map(json.loads, mnemon("job", "list", "--json").stdout.splitlines())}
    assert len(jobs) == 2
    name = next(name for name in jobs if name.startswith("example.org-"))
    assert jobs[name]["period_seconds"] == 6 * 3600 and not jobs[name]["paused"]
    assert all(job["paused"] for key, job in jobs.items() if key != name)
    assert mnemon("job", "pause", name).returncode == 0
    assert "paused" in mnemon("job", "list").stdout
    assert mnemon("job", "remove", name).returncode == 0
    assert name not in mnemon("job", "list").stdout
    assert mnemon("job", "pause", name).returncode == 1
