"""mnemon rm: captures leave the index at once, and the disk with the next compaction."""
import json
import re
import shutil
import signal
import subprocess

import pytest

from test_through_node import PROGRAM, warc

SECRET = b"u7Kq-the-private-bytes-0f3c"


def fill(run, tmp_path, count=40):
    """Pages that nothing compresses, so that bytes on the disk can be found; one of them is private."""
    source = tmp_path / "a.warc"
    records = [warc(f"http://example.org/dir/{i}", b"page %d" % i) for i in range(count)]
    records += [warc("http://example.org/private", SECRET, f"202{year}-01-02T03:04:05Z") for year in (4, 5, 6)]
    source.write_bytes(b"".join(records))
    done = run("import", "--quiet", str(source))
    assert done.returncode == 0, done.stderr
    return source


def is_on_disk(directory, wanted=SECRET):
    """In any segment, decompressed."""
    for path in sorted((directory / "volumes").rglob("*.warc.zst")):
        if wanted in path.read_bytes() or wanted in decompressed(path):
            return True
    return False


def decompressed(path):
    if not shutil.which("zstd"):
        pytest.skip("skipped: zstd is not installed")
    done = subprocess.run(["zstd", "-dc", str(path)], capture_output=True)
    return done.stdout


@pytest.fixture
def alone(mnemon, tmp_path):
    directory = tmp_path / "data"

    def run(*words, **options):
        return mnemon(*words, "--data", str(directory), **options)

    run.directory = directory
    return run


def listed(run, url="*"):
    done = run("list", "--local", url)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_capture_is_gone_from_the_list_at_once_and_from_the_disk_after_compact(alone, tmp_path):
    fill(alone, tmp_path)
    assert is_on_disk(alone.directory)
    dry = alone("rm", "http://example.org/private", "--dry-run")
    assert dry.returncode == 0 and dry.stdout.endswith("3 captures would be removed\n"), dry.stdout + dry.stderr
    assert len(listed(alone, "http://example.org/private")) == 3

    done = alone("rm", "http://example.org/private", "--to", "2024")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "20240102030405 http://example.org/private", '1 capture removed; "mnemon store compact" takes their bytes off the disk']
    assert len(listed(alone, "http://example.org/private")) == 2
    assert alone("store", "compact").returncode == 0
    assert is_on_disk(alone.directory), "two captures still have the bytes"
    assert alone("get", "http://example.org/private").stdout == SECRET.decode()

    done = alone("rm", "http://example.org/private")
    assert done.returncode == 0 and "2 captures removed" in done.stdout, done.stderr
    assert listed(alone, "http://example.org/private") == []
    assert alone("get", "http://example.org/private").returncode == 1
    assert is_on_disk(alone.directory)
    assert alone("store", "compact").returncode == 0
    assert not is_on_disk(alone.directory)
    assert not is_on_disk(alone.directory, b"example.org/private")
    assert len(listed(alone)) == 40
    assert alone("store", "verify").returncode == 0
    assert alone("store", "reindex").returncode == 0
    assert len(listed(alone)) == 40

    again = alone("rm", "http://example.org/private")
    assert again.returncode == 1 and "holds no such capture of http://example.org/private" in again.stderr


def test_a_pattern_means_what_list_says_and_everything_needs_yes(alone, tmp_path):
    source = fill(alone, tmp_path)
    refused = alone("rm", "*")
    assert refused.returncode == 1 and '"*" means all 43 captures; nothing is removed without --yes' in refused.stderr
    assert len(listed(alone)) == 43
    done = alone("rm", "http://example.org/dir/*", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and lines[-1] == {"removed": 40}
    assert lines[0] == {"timestamp": "20260102030405", "url": "http://example.org/dir/0"}
    assert len(listed(alone)) == 3
    assert alone("import", "--quiet", str(source)).returncode == 0, "an archive of one's own takes it again"
    assert len(listed(alone)) == 43
    assert alone("rm", "http://").returncode == 2
    done = alone("rm", "*", "--yes", "-q")
    assert done.returncode == 0 and done.stdout.startswith("43 captures removed;"), done.stderr


def test_it_works_through_a_running_node(alone, tmp_path):
    fill(alone, tmp_path, 600)
    process = subprocess.Popen([PROGRAM, "serve", "--data", str(alone.directory), "--http", "0"], stdout=subprocess.PIPE, text=True)
    try:
        assert re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
        done = alone("rm", "http://example.org/private", "-q")
        assert done.returncode == 0 and done.stdout.startswith("3 captures removed;"), done.stderr
        done = alone("rm", "http://example.org/*", "-q")
        assert done.returncode == 0 and done.stdout.startswith("600 captures removed;"), done.stderr
        assert listed(alone) == []
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    assert alone("store", "compact").returncode == 0
    assert not is_on_disk(alone.directory)
    assert alone("store", "verify").returncode == 0


def test_a_member_of_a_ring_does_not_pretend(alone, tmp_path):
    fill(alone, tmp_path)
    assert alone("ring", "create", "films").returncode == 0
    refused = alone("rm", "http://example.org/private")
    assert refused.returncode == 1 and "member of a ring" in refused.stderr and "mnemon ring delete" in refused.stderr
    assert len(listed(alone, "http://example.org/private")) == 3
    key = alone("store", "put", "-", stdin="some words").stdout.split()[0]
    done = alone("store", "rm", key)
    assert done.returncode == 0 and "other nodes bring captures of these documents back" in done.stderr


def test_a_ring_whose_files_are_damaged_keeps_nobody_from_reading(alone, tmp_path):
    fill(alone, tmp_path)
    assert alone("ring", "create", "films").returncode == 0
    done = alone("ring", "delete", "http://example.org/private", "--reason", "because")
    assert done.returncode == 0 and "3 captures have gone from it" in done.stdout, done.stderr
    (alone.directory / "ring" / "charter").write_bytes(b"nonsense")
    done = alone("list", "--local", "*")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 40
    assert "what the ring has deleted is not known" in done.stderr
