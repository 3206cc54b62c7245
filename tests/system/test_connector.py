"""mnemon with a connector: several volumes as one archive, through the commands."""
import hashlib
import json
import os
import subprocess

import pytest

DATA = os.environ.get("MNEMON_TEST_DATA")


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """Two volumes on two "disks", one of them the volume that every archive has."""
    directory = tmp_path / "data"
    disk = tmp_path / "disk2"
    directory.mkdir()
    disk.mkdir()
    (directory / "connector").write_text(
        f'[volume-0]\npath = volumes/0\nindex = index/0\n\n[volume-3]\npath = "{disk}"\n'
    )
    monkeypatch.setenv("MNEMON_DATA", str(directory))
    return directory


@pytest.fixture
def disk(archive):
    return archive.parent / "disk2"


def key_of(content, volume):
    return f"{volume}:{hashlib.sha256(content.encode()).hexdigest()}"


def place_of(content):
    return (0, 3)[int.from_bytes(hashlib.sha256(content.encode()).digest()[:8], "big") % 2]


def put(mnemon, content, *options):
    result = mnemon("store", "put", "-", "--json", *options, stdin=content)
    assert result.returncode == 0, result
    return json.loads(result.stdout)


def stat(mnemon):
    return json.loads(mnemon("store", "stat", "--json").stdout)


def test_documents_go_where_their_signature_says_and_are_stored_once(archive, mnemon):
    texts = [f"text {i}" for i in range(8)]
    assert {place_of(text) for text in texts} == {0, 3}
    for text in texts:
        stored = put(mnemon, text)
        assert stored["key"] == key_of(text, place_of(text))
        assert mnemon("store", "get", stored["key"]).stdout == text
    for text in texts:
        assert put(mnemon, text, "--volume", "0")["key"] == key_of(text, place_of(text))
    report = stat(mnemon)
    assert report["documents"] == 8
    assert [volume["volume"] for volume in report["volumes"]] == [0, 3]
    assert sum(volume["documents"] for volume in report["volumes"]) == 8


def test_the_user_may_choose_the_volume(archive, mnemon):
    for volume in (0, 3):
        text = f"chosen {volume}"
        assert put(mnemon, text, "--volume", str(volume))["key"] == key_of(text, volume)
    missing = mnemon("store", "put", "-", "--volume", "1", stdin="nowhere")
    assert missing.returncode == 1
    assert "there is no volume 1" in missing.stderr


def test_stat_shows_each_volume(archive, disk, mnemon):
    put(mnemon, "one", "--volume", "3")
    text = mnemon("store", "stat").stdout
    assert f"volume 3     {disk}\n" in text
    assert f"volume 0     {archive}/volumes/0\n" in text


def test_a_disk_that_is_missing_takes_only_its_own_away(archive, disk, mnemon):
    here = put(mnemon, "here", "--volume", "0")["key"]
    away = put(mnemon, "away", "--volume", "3")["key"]
    mnemon("store", "put", "-", "--url", "http://example.org/away", "--volume", "3", stdin="page")
    disk.rename(disk.with_name("unplugged"))
    assert mnemon("store", "get", here).stdout == "here"
    gone = mnemon("store", "get", away)
    assert gone.returncode == 1
    assert f"volume 3 ({disk}) is down: there is no directory {disk}" in gone.stderr
    assert f"{away} cannot be read: volume 3 is down" in gone.stderr
    assert not disk.exists()
    listed = mnemon("list", "*")
    assert listed.returncode == 1 and listed.stdout == "" and "volume 3 did not answer" in listed.stderr
    assert put(mnemon, "for the missing", "--volume", "3")["key"] == key_of("for the missing", 0)
    assert stat(mnemon)["volumes"][1]["down"]
    assert mnemon("store", "verify").returncode == 1  # not all of it could be looked at
    disk.with_name("unplugged").rename(disk)
    assert mnemon("store", "get", away).stdout == "away"
    assert mnemon("store", "verify").returncode == 0


def test_maintenance_reaches_all_volumes(archive, disk, mnemon):
    keys = [
        put(mnemon, f"text {i} on {volume}" * 100, "--volume", str(volume))["key"]
        for i in range(4)
        for volume in (0, 3)
    ]
    assert mnemon("store", "rm", *keys[2:]).returncode == 0
    verified = json.loads(mnemon("store", "verify", "--json").stdout)
    assert verified["damaged"] == 0 and verified["records"] >= 14
    compacted = json.loads(mnemon("store", "compact", "--dead", "0", "--json").stdout)
    assert compacted["segments"] == 2 and compacted["dropped"] >= 6
    rebuilt = json.loads(mnemon("store", "reindex", "--json").stdout)
    assert rebuilt["records"] >= 2
    assert stat(mnemon)["documents"] == 2
    segment = next(disk.glob("*.warc.zst"))
    damaged = bytearray(segment.read_bytes())
    damaged[-10] ^= 0xFF
    segment.write_bytes(damaged)
    verified = mnemon("store", "verify")
    assert verified.returncode == 1
    assert f"3/{segment.name}, byte " in verified.stderr


@pytest.fixture
def warc(root):
    path = os.path.join(DATA or root.parent / "shared" / "data", "warc", "iana.warc.gz")
    if not os.path.exists(path):
        pytest.skip("no test data")
    return path


def test_what_is_imported_into_several_volumes_is_exported_as_from_one(archive, mnemon, warc, tmp_path, monkeypatch):
    def summary(*arguments):
        result = mnemon(*arguments)
        assert result.stdout, result
        return json.loads(result.stdout)

    several = summary("import", "-q", "--json", warc)
    listed = mnemon("list", "*").stdout.splitlines()
    again = summary("import", "-q", "--json", warc)
    assert again["captures"] == 0 and again["present"] == several["captures"]
    volumes = stat(mnemon)["volumes"]
    assert all(volume["documents"] > 10 for volume in volumes)
    exported = summary("export", "-q", "--json", "-o", str(tmp_path / "several.warc.gz"))

    monkeypatch.setenv("MNEMON_DATA", str(tmp_path / "single"))
    single = summary("import", "-q", "--json", warc)
    assert single == several
    assert [line.split("{")[0] for line in mnemon("list", "*").stdout.splitlines()] == [
        line.split("{")[0] for line in listed
    ]
    assert listed == sorted(listed, key=lambda line: line.split(" ")[:2])
    counts = summary("export", "-q", "--json", "-o", str(tmp_path / "single.warc.gz"))
    for name in ("captures", "revisits", "requests"):
        assert counts[name] == exported[name]
    names = {json.loads(line.split(" ", 2)[2])["filename"] for line in listed}
    assert {name.split("/")[0] for name in names} == {"0", "3"}


def test_a_mistake_in_the_connector_is_named_with_its_place(archive, mnemon):
    (archive / "connector").write_text("[volume-0]\npath = volumes/0\nindx = x\n")
    result = mnemon("store", "stat")
    assert result.returncode == 1
    assert f'{archive}/connector: line 3, column 1: unknown key "indx"' in result.stderr


def test_a_volume_that_the_connector_forgets_is_named(archive, mnemon):
    put(mnemon, "before", "--volume", "0")
    (archive / "connector").write_text("[volume-1]\npath = volumes/1\n")
    result = mnemon("store", "stat")
    assert result.returncode == 0
    assert f"{archive}/volumes/0 is not used: {archive}/connector does not list it" in result.stderr


def test_a_second_process_is_told_that_the_archive_is_in_use(archive, mnemon):
    put(mnemon, "first")
    program = mnemon("version").args[0]

    def hold():
        return subprocess.Popen(
            [program, "store", "put", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    holder = hold()
    try:
        second = mnemon("store", "stat")
        while second.returncode == 0:  # until the first one has opened it
            if holder.poll() is not None:  # it came while we were looking
                holder.communicate()
                holder = hold()
            second = mnemon("store", "stat")
        assert f"another process is using {archive}" in second.stderr
    finally:
        holder.communicate(b"done", timeout=60)
