"""What the program's own build defends, and what a running node may still do."""
import contextlib
import json
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import urllib.request

import pytest

import webserver
from waiting import wait_for


def read_program(mnemon, *command):
    program = mnemon("version").args[0]
    return subprocess.run([*command, program], capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.fixture
def is_sanitized(mnemon):
    with open(mnemon("version").args[0], "rb") as program:
        return b"__sanitizer_" in program.read()


@pytest.mark.skipif(shutil.which("readelf") is None, reason="needs readelf")
def test_the_program_is_built_with_its_defences(mnemon, is_sanitized):
    text = read_program(mnemon, "readelf", "-hldW")
    lines = text.splitlines()
    assert any("Type:" in line and "DYN" in line for line in lines)  # lies anywhere in memory
    assert any("(FLAGS)" in line and "BIND_NOW" in line for line in lines)  # its tables are filled at the start …
    assert any(line.split()[:1] == ["GNU_RELRO"] for line in lines)  # … and then read-only
    stack = next(line for line in lines if line.split()[:1] == ["GNU_STACK"])
    assert stack.split()[-2] == "RW", stack
    for line in lines:
        words = line.split()
        assert words[:1] != ["LOAD"] or not ("W" in "".join(words[6:-1]) and "E" in "".join(words[6:-1])), line
    symbols = read_program(mnemon, "readelf", "-W", "--dyn-syms")
    assert is_sanitized or ("__stack_chk_fail" in symbols and "_chk@" in symbols)


@pytest.mark.skipif(shutil.which("objdump") is None or platform.machine() != "x86_64", reason="of x86-64")
def test_functions_begin_where_calls_may_land(mnemon, is_sanitized):
    if is_sanitized:
        pytest.skip("not built for it")
    text = read_program(mnemon, "objdump", "-d", "--no-show-raw-insn", "--disassemble=main")
    body = text[text.index("<main>:") :].splitlines()
    assert "endbr64" in body[1]


@contextlib.contextmanager
def running(mnemon, data, *arguments, conf=None):
    """A node, and its address."""
    if conf is not None:
        data.mkdir(exist_ok=True)
        (data / "mnemon.conf").write_text(conf)
    command = [mnemon("version").args[0], "serve", "--data", str(data), "--http", "0", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line.startswith("serving"), line + process.stderr.read()
        yield process, line.split(" at ")[1].strip()
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)


def threads(process):
    """What the kernel says of each thread: no new privileges, and a filter for system calls."""
    found = []
    for status in pathlib.Path(f"/proc/{process.pid}/task").glob("*/status"):
        text = status.read_text()
        found.append(tuple(re.search(rf"^{name}:\s+(\d)", text, re.M)[1] for name in ("NoNewPrivs", "Seccomp")))
    return found


def status_of(url):
    with urllib.request.urlopen(url + "/api/v1/status", timeout=120) as answer:
        return json.load(answer)["process"]


def test_all_threads_of_a_node_are_confined(mnemon, tmp_path):
    with running(mnemon, tmp_path / "data") as (process, url):
        found = threads(process)
        assert len(found) > 5 and set(found) == {("1", "2")}
        process_status = status_of(url)
        assert process_status["confined_calls"] == 1 and process_status["confined_files"] in (0, 1)


def test_a_proxy_is_confined_too(mnemon, tmp_path):
    command = [mnemon("version").args[0], "proxy", "--data", str(tmp_path / "data"), "--http", "0"]
    command += ["--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline().startswith("serving")
        assert set(threads(process)) == {("1", "2")}
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)


def test_a_setting_does_without(mnemon, tmp_path):
    with running(mnemon, tmp_path / "data", conf="[node]\nconfine = no\n") as (process, url):
        assert {filtered for _, filtered in threads(process)} == {"0"}
        process_status = status_of(url)
        assert process_status["confined_calls"] == 0 and process_status["confined_files"] == 0


@pytest.mark.parametrize("conf", ["yes", "strict"])
def test_a_confined_node_archives_through_links_and_connectors(mnemon, tmp_path, conf):
    """Volumes that lie elsewhere: one by a link in the data directory, one that the connector names."""
    data = tmp_path / "data"
    for path in (data / "volumes", tmp_path / "disk" / "0", tmp_path / "other"):
        path.mkdir(parents=True)
    (data / "volumes" / "0").symlink_to(tmp_path / "disk" / "0")
    (data / "connector").write_text(
        f'[volume-0]\npath = "volumes/0"\n[volume-1]\npath = "{tmp_path}/other"\nindex = "{tmp_path}/index/1"\n'
    )
    (tmp_path / "index").mkdir()
    site = webserver.Site()
    site.put("/", "<p>hello")
    try:
        for turn in range(2):  # the second opens what the first made
            with running(mnemon, data, "--allow-private", conf=f"[node]\nconfine = {conf}\n") as (process, url):
                assert set(threads(process)) == {("1", "2")}
                site.put(f"/{turn}", f"<p>page {turn}")
                page = site.url(f"/{turn}")
                added = mnemon("job", "add", "--data", str(data), page, "--delay", "0", "--scope", "page")
                assert added.returncode == 0, added.stderr
                wait_for(lambda: mnemon("get", "--data", str(data), page).stdout.endswith(f"page {turn}"))
                assert status_of(url)["confined_files"] in (0, 1 if conf == "yes" else 2)
    finally:
        site.close()
    assert any((tmp_path / "disk" / "0").iterdir()) and any((tmp_path / "index" / "1").iterdir())
    assert mnemon("store", "verify", "--data", str(data)).returncode == 0
