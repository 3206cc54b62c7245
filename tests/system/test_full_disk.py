"""A disk without room: the archive is read all the same, writes are refused, and nothing that was stored is lost."""
import fcntl
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import urllib.request

import pytest

DISK_SIZE = 160 << 20  # a volume counts as full below 64 MiB, and an open index takes 36 in advance
NEW = "20130729-heritrix-original.warc.gz"
WARCS = ["iana.warc.gz", "example.warc.gz", "example-resource.warc.gz"]
URL = "http://www.iana.org/"
KIB = 1 << 10
ROOMS = [size * KIB for size in (0, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 64, 96, 128, 192, 256, 320, 384, 512, 640,
                                 768, 1024, 1280, 1536, 2048, 3072, 4096, 6144)]  # fmt: skip
READ_ONLY = "is open for reading only: no space left on the disk"
NOT_WRITTEN = "is open for reading only: it may not be written to"


@pytest.fixture
def disk(tmp_path):
    """A file system of its own, which may be filled."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_SIZE}", "tmpfs", str(place)], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("this user cannot mount a file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture
def warcs(root):
    directory = pathlib.Path(os.environ.get("MNEMON_TEST_DATA", root.parent / "shared" / "data")) / "warc"
    if not (directory / WARCS[0]).exists():
        pytest.skip("the WARC files to import are not here")
    return [str(directory / name) for name in WARCS]


def fill(disk, room_size):
    """Take all but this much of the disk."""
    status = os.statvfs(disk)
    size = status.f_bavail * status.f_frsize - room_size
    with open(disk / "filling", "wb") as file:
        if size > 0:
            os.posix_fallocate(file.fileno(), 0, size)


def drop_ballast(data):
    (pathlib.Path(data) / "index" / "0" / "ballast").unlink(missing_ok=True)


def renew(disk, archive, keeps_ballast=False):
    """The archive as it was, on a disk with room; without the ballast that would make room on a full one."""
    for name in os.listdir(disk):
        path = disk / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(archive, disk / "data")
    if not keeps_ballast:
        drop_ballast(disk / "data")
    return str(disk / "data")


def lines(result):
    return sorted(result.stdout.splitlines())


def segments(data):
    return {path.name: path.read_bytes() for path in pathlib.Path(data).glob("volumes/0/*.warc*")}


def read_all(mnemon, data, wants, told):
    """Everything that reads gives what it gave when there was room."""
    listed = mnemon("list", "--data", data, "*")
    assert listed.returncode == 0, listed.stderr
    assert lines(listed) == wants["list"]
    got = mnemon("get", "--data", data, URL)
    assert got.returncode == 0, got.stderr
    assert got.stdout == wants["get"]
    exported = mnemon("export", "--data", data, "--output", "/dev/null")
    assert exported.returncode == 0, exported.stderr
    verified = mnemon("store", "verify", "--data", data)
    assert verified.returncode == 0, verified.stderr
    for result in (listed, got, exported, verified):
        assert result.stderr.count(READ_ONLY) <= 1
        told.append(result.stderr)


def wants_of(mnemon, data):
    return {"list": lines(mnemon("list", "--data", data, "*")), "get": mnemon("get", "--data", data, URL).stdout}


@pytest.fixture
def archive(mnemon, warcs, disk, tmp_path):
    data = disk / "data"
    assert mnemon("import", "--data", str(data), *warcs).returncode == 0
    shutil.copytree(data, tmp_path / "archive")
    return tmp_path / "archive"


def test_reads_whatever_room_is_left(mnemon, disk, archive, warcs):
    wants = wants_of(mnemon, renew(disk, archive))
    assert len(wants["list"]) > 100
    told = []
    new = str(pathlib.Path(warcs[0]).with_name(NEW))
    for room_size in ROOMS:
        data = renew(disk, archive)
        before = segments(data)
        fill(disk, room_size)
        read_all(mnemon, data, wants, told)
        refused = mnemon("import", "--data", data, new)
        assert refused.returncode != 0 and "no space left on the disk" in refused.stderr, room_size
        assert segments(data) == before
        (disk / "filling").unlink()
        again = mnemon("list", "--data", data, "*")
        assert lines(again) == wants["list"] and again.stderr == ""
        assert mnemon("import", "--data", data, new).returncode == 0
    assert sum(READ_ONLY in err for err in told) >= 4


def kill_in_the_middle(mnemon, data, files):
    program = mnemon("version").args[0]
    process = subprocess.Popen(
        [program, "import", "--data", data, *files], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    segment = pathlib.Path(data) / "volumes" / "0" / "00000001.warc.zst"
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if segment.exists() and segment.stat().st_size > 200_000:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_reads_after_an_import_was_killed(mnemon, disk, warcs, tmp_path):
    kill_in_the_middle(mnemon, str(disk / "data"), warcs)
    shutil.copytree(disk / "data", tmp_path / "killed")
    wants = wants_of(mnemon, renew(disk, tmp_path / "killed"))
    assert len(wants["list"]) > 1
    for room_size in ROOMS:
        data = renew(disk, tmp_path / "killed")
        fill(disk, room_size)
        listed = mnemon("list", "--data", data, "*")
        missed = "not indexed yet and not shown" in listed.stderr
        assert listed.returncode == (1 if missed else 0), (room_size, listed.stderr)
        assert missed or lines(listed) == wants["list"], (room_size, listed.stderr)
        assert set(lines(listed)) <= set(wants["list"])
        (disk / "filling").unlink()
        assert lines(mnemon("list", "--data", data, "*")) == wants["list"]


@pytest.mark.parametrize("torn_size", [0, 100])
def test_records_that_are_not_indexed_are_spoken_of_and_come_back(mnemon, disk, warcs, tmp_path, torn_size):
    """The segments of a later moment than the index: what a crash of the machine may leave."""
    data = disk / "data"
    assert mnemon("import", "--data", str(data), *warcs[1:]).returncode == 0
    few = wants_of(mnemon, str(data))["list"]
    shutil.copytree(data, tmp_path / "behind")
    assert mnemon("import", "--data", str(data), warcs[0]).returncode == 0
    all_of_it = wants_of(mnemon, str(data))["list"]
    segment = pathlib.Path("volumes") / "0" / "00000001.warc.zst"
    whole = (data / segment).read_bytes()
    (tmp_path / "behind" / segment).write_bytes(whole + whole[1000 : 1000 + torn_size])
    outcomes = set()
    for room_size in ROOMS:
        here = renew(disk, tmp_path / "behind")
        fill(disk, room_size)
        before = segments(here)
        listed = mnemon("list", "--data", here, "*")
        is_read_only = READ_ONLY in listed.stderr
        assert listed.returncode == (1 if is_read_only else 0), (room_size, listed.stderr)
        outcomes.add(is_read_only)
        if is_read_only:
            assert re.search(r"; \d+ bytes at the end of its segments are not indexed yet and not shown", listed.stderr)
            assert lines(listed) == few
            verified = mnemon("store", "verify", "--data", here)
            assert verified.returncode == 0, (verified.stdout, verified.stderr)
            assert segments(here) == before
        else:
            assert lines(listed) == all_of_it, room_size
        (disk / "filling").unlink()
        again = mnemon("list", "--data", here, "*")
        assert lines(again) == all_of_it
        assert ("repaired the archive" in again.stderr) == is_read_only
        assert segments(here)[segment.name].startswith(whole)
    assert outcomes == {True, False}


def serve(mnemon, data):
    command = [mnemon("version").args[0], "serve", "--http", "0", "--data", data]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def read_served(process, told):
    try:
        line = process.stdout.readline()
        assert line.startswith("serving"), process.stderr.read()
        address = re.search(r"http://[^/\s]+", line).group()
        with urllib.request.urlopen(f"{address}/web/2014id_/{URL}", timeout=30) as answer:
            assert b"Internet Assigned Numbers Authority" in answer.read()
    finally:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert err.count(told) == 1


def test_serves_on_a_full_disk(mnemon, disk, archive):
    data = renew(disk, archive)
    process = serve(mnemon, data)  # the first time it makes its token
    assert process.stdout.readline().startswith("serving")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    drop_ballast(data)
    fill(disk, 0)
    read_served(serve(mnemon, data), READ_ONLY)


@pytest.fixture
def mounted(disk, tmp_path):
    """The same file system once more, to be read only."""
    place = tmp_path / "mounted"
    place.mkdir()
    subprocess.run(["mount", "--bind", str(disk), str(place)], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", str(place)], check=True)
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_reads_where_nothing_may_be_written(mnemon, disk, mounted, archive, warcs):
    wants = wants_of(mnemon, renew(disk, archive))
    data = str(mounted / "data")
    for result in (mnemon("list", "--data", data, "*"), mnemon("get", "--data", data, URL),
                   mnemon("export", "--data", data, "--output", "/dev/null"),
                   mnemon("store", "verify", "--data", data), mnemon("store", "stat", "--data", data)):  # fmt: skip
        assert result.returncode == 0, result.stderr
        assert result.stderr.count(NOT_WRITTEN) == 1
    assert wants_of(mnemon, data) == wants
    before = segments(data)
    new = str(pathlib.Path(warcs[0]).with_name(NEW))
    for arguments in (["import", new], ["rm", URL], ["store", "compact"], ["store", "reindex"]):
        refused = mnemon(*arguments, "--data", data)
        assert refused.returncode != 0 and "permission denied" in refused.stderr, arguments
    assert segments(data) == before
    (disk / "data" / "volumes" / "0" / "lock").unlink()
    assert wants_of(mnemon, data) == wants


def test_who_may_not_write_keeps_out_who_may(mnemon, disk, mounted, archive):
    """The same archive by two mounts: what is being read is not compacted beneath the reader, nor the other way round."""
    lock = pathlib.Path(renew(disk, archive)) / "volumes" / "0" / "lock"
    with open(lock, "rb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        refused = mnemon("list", "--data", str(mounted / "data"), "*")
        assert refused.returncode != 0 and "another process" in refused.stderr
    with open(lock, "rb") as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)
        assert mnemon("list", "--data", str(mounted / "data"), "*").returncode == 0
        assert "another process" in mnemon("store", "compact", "--data", str(disk / "data")).stderr


def test_serves_where_nothing_may_be_written(mnemon, disk, mounted, archive):
    process = serve(mnemon, renew(disk, archive))  # the first time it makes its token
    assert process.stdout.readline().startswith("serving")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    read_served(serve(mnemon, str(mounted / "data")), NOT_WRITTEN)


def test_an_index_is_not_thrown_away_without_room_for_a_new_one(mnemon, disk, archive):
    data = renew(disk, archive)
    wants = wants_of(mnemon, data)
    drop_ballast(data)
    fill(disk, 0)
    assert mnemon("store", "reindex", "--data", data).returncode != 0
    assert lines(mnemon("list", "--data", data, "*")) == wants["list"]


def test_the_ballast_is_given_up_for_a_repair_and_comes_back(mnemon, disk, warcs, tmp_path):
    data = disk / "data"
    assert mnemon("import", "--data", str(data), *warcs[1:]).returncode == 0
    shutil.copytree(data, tmp_path / "behind")
    assert mnemon("import", "--data", str(data), warcs[0]).returncode == 0
    all_of_it = wants_of(mnemon, str(data))["list"]
    shutil.copytree(data / "volumes", tmp_path / "behind" / "volumes", dirs_exist_ok=True)
    for room_size in ROOMS:
        here = renew(disk, tmp_path / "behind", keeps_ballast=True)
        ballast = pathlib.Path(here) / "index" / "0" / "ballast"
        assert ballast.stat().st_blocks * 512 >= 8 << 20
        fill(disk, room_size)
        listed = mnemon("list", "--data", here, "*")
        assert listed.returncode == 0 and "repaired the archive" in listed.stderr, (room_size, listed.stderr)
        assert READ_ONLY not in listed.stderr
        assert lines(listed) == all_of_it
        (disk / "filling").unlink()
        assert lines(mnemon("list", "--data", here, "*")) == all_of_it
        assert ballast.stat().st_blocks * 512 >= 8 << 20
