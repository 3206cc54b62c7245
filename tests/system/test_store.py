"""mnemon store: documents by content key, and the data directory that every command opens."""
import fcntl
import hashlib
import json
import os
import resource
import subprocess

import pytest


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A data directory that the program finds by itself."""
    directory = tmp_path / "data"
    monkeypatch.setenv("MNEMON_DATA", str(directory))
    return directory


@pytest.fixture
def raw(mnemon):
    """Run the program with bytes in and out."""
    program = mnemon("version").args[0]

    def run(*arguments, stdin=b""):
        return subprocess.run([program, *arguments], input=stdin, capture_output=True, timeout=60)

    return run


def key_of(content, number=0):
    return f"0:{hashlib.sha256(content).hexdigest()}" + (f".{number}" if number else "")


def test_a_document_comes_back_by_the_key_that_put_prints(data, raw):
    content = bytes(range(256)) * 1000 + b"\n\0\r\n"
    put = raw("store", "put", "-", stdin=content)
    assert put.returncode == 0, put
    assert put.stdout.decode() == key_of(content) + "\n"
    assert raw("store", "get", key_of(content)).stdout == content


def test_the_empty_document_is_a_document(data, raw):
    assert raw("store", "put", "-").stdout.decode() == key_of(b"") + "\n"
    get = raw("store", "get", key_of(b""))
    assert get.returncode == 0 and get.stdout == b""


def test_files_are_stored_in_order_and_a_bad_one_does_not_stop_the_others(data, mnemon, tmp_path):
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    result = mnemon("store", "put", str(tmp_path / "a"), str(tmp_path / "none"), str(tmp_path / "b"))
    assert result.returncode == 1
    assert result.stdout.split() == [key_of(b"a"), key_of(b"b")]
    assert "none: No such file" in result.stderr


def test_duplicates_are_found_and_modes_are_kept(data, mnemon):
    def put(*options):
        return json.loads(mnemon("store", "put", "-", "--json", *options, stdin="twice").stdout)

    first = put()
    assert first == {"key": key_of(b"twice"), "duplicate": False, "size": 5, "file": "-"}
    assert put()["duplicate"] is True
    assert put("--mode", "compare")["duplicate"] is True
    assert put("--mode", "force-new") == {"key": key_of(b"twice", 1), "duplicate": False, "size": 5, "file": "-"}


def test_rm_drops_one_reference_at_a_time(data, mnemon):
    for _ in range(2):
        mnemon("store", "put", "-", stdin="shared")
    key = key_of(b"shared")
    assert mnemon("store", "rm", key).returncode == 0
    assert mnemon("store", "get", key).stdout == "shared"
    assert mnemon("store", "rm", key).returncode == 0
    for action in ("get", "rm"):
        gone = mnemon("store", action, key)
        assert gone.returncode == 1
        assert f"there is no document {key}" in gone.stderr


def test_get_writes_a_file_only_when_it_is_whole(data, mnemon, tmp_path):
    key = mnemon("store", "put", "-", stdin="to a file").stdout.strip()
    target = tmp_path / "out"
    assert mnemon("store", "get", key, "-o", str(target)).returncode == 0
    assert target.read_text() == "to a file"
    assert mnemon("store", "get", key_of(b"never stored"), "-o", str(tmp_path / "other")).returncode == 1
    refused = mnemon("store", "get", key, "-o", str(tmp_path / "no" / "where"))
    assert refused.returncode == 1 and "No such file" in refused.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "out"]


def test_stat_counts_and_reindex_finds_the_same(data, mnemon):
    keys = [mnemon("store", "put", "-", stdin=f"document {i}").stdout.strip() for i in range(5)]
    mnemon("store", "put", "-", "--url", "http://example.org/", "--type", "text/plain", stdin="a capture")
    mnemon("store", "rm", keys[0])
    before = json.loads(mnemon("store", "stat", "--json").stdout)
    assert (before["documents"], before["captures"], before["segments"]) == (5, 1, 1)
    assert before["directory"] == str(data)
    assert 0 < before["dead_size"] < before["size"]
    listed = mnemon("list", "*").stdout
    rebuilt = json.loads(mnemon("store", "reindex", "--json").stdout)
    assert rebuilt["damaged"] == 0 and rebuilt["cut_size"] == 0
    after = json.loads(mnemon("store", "stat", "--json").stdout)
    assert {name: after[name] for name in ("documents", "captures", "size", "dead_size")} == {
        name: before[name] for name in ("documents", "captures", "size", "dead_size")
    }
    assert mnemon("list", "*").stdout == listed
    assert mnemon("store", "get", keys[0]).returncode == 1
    assert "documents    5\n" in mnemon("store", "stat").stdout


def test_a_torn_record_is_cut_off_and_said(data, mnemon):
    key = mnemon("store", "put", "-", stdin="whole").stdout.strip()
    segment = next((data / "volumes" / "0").glob("*.warc.zst"))
    size = segment.stat().st_size
    with open(segment, "ab") as file:
        file.write(segment.read_bytes()[:40])
    result = mnemon("store", "get", key)
    assert result.stdout == "whole"
    assert "repaired the archive" in result.stderr and "40 bytes" in result.stderr
    assert segment.stat().st_size == size
    assert mnemon("store", "get", key).stderr == ""


def test_a_missing_archive_is_named(data, mnemon):
    for arguments in (["store", "stat"], ["store", "get", key_of(b"")], ["list", "*"], ["get", "http://a/"]):
        result = mnemon(*arguments)
        assert result.returncode == 1
        assert f"there is no archive in {data}" in result.stderr
    assert not data.exists()


def test_only_one_process_at_a_time(data, mnemon):
    mnemon("store", "put", "-", stdin="x")
    with open(data / "volumes" / "0" / "lock", "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for arguments in (["store", "stat"], ["list", "*"], ["store", "put", "-"]):
            result = mnemon(*arguments)
            assert result.returncode == 1
            assert result.stderr == f"mnemon: another process is using {data}; wait for it or stop it\n"
    assert mnemon("store", "stat").returncode == 0


def test_where_the_data_is(mnemon, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "MNEMON_DATA"}
    environment["HOME"] = str(tmp_path / "home")
    assert mnemon("store", "put", "-", stdin="x", env=environment).returncode == 0
    assert (tmp_path / "home" / ".local" / "share" / "mnemon" / "volumes" / "0").is_dir()
    environment["MNEMON_DATA"] = str(tmp_path / "environment")
    mnemon("store", "put", "-", stdin="x", env=environment)
    assert (tmp_path / "environment" / "volumes").is_dir()
    mnemon("store", "put", "-", "--data", str(tmp_path / "option"), stdin="x", env=environment)
    assert (tmp_path / "option" / "volumes").is_dir()
    del environment["MNEMON_DATA"], environment["HOME"]
    nowhere = mnemon("store", "stat", env=environment)
    assert nowhere.returncode == 1 and "--data DIR" in nowhere.stderr


def test_a_directory_that_cannot_be_made_is_an_error(mnemon, tmp_path):
    (tmp_path / "file").write_text("")
    result = mnemon("store", "put", "-", "--data", str(tmp_path / "file" / "below"), stdin="x")
    assert result.returncode == 1
    assert "cannot open the archive" in result.stderr


@pytest.mark.parametrize(
    "arguments, hint",
    [
        (["store"], "an argument is missing"),
        (["store", "ptu"], "did you mean put?"),
        (["store", "put"], "an argument is missing: mnemon store put FILE"),
        (["store", "get", "0:12"], '"0:12" is not a content key'),
        (["store", "rm", "x", "y"], '"x" is not a content key'),
        (["store", "get", "a", "b"], 'unexpected argument "b"'),
        (["store", "stat", "now"], 'unexpected argument "now"'),
        (["store", "put", "-", "--mode", "never"], "--mode"),
    ],
)
def test_wrong_usage(data, mnemon, arguments, hint):
    result = mnemon(*arguments)
    assert result.returncode == 2, result
    assert hint in result.stderr
    assert not data.exists()


def test_list_understands_stars_hosts_and_times(data, mnemon):
    urls = ["http://a.org/", "http://a.org/x/", "http://a.org/x/y", "http://a.org/xz", "http://b.a.org/", "http://a.org:81/q"]
    for url in urls:
        assert mnemon("store", "put", "-", "--url", url, stdin=url).returncode == 0

    def listed(*arguments):
        result = mnemon("list", "--json", *arguments)
        assert result.returncode == 0, result
        return [json.loads(line)["url"] for line in result.stdout.splitlines()]

    assert listed("http://www.a.org/X") == ["http://a.org/x/"]
    assert listed("a.org/x*") == urls[1:4]
    assert listed("a.org/x/*") == urls[1:3]
    assert listed("a.org/x", "--match", "prefix") == urls[1:4]
    assert listed("a.org", "--match", "host") == urls[:4]
    assert listed("*.a.org") == listed("a.org", "--match", "domain") == urls
    assert listed("*", "--limit", "2") == urls[:2]
    assert listed("*", "--to", "2000") == listed("*", "--from", "9000") == listed("org") == []
    assert listed("*", "--from", "2000", "--to", "9") == urls
    for arguments in (["*", "--from", "x"], ["*", "--to", "20261399"], ["http://a:b/"]):
        assert mnemon("list", *arguments).returncode == 2


def test_a_removed_document_takes_its_captures_with_it(data, mnemon):
    key = mnemon("store", "put", "-", "--url", "http://a.org/", stdin="gone").stdout.strip()
    assert mnemon("get", "http://a.org/").stdout == "gone"
    mnemon("store", "rm", key)
    assert mnemon("list", "*").stdout == ""
    gone = mnemon("get", "http://a.org/")
    assert gone.returncode == 1
    assert "holds no capture of http://a.org/" in gone.stderr


def test_a_reader_that_has_seen_enough_ends_list_quietly(data, mnemon):
    for i in range(3):
        mnemon("store", "put", "-", "--url", f"http://a.org/{i}", stdin=str(i))
    program = mnemon("version").args[0]
    result = subprocess.run(
        ["sh", "-c", f"{program} list '*' | head -n 1"], capture_output=True, text=True, timeout=60
    )
    assert result.stdout.startswith("org,a)/0 ") and result.stderr == ""


LARGE_SIZE = 256 << 20
MEMORY_MAX = 160 << 20  # less than the document; threads and RocksDB's caches take half of it


def limit_memory():
    if "MNEMON_SANITIZED" in os.environ:
        return  # sanitizers want terabytes of addresses
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_MAX, MEMORY_MAX))


def write_large(path, head=b"", tail=b""):
    """A file of LARGE_SIZE bytes of which no two pieces are alike; its digest without head and tail."""
    digest = hashlib.sha256()
    with open(path, "wb") as file:
        file.write(head)
        block = os.urandom(1 << 20)
        for number in range(LARGE_SIZE >> 20):
            piece = number.to_bytes(8, "big") + block[8:]
            digest.update(piece)
            file.write(piece)
        file.write(tail)
    return digest.hexdigest()


def digest_of_output(program, *arguments):
    process = subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, preexec_fn=limit_memory)
    digest = hashlib.sha256()
    for piece in iter(lambda: process.stdout.read(1 << 20), b""):
        digest.update(piece)
    assert process.wait(60) == 0
    return digest.hexdigest()


def test_a_document_larger_than_memory_is_stored_and_comes_back(data, mnemon, tmp_path):
    program = mnemon("version").args[0]
    expected = write_large(tmp_path / "large")
    for _ in range(2):  # the second time it is a duplicate
        put = mnemon("store", "put", str(tmp_path / "large"), preexec_fn=limit_memory)
        assert put.returncode == 0, put.stderr
        assert put.stdout.split()[0] == "0:" + expected
    assert digest_of_output(program, "store", "get", "0:" + expected) == expected


def test_a_record_larger_than_memory_is_imported_and_comes_back(data, mnemon, tmp_path):
    program = mnemon("version").args[0]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n"
    record = (b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:5a76f94e-f7fa-48b3-922c-484f963d5c47>\r\n"
              b"WARC-Date: 2026-01-02T03:04:05Z\r\nWARC-Target-URI: http://example.org/film\r\n"
              b"Content-Type: application/http;msgtype=response\r\nContent-Length: %d\r\n\r\n" % (len(head) + LARGE_SIZE))
    expected = write_large(tmp_path / "large.warc", record + head, b"\r\n\r\n")
    done = mnemon("import", str(tmp_path / "large.warc"), preexec_fn=limit_memory)
    assert done.returncode == 0, done.stderr
    assert digest_of_output(program, "get", "http://example.org/film") == expected


def flip_bit(segment, offset):
    content = bytearray(segment.read_bytes())
    content[offset] ^= 0x10
    segment.write_bytes(content)


def test_verify_names_damaged_captures_and_lists_them_for_the_ring(data, mnemon):
    url = "http://example.org/damaged"
    mnemon("store", "put", "-", "--url", "http://example.org/before", stdin="before")
    segment = next((data / "volumes" / "0").glob("*.warc.zst"))
    start = segment.stat().st_size
    mnemon("store", "put", "-", "--url", url, stdin="damaged")
    end = segment.stat().st_size
    mnemon("store", "put", "-", "--url", "http://example.org/behind", stdin="behind")
    assert "all sound" in mnemon("store", "verify").stdout
    flip_bit(segment, (start + end) // 2)
    verified = mnemon("store", "verify", "--json")
    assert verified.returncode == 1
    assert f" {url}\n" in verified.stderr and "http://example.org/b" not in verified.stderr
    counts = json.loads(verified.stdout)
    assert (counts["damaged"], counts["lost"], counts["captures"]) == (1, 1, 1)
    assert not (data / "ring").exists()  # nobody could repair it
    (data / "ring").mkdir()
    assert mnemon("store", "verify").returncode == 1
    line = (data / "ring" / "damaged").read_text().removesuffix("\n").split(" ")
    assert line[:3] + line[4:] == ["0", "0", hashlib.sha256(b"damaged").hexdigest(), url]
    flip_bit(segment, (start + end) // 2)
    assert mnemon("store", "verify").returncode == 0
    assert not (data / "ring" / "damaged").exists()


def test_what_is_written_to_a_device_or_a_pipe_leaves_it_as_it_is(data, mnemon, tmp_path):
    """A file is renamed into its place; done to /dev/null by root, that put an end to it for the whole machine."""
    assert mnemon("store", "put", "-", stdin="hello").returncode == 0
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        assert mnemon("export", "-q", "-o", str(pipe)).returncode == 0
        content = reader.stdout.read()
    assert content[:2] == b"\x1f\x8b"
    assert pipe.is_fifo() and not (tmp_path / "pipe.part").exists()
