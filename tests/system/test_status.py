"""`mnemon status`: what a running node does, and what is said where none runs."""
import json
import os
import pathlib
import re

from test_desk import Node, page, start, web  # noqa: F401 (fixtures)
from waiting import wait_for


def status(mnemon, directory, *options):
    return mnemon("status", "--data", str(directory), *options)


def test_a_running_node_is_asked(mnemon, start, web):  # noqa: F811
    node = start()
    web.put("/", page("/a"))
    web.put("/a", page())
    assert mnemon("job", "add", web.url("/"), "--delay", "0", "--data", str(node.directory)).returncode == 0
    wait_for(lambda: node.ask("/api/v1/status").json["crawl"]["documents"] >= 2)
    told = status(mnemon, node.directory)
    assert told.returncode == 0 and told.stderr == "", told.stderr
    for word in ("node     http://127.0.0.1:", "crawl    1 jobs open", "store    ", "http     ", "process  "):
        assert word in told.stdout, word
    assert "Nothing is held up." in told.stdout or "What is slow, and why:" in told.stdout
    data = json.loads(status(mnemon, node.directory, "--json").stdout)
    assert data["version"] == 1 and data["crawl"]["documents"] >= 2


def test_what_it_says_of_its_process_is_true(mnemon, start):  # noqa: F811
    node = start()
    place = pathlib.Path(f"/proc/{node.process.pid}")

    def is_true():
        """Both are taken at one moment: a connection more or less is no lie."""
        process = node.ask("/api/v1/status").json["process"]
        pages = int((place / "statm").read_text().split()[1])
        threads, descriptors = (len(list((place / name).iterdir())) for name in ("task", "fd"))
        return (process["threads"] == threads and abs(process["descriptors"] - descriptors) <= 2
                and abs(process["memory_bytes"] - pages * os.sysconf("SC_PAGE_SIZE")) < 16 << 20)  # fmt: skip

    wait_for(is_true, lambda: node.ask("/api/v1/status").json["process"])
    names = {(task / "comm").read_text().strip() for task in (place / "task").iterdir()}
    assert {"mnemon", "http", "http-door", "crawl-loop", "committer"} <= names


def test_it_says_what_is_slow_and_why(mnemon, start, web):  # noqa: F811
    web.put("/", page(*[f"/{i}" for i in range(50)]))
    for i in range(50):
        web.put(f"/{i}", page())
    node = start()
    assert mnemon("job", "add", web.url("/"), "--delay", "30 s", "--data", str(node.directory)).returncode == 0
    told = wait_for(lambda: (s := status(mnemon, node.directory).stdout) and "at the pace of its hosts" in s and s)
    assert re.search(r"1 of 1 are waited for, with \d+ URLs to come – 127\.0\.2\.1:\d+: delay between requests", told)
    slow = node.ask("/api/v1/status").json["slow"]
    assert [item["what"] for item in slow] == ["pace"]
    waiting = node.ask("/api/v1/status").json["crawl"]["waiting"]
    assert waiting == [{"host": web.host(), "why": "delay between requests"}]
    shown = node.ask("/jobs").text
    assert web.host() in shown and "delay between requests" in shown
    assert "at the pace of its hosts" in node.ask("/dashboard").text


def test_a_closed_archive_is_asked_with_the_token(mnemon, start):  # noqa: F811
    node = start(settings="[http]\nreads = token\n")
    assert status(mnemon, node.directory).returncode == 0
    (node.directory / "token").chmod(0o644)
    refused = status(mnemon, node.directory)
    assert refused.returncode == 1 and "not public" in refused.stderr


def test_a_node_for_everybody_is_found_on_loopback(mnemon, start):  # noqa: F811
    node = start(options=("--address", "0.0.0.0"))
    assert json.loads((node.directory / "node.json").read_text())["url"] == f"http://127.0.0.1:{node.port}"
    assert status(mnemon, node.directory).returncode == 0


def test_without_a_node_it_says_what_the_archive_holds(mnemon, start, tmp_path):  # noqa: F811
    nothing = status(mnemon, tmp_path / "none")
    assert nothing.returncode == 1 and "no node runs on" in nothing.stderr and "no archive" in nothing.stderr
    node = start()
    node.stop()
    assert not (node.directory / "node.json").exists()
    told = status(mnemon, node.directory)
    assert told.returncode == 1 and "no node runs on" in told.stderr and "the archive holds 0 captures" in told.stdout
    data = json.loads(status(mnemon, node.directory, "--json").stdout)
    assert data == {"running": False, "captures": 0, "bytes": data["bytes"]}


def test_what_a_killed_node_left_behind_is_recognised(mnemon, start):  # noqa: F811
    node = start()
    node.process.kill()
    node.process.wait()
    assert (node.directory / "node.json").exists()
    told = status(mnemon, node.directory)
    assert told.returncode == 1 and "ended without a word" in told.stderr and "the archive holds" in told.stdout
    for text in ("", "{", "{}", "[]", '{"url":"file:///etc/passwd","pid":1,"started":"2026-01-01T00:00:00Z"}', "x" * 10000):
        (node.directory / "node.json").write_text(text)
        told = status(mnemon, node.directory)
        assert told.returncode == 1 and "nothing sensible" in told.stderr, text[:50]
    again = Node(node.process.args[0], node.directory)
    try:
        assert status(mnemon, node.directory).returncode == 0
    finally:
        again.process.kill()
        again.process.communicate()


def test_a_process_that_is_no_node_is_not_believed(mnemon, start):  # noqa: F811
    node = start()
    node.stop()
    (node.directory / "node.json").write_text(
        json.dumps({"url": "http://127.0.0.1:1", "pid": os.getpid(), "started": "2026-01-01T00:00:00Z"})
    )
    told = status(mnemon, node.directory)
    assert told.returncode == 1 and "does not answer" in told.stderr
