"""Who on the machine can read an archive, what root gives up, and what a power failure leaves of a first start."""
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess

import pytest


def start(mnemon, *arguments, prefix=()):
    command = [*prefix, mnemon("version").args[0], "serve", "--http", "0", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    assert line.startswith("serving"), process.stderr.read()
    return process


def stop(process):
    process.send_signal(signal.SIGTERM)
    return process.communicate(timeout=120)[1]


def test_a_new_archive_is_its_owners_alone(mnemon, tmp_path):
    old = os.umask(0o022)
    try:
        data = tmp_path / "data"
        assert mnemon("store", "put", "--data", str(data), "-", stdin="hello").returncode == 0
        assert stat.S_IMODE(data.stat().st_mode) == 0o700
        for path in data.rglob("*"):
            assert not path.is_dir() or stat.S_IMODE(path.stat().st_mode) == 0o700, path
    finally:
        os.umask(old)


def test_a_directory_that_was_there_keeps_its_mode_and_is_spoken_of(mnemon, tmp_path):
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    os.chmod(data, 0o755)
    (data / "mnemon.conf").write_text("[http]\nreads = token\n")
    err = stop(start(mnemon, "--data", data))
    assert f"{data} can be entered by all users of this machine, although reading needs a token" in err
    assert stat.S_IMODE(data.stat().st_mode) == 0o755
    os.chmod(data, 0o700)
    assert "can be entered" not in stop(start(mnemon, "--data", data))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_root_is_told_and_gives_itself_up(mnemon, tmp_path):
    nobody = pwd.getpwnam("nobody")
    os.chmod(tmp_path, 0o755)
    for parent in tmp_path.parents:
        if parent.stat().st_uid == 0 and not parent.stat().st_mode & stat.S_IXOTH:
            os.chmod(parent, parent.stat().st_mode | stat.S_IXOTH)
    assert "running as root" in stop(start(mnemon, "--data", tmp_path / "roots"))
    data = tmp_path / "data"
    process = start(mnemon, "--data", data, "--user", "nobody")
    status = open(f"/proc/{process.pid}/status").read()
    assert "running as root" not in stop(process)
    assert re.search(r"^Uid:\s+(\d+)\s+\1\s+\1\s+\1$", status, re.MULTILINE)[1] == str(nobody.pw_uid)
    assert re.search(r"^Groups:\s*(.*)$", status, re.MULTILINE)[1].split() == [str(nobody.pw_gid)]
    assert data.stat().st_uid == nobody.pw_uid and (data / "token").stat().st_uid == nobody.pw_uid
    refused = mnemon("serve", "--data", str(data), "--user", "no-such-user")
    assert refused.returncode == 1 and 'there is no user "no-such-user"' in refused.stderr


def test_a_token_comes_from_a_file_or_the_input(mnemon, tmp_path):
    data, file = str(tmp_path / "data"), tmp_path / "token"
    file.write_text("not a token\n")
    for arguments, stdin in ((("--token-file", str(file)), ""), (("--token-file", "-"), "not a token\n")):
        done = mnemon("group", "join", "--data", data, "g@127.0.0.2:1", *arguments, stdin=stdin)
        assert done.returncode == 2 and "--token: this is not a valid token" in done.stderr
    file.write_text("")
    done = mnemon("group", "join", "--data", data, "g@127.0.0.2:1", "--token-file", str(file))
    assert done.returncode == 1 and "its first line is empty" in done.stderr
    done = mnemon("serve", "--data", data, "--token-file", str(tmp_path / "none"))
    assert done.returncode == 1 and "No such file" in done.stderr


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_names_of_a_first_start_are_synced(mnemon, tmp_path, monkeypatch):
    """After every rename() of a new file and every mkdir() its directory is synced, before anybody is answered."""
    # A program that is traced cannot look for its leaks.
    monkeypatch.setenv("ASAN_OPTIONS", os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
    trace = tmp_path / "trace"
    data = tmp_path / "data"
    prefix = ("strace", "-D", "-f", "-y", "-o", str(trace), "-e", "trace=rename,renameat,renameat2,mkdir,mkdirat,fsync,fdatasync")
    stop(start(mnemon, "--data", data, prefix=prefix))
    owed = set()
    begun = {}  # by thread: a call that another thread's call cut in two
    for line in trace.read_text().splitlines():
        thread, _, call = line.partition(" ")
        if call.endswith(" <unfinished ...>"):
            begun[thread] = call.removesuffix(" <unfinished ...>")
            continue
        line = re.sub(r"^\s*<\.\.\. \w+ resumed>", lambda _: begun.pop(thread, ""), call)
        if made := re.search(r'mkdir(?:at)?\((?:AT_FDCWD<[^>]*>, )?"([^"]+)".*= 0', line):
            owed.add(os.path.dirname(os.path.abspath(made[1])))
        if moved := re.search(r'rename\("[^"]+", "([^"]+)"\) *= 0', line):
            owed.add(os.path.dirname(os.path.abspath(moved[1])))
        if synced := re.search(r"f(?:data)?sync\(\d+<([^>]+)>\) *= 0", line):
            owed.discard(synced[1])
    ours = {path for path in owed if path.startswith(str(tmp_path)) and "/index" not in path}  # RocksDB syncs its own
    assert not ours
    assert (data / "token").exists()
