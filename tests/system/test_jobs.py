"""Jobs that a running node crawls by itself."""
import json
import signal
import subprocess
import time
import urllib.request

import pytest

from test_archive import page
from waiting import wait_for
from webserver import Site


@pytest.fixture
def web():
    site = Site()
    yield site
    site.close()


@pytest.fixture
def node(mnemon, tmp_path, monkeypatch):
    """A node with an archive of its own; stops when the test ends."""
    monkeypatch.setenv("MNEMON_DATA", str(tmp_path / "data"))
    program = mnemon("version").args[0]
    running = []

    def start():
        command = [program, "serve", "--http", "0", "--allow-private"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = process.stdout.readline()
        assert line.startswith("serving")
        process.url = line.split(" at ")[1].strip()
        running.append(process)
        return process

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def stop(process):
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return err


def add(mnemon, *arguments):
    added = mnemon("job", "add", *arguments, "--delay", "0")
    assert added.returncode == 0, added.stderr
    return added.stdout.split()[0]


def test_a_job_is_crawled_again_each_period(mnemon, node, web):
    web.put("/", page("/a"))
    web.put("/a", page())
    process = node()
    name = add(mnemon, web.url("/"), "--period", "1 s")
    wait_for(lambda: web.asked("/a") >= 3)
    web.put("/a", page("/new"))
    web.put("/new", page())
    wait_for(lambda: web.asked("/new") >= 1)
    wait_for(lambda: name in urllib.request.urlopen(process.url + "/jobs").read().decode())
    shown = urllib.request.urlopen(process.url + "/dashboard").read().decode()
    assert "<h2>Volumes</h2>" in shown and "is down" not in shown
    log = stop(process)
    assert f"job {name}: begins" in log and "visit complete" in log
    job = json.loads(mnemon("job", "list", "--json").stdout)
    assert job["visit"] >= 3 and job["known"] == 3
    lines = mnemon("list", web.url("/a")).stdout.splitlines()
    assert len(lines) >= 4 and lines[1].count("warc/revisit") == 1


def test_the_period_counts_from_the_start_of_the_first_visit(mnemon, node, web):
    web.put("/", page())
    process = node()
    name = add(mnemon, web.url("/"), "--period", "1 h")
    wait_for(lambda: web.asked("/") == 1)
    time.sleep(3)  # the next visit would begin within a second
    assert web.asked("/") == 1
    log = stop(process)
    assert f"job {name}: visit complete" in log and "next visit" not in log
    assert json.loads(mnemon("job", "list", "--json").stdout)["visit_start"] > 1700000000


def test_a_job_that_is_paused_rests_and_goes_on(mnemon, node, web):
    web.put("/", page())
    process = node()
    name = add(mnemon, web.url("/"), "--period", "1 s")
    wait_for(lambda: web.asked("/") >= 2)
    mnemon("job", "pause", name)
    wait_for(lambda: "ends" in mnemon("job", "list").stdout or is_quiet(web))
    count = web.asked("/")
    time.sleep(2.5)  # two periods in which a job that did not rest would ask
    assert web.asked("/") == count
    mnemon("job", "resume", name)
    wait_for(lambda: web.asked("/") > count)
    stop(process)


def is_quiet(web):
    count = web.asked("/")
    time.sleep(2.2)  # two periods: that nothing comes can only be waited for
    return web.asked("/") == count


def test_a_removed_job_is_gone_and_what_it_archived_stays(mnemon, node, web, tmp_path):
    web.put("/", page())
    process = node()
    name = add(mnemon, web.url("/"), "--period", "1 s")
    wait_for(lambda: web.asked("/") >= 1)
    assert mnemon("job", "remove", name).returncode == 0
    wait_for(lambda: not (tmp_path / "data" / "jobs" / name).exists())
    stop(process)
    assert mnemon("job", "list").stdout == ""
    assert mnemon("list", web.url("/")).stdout


def test_many_jobs_share_one_polite_engine(mnemon, node, web):
    for i in range(3):
        web.put(f"/{i}/", page(*[f"/{i}/{j}" for j in range(10)]), wait=0.01)
        for j in range(10):
            web.put(f"/{i}/{j}", page(), wait=0.01)
    process = node()
    for i in range(3):
        add(mnemon, web.url(f"/{i}/"), "--scope", "prefix", "--period", "1 h")
    wait_for(lambda: all(web.asked(f"/{i}/{j}") for i in range(3) for j in range(10)))
    stop(process)
    times = sorted(at for at, _, path, _ in web.requests if path != "/robots.txt")
    assert len(times) == 33
    assert min(b - a for a, b in zip(times, times[1:])) >= 0.005, "two requests to a host at the same time"


def test_a_node_that_is_killed_goes_on_where_it_was(mnemon, node, web):
    web.put("/", page(*[f"/{i}" for i in range(50)]))
    for i in range(50):
        web.put(f"/{i}", page(), wait=0.01)
    process = node()
    add(mnemon, web.url("/"), "--period", "1 h")
    wait_for(lambda: len(web.asked()) >= 20)
    process.kill()
    process.communicate()
    process = node()
    # A node that is told to stop drops what is under way: asked for is not yet stored.
    wait_for(lambda: json.loads(mnemon("job", "list", "--json").stdout or "{}").get("waiting") == 0)
    assert all(web.asked(f"/{i}") for i in range(50))
    stop(process)
    listed = [json.loads(line.split(" ", 2)[2])["url"] for line in mnemon("list", "*").stdout.splitlines()]
    pages = [url for url in listed if not url.endswith("robots.txt")]
    assert len(pages) == len(set(pages)) == 51
