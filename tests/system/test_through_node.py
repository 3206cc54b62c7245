"""Commands on the data directory of a node that runs: they work through it."""
import os
import re
import signal
import subprocess

import pytest

from conftest import ROOT

PROGRAM = os.environ.get("MNEMON", str(ROOT / "build" / "mnemon"))


@pytest.fixture
def node(tmp_path):
    process = subprocess.Popen(
        [PROGRAM, "serve", "--data", str(tmp_path / "data"), "--http", "0"], stdout=subprocess.PIPE, text=True
    )
    assert re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
    yield tmp_path / "data"
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 0


@pytest.fixture
def run(mnemon, node):
    def command(*words, **options):
        return mnemon(*words, "--data", str(node), **options)

    return command


def warc(url, body, date="2026-01-02T03:04:05Z"):
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body
    head = (
        f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{abs(hash(url)) % 10**12:012}>\r\n"
        f"WARC-Date: {date}\r\nWARC-Target-URI: {url}\r\nContent-Type: application/http;msgtype=response\r\n"
        f"Content-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def test_import_list_get_and_export_while_the_node_runs(run, tmp_path):
    source = tmp_path / "a.warc"
    source.write_bytes(b"".join(warc(f"http://example.org/{i}", b"page %d" % i) for i in range(200)))
    imported = run("import", "--quiet", str(source))
    assert imported.returncode == 0, imported.stderr
    again = run("import", "--quiet", "--json", str(source))
    assert again.returncode == 0 and '"captures": 0' in again.stdout.replace('":0', '": 0')
    listed = run("list", "example.org/*")
    assert listed.returncode == 0 and len(listed.stdout.splitlines()) == 200
    got = run("get", "http://example.org/7")
    assert got.stdout == "page 7"
    out = tmp_path / "out.warc.gz"
    exported = run("export", "example.org/*", "-o", str(out))
    assert exported.returncode == 0 and out.stat().st_size > 0


def test_documents_by_key_while_the_node_runs(run):
    key = run("store", "put", "-", stdin="some words").stdout.split()[0]
    assert run("store", "get", key).stdout == "some words"
    assert run("store", "stat").returncode == 0
    assert run("store", "rm", key).returncode == 0
    assert run("store", "get", key).returncode == 1


def test_what_needs_the_files_themselves_says_who_has_them(run, node):
    for words in (["store", "verify"], ["store", "compact"], ["store", "reindex"]):
        refused = run(*words)
        assert refused.returncode == 1
        assert f"is using {node}; stop it first" in refused.stderr and "process" in refused.stderr
