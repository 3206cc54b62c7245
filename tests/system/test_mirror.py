"""Collections on real nodes: publishing, fetching, resuming, switching."""
import json
import os
import threading

import pytest

import mirrornodes
from mirrornodes import NAME, fill, tree
from ringnodes import wait_for


@pytest.fixture()
def replicas(mnemon, tmp_path):
    with mirrornodes.many(mnemon, tmp_path) as new:
        yield new


def chain(replicas, wish):
    for before, each in zip(replicas, replicas[1:]):
        each.do("subscribe", wish, "--from", before.node.place)


def test_a_collection_reaches_a_chain_of_nodes_and_only_changes_travel(replicas, tmp_path):
    nodes = replicas(3)
    source = tmp_path / "source"
    fill(source)
    chain(nodes, nodes[0].publish(source))
    for each in nodes[1:]:
        each.await_version(1)
        assert tree(each.current) == tree(source)
    before = [each.fetched() for each in nodes[1:]]

    large = (source / "large.bin").read_bytes()
    (source / "large.bin").write_bytes(large[:4_000_000] + b"!" + large[4_000_000:])  # one byte more
    (source / "empty").unlink()
    os.rename(source / "d5", source / "renamed")
    (source / "d2" / "run").chmod(0o700)
    os.utime(source / "d3" / "old", ns=(0, 1_000_000_000))
    nodes[0].publish(source)
    for each, fetched in zip(nodes[1:], before):
        each.await_version(2)
        assert tree(each.current) == tree(source)
        assert each.fetched() - fetched < 700_000  # some chunks of the large file, and the manifest
        kept = {p.name for p in (each.root / "trees").iterdir()}
        assert kept == {"1", "2"}
    one = (nodes[1].root / "trees" / "1" / "d1" / "e1" / "file 1.txt").stat()
    two = (nodes[1].root / "trees" / "2" / "d1" / "e1" / "file 1.txt").stat()
    assert one.st_ino == two.st_ino  # unchanged files are there once


def traffic(replica, direction):
    return json.loads(replica.node.get("/api/v1/ring"))["together"][direction + "_size"]


def await_part(replica, size):
    """It has got so much of a version, but not all."""
    pack = replica.root / "staging" / "pack"
    wait_for(lambda: pack.exists() and pack.stat().st_size > size, lambda: replica.node.said)
    assert replica.number() == 0


def test_a_killed_receiver_goes_on_where_it_was(replicas, tmp_path):
    origin, receiver = replicas(2, uploads=["3 MB"])
    source = tmp_path / "source"
    fill(source, large=6_000_000)
    wish = origin.publish(source)
    start = traffic(origin, "sent")
    receiver.do("subscribe", wish, "--from", origin.node.place)
    await_part(receiver, 2_000_000)
    receiver.node.kill()
    receiver.start()
    receiver.await_version(1)
    assert tree(receiver.current) == tree(source)
    # Two answers of 1 MiB may be under way, and the rest of what the origin had already queued.
    assert traffic(origin, "sent") - start < 6_000_000 + 3_500_000


def test_a_killed_source_is_gone_on_with_and_another_takes_over(replicas, tmp_path):
    origin, middle, receiver = replicas(3, uploads=["3 MB", "2 MB"])
    source = tmp_path / "source"
    fill(source, large=6_000_000)
    wish = origin.publish(source)
    middle.do("subscribe", wish, "--from", origin.node.place)
    middle.await_version(1)
    start = traffic(receiver, "received")
    receiver.do("subscribe", wish, "--from", origin.node.place, "--from", middle.node.place)
    await_part(receiver, 2_000_000)
    origin.node.kill()
    receiver.await_version(1)
    assert tree(receiver.current) == tree(source)
    assert traffic(receiver, "received") - start < 6_000_000 + 3_500_000

    origin.start()
    (source / "new").write_text("after the crash")
    origin.publish(source)
    receiver.await_version(2)
    assert tree(receiver.current) == tree(source)


def test_what_has_come_is_handed_on_before_all_has(replicas, tmp_path):
    nodes = replicas(3, uploads=["2 MB"])
    source = tmp_path / "source"
    fill(source, large=5_000_000)
    chain(nodes, nodes[0].publish(source))
    await_part(nodes[2], 1_000_000)
    assert nodes[1].number() == 0
    nodes[2].await_version(1)
    assert tree(nodes[2].current) == tree(source)
    assert nodes[2].state()["sources"][0]["fetched_size"] > 4_500_000


def test_readers_see_one_version_or_the_other(replicas, tmp_path):
    origin, receiver = replicas(2)
    source = tmp_path / "source"
    source.mkdir()
    count = 40

    def write(mark):
        for i in range(count):
            (source / f"{i}").write_text(mark)

    write("0")
    wish = origin.publish(source)
    receiver.do("subscribe", wish, "--from", origin.node.place)
    receiver.await_version(1)
    seen, faults, is_over = set(), [], threading.Event()

    def read():
        while not is_over.is_set():
            directory = os.open(receiver.current, os.O_RDONLY | os.O_DIRECTORY)
            marks = set()
            for i in range(count):
                with open(os.open(f"{i}", os.O_RDONLY, dir_fd=directory)) as file:
                    marks.add(file.read())
            os.close(directory)
            seen.update(marks)
            if len(marks) != 1:
                faults.append(marks)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for version in range(2, 5):
            write(str(version))
            origin.publish(source)
            receiver.await_version(version)
    finally:
        is_over.set()
        reader.join()
    assert not faults
    assert len(seen) > 1


def test_a_source_whose_files_were_tampered_with_gives_none_of_them(replicas, tmp_path):
    nodes = replicas(3)
    source = tmp_path / "source"
    fill(source, large=500_000)
    wish = nodes[0].publish(source)
    nodes[1].do("subscribe", wish, "--from", nodes[0].node.place)
    nodes[1].await_version(1)
    victim = nodes[1].current / "large.bin"
    at = victim.stat()
    contents = bytearray(victim.read_bytes())
    contents[250_000] ^= 1
    victim.write_bytes(contents)
    os.utime(victim, ns=(at.st_atime_ns, at.st_mtime_ns))
    nodes[2].do("subscribe", wish, "--from", nodes[1].node.place, "--from", nodes[0].node.place)
    nodes[2].await_version(1)
    assert tree(nodes[2].current) == tree(source)


def test_a_file_that_changed_after_publishing_is_not_given(replicas, tmp_path):
    origin, receiver = replicas(2)
    source = tmp_path / "source"
    fill(source, large=500_000)
    wish = origin.publish(source)
    (source / "large.bin").write_bytes(b"something else")
    receiver.do("subscribe", wish, "--from", origin.node.place)
    wait_for(lambda: receiver.state().get("newest"), lambda: receiver.node.said)
    origin.publish(source)
    receiver.await_version(2)
    assert tree(receiver.current) == tree(source)


def test_a_damaged_copy_is_mended_by_the_next_version(replicas, tmp_path):
    origin, receiver = replicas(2)
    source = tmp_path / "source"
    fill(source, large=500_000, small=20)
    wish = origin.publish(source)
    receiver.do("subscribe", wish, "--from", origin.node.place)
    receiver.await_version(1)
    (receiver.current / "large.bin").unlink()
    (receiver.current / "d2" / "run").write_text("#!/bin/sh\nevil\n")
    (source / "new").write_text("new")
    origin.publish(source)
    receiver.await_version(2)
    assert tree(receiver.current) == tree(source)


def test_only_what_has_changed_is_read_when_publishing(mnemon, tmp_path):
    source = tmp_path / "source"
    fill(source, large=300_000, small=20)
    for path in source.rglob("*"):
        if not path.is_symlink() and path.is_file():
            os.utime(path, (0, 0))
    data = tmp_path / "data"

    def publish():
        done = mnemon("mirror", "publish", NAME, source, "--data", data)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "now version 1" in publish()
    assert "as before" in publish()
    os.mkfifo(source / "pipe")
    (source / "out").symlink_to("/etc/passwd")
    (source / "up").symlink_to("../other")
    done = mnemon("mirror", "publish", NAME, source, "--data", data)
    assert done.returncode == 0
    assert "as before" in done.stdout
    assert all(f"{name}: " in done.stderr for name in ("pipe", "out", "up"))
