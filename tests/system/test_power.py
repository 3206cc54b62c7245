"""Power failures: a sample of what `make test-power` does at length (powerrun.py), and the model of the disk itself."""
import random
import shutil

import pytest

import powercut
import powerrun

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")

WRITER = """
import os, sys
root, promises, *calls = sys.argv[1:]
os.mkdir(root)
def sync(path):
    fd = os.open(os.path.join(root, path), os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
with open(root + "/old", "wb") as file:
    file.write(b"a" * 10000)
sync("old")
sync(".")
with open(root + "/new", "wb") as file:
    file.write(b"b" * 10000)
for call in calls:
    sync(call[5:]) if call.startswith("sync ") else os.rename(root + "/new", root + "/old")
os.write(1, b"it is replaced")
os.close(os.open(root + "/later", os.O_WRONLY | os.O_CREAT))
os.write(os.open(promises, os.O_WRONLY | os.O_CREAT), b"written\\n")
"""


def found_after(tmp_path, *calls):
    """What "old" may be after the writer has promised that it is replaced, and what it may be before."""
    script, trace, root, promises = (tmp_path / name for name in ("writer.py", "trace", "root", "promises"))
    shutil.rmtree(root, ignore_errors=True)
    script.write_text(WRITER)
    powercut.record(script, trace, root, promises, *calls)
    story = powercut.Story(trace, root, promises)
    steps, _ = story.measure()
    found = {True: set(), False: set()}
    for point, disk, promised in story.play(range(steps + 1)):
        for seed in range(40):
            state = tmp_path / "state"
            shutil.rmtree(state, ignore_errors=True)
            disk.save(state, seed)
            old = (state / "old").read_bytes() if (state / "old").exists() else None
            what = {b"a" * 10000: "old", b"b" * 10000: "new", None: "none"}.get(old, "torn")
            found[bool(promised)].add(what)
    return found


def test_the_model_loses_what_is_not_synced_and_nothing_else(tmp_path):
    careful = found_after(tmp_path, "sync new", "rename", "sync .")
    assert careful[True] == {"new"} and careful[False] >= {"none", "torn", "old", "new"}
    assert "old" in found_after(tmp_path, "sync new", "rename")[True], "the name is not durable"
    assert "torn" in found_after(tmp_path, "rename", "sync .")[True], "the data is not"


KILLED = """
import os, subprocess, sys
root, promises, program = sys.argv[1:]
for name in ("", "/data", "/data/jobs"):
    os.mkdir(root + name)  # by somebody who was killed before it was synced
subprocess.run([program, "job", "add", "http://127.0.0.1:9/", "--data", root + "/data"], check=True, capture_output=True)
os.write(os.open(promises, os.O_WRONLY | os.O_CREAT), b"added\\n")
"""


def test_what_lies_in_a_directory_of_a_killed_process_is_durable(tmp_path, mnemon):
    script, trace, root, promises = (tmp_path / name for name in ("killed.py", "trace", "root", "promises"))
    script.write_text(KILLED)
    powercut.record(script, trace, root, promises, mnemon("version").args[0])
    story = powercut.Story(trace, root, promises)
    steps, _ = story.measure()
    for _, disk, promised in story.play([steps]):
        assert promised
        for seed in range(20):
            disk.save(tmp_path / f"state-{seed}", seed)
            assert len(list((tmp_path / f"state-{seed}").glob("data/jobs/*/job.conf"))) == 1


def contents(root):
    """Memory that processes share (-shm) is nobody's content."""
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else b""
            for path in root.rglob("*") if not path.name.endswith("-shm")}


def test_what_an_operator_was_told_outlives_a_power_failure(tmp_path):
    """Jobs, charter, decrees, groups, collections, token, key: see powerstories.Desk."""
    recording = powerrun.Recording("desk", tmp_path)
    for _, disk, promises in recording.story.play([recording.steps_count]):
        wreck = powercut.Wreck(disk, random.Random(0))
        wreck.keep_all()
        assert contents(wreck.save(disk.top, tmp_path / "whole")) == contents(recording.root), "the model missed a call"
        assert len(promises) == len((tmp_path / "promises").read_text().splitlines())
    wrong = recording.run(recording.choose(12, seed=1))
    assert not wrong, "\n".join(wrong)
