"""Collections at certain hours, and not faster than their owner wants."""
import time

import pytest

import mirrornodes
from mirrornodes import fill, tree
from ringnodes import wait_for

MB = 1_000_000
RATE = 400_000


@pytest.fixture()
def pair(mnemon, tmp_path, monkeypatch):
    """A publisher whose collection anybody may read, and a subscriber; their clocks are five and a half hours ahead."""
    monkeypatch.setenv("TZ", "XYZ-5:30")
    time.tzset()
    with mirrornodes.neighbours(mnemon, tmp_path) as new:
        yield new(2)
    monkeypatch.undo()
    time.tzset()


def begin(pair, source, subscriber_settings="", publisher_settings=""):
    origin, receiver = pair
    origin.settings = publisher_settings
    receiver.settings = subscriber_settings
    wish = origin.publish(source, "--public")
    origin.start()
    receiver.do("subscribe", wish, "--from", origin.node.place)
    receiver.started_at = time.monotonic()
    receiver.start()
    return origin, receiver


def clock(minutes_from_now):
    now = time.localtime()
    minute = (now.tm_hour * 60 + now.tm_min + minutes_from_now) % 1440
    return f"{minute // 60:02}:{minute % 60:02}"


def test_nothing_comes_while_the_window_is_closed_and_status_says_so(pair, tmp_path):
    source = tmp_path / "source"
    fill(source, large=300_000, small=10)
    until = clock(120)
    windows = f"[mirror]\nlimit = 5 MB\nwindow = {clock(-60)}-{until} no\nwindow = {clock(-120)}-{until} unlimited\n"
    origin, receiver = begin(pair, source, windows)
    wait_for(lambda: receiver.state().get("target"), lambda: receiver.node.said)
    told = receiver.do("status")
    assert f"waits     until {until}" in told and f"fetches nothing until {until}" in told
    asked = [receiver.fetched() for _ in range(10)]
    assert set(asked) == {0} and origin.state()["given_size"] == 0
    assert "gives" not in told  # there is no limit for that
    assert f"<td>waits until {until}" in receiver.node.get("/dashboard")

    receiver.node.kill()
    receiver.settings = windows.replace(" no", " 20 MB")
    receiver.start()
    receiver.await_version(1)
    assert tree(receiver.current) == tree(source)
    assert f"fetches at most 20.0 MB/s until {until}" in receiver.do("status")


def check_rate(receiver, size):
    """Two seconds' worth may come at once, and a batch may be larger than what is left; a busy machine only makes it slower."""
    took_s = time.monotonic() - receiver.started_at
    assert size <= RATE * (took_s + 2) + MB / 2, (size, took_s)


def test_the_limit_of_fetching_holds(pair, tmp_path):
    source = tmp_path / "source"
    fill(source, large=3 * MB, small=10)
    _, receiver = begin(pair, source, "[mirror]\nlimit = 400 KB\n")
    receiver.await_version(1)
    check_rate(receiver, receiver.fetched())
    assert tree(receiver.current) == tree(source)
    assert "fetches at most 400 KB/s\n" in receiver.do("status")


def test_the_limit_of_giving_holds(pair, tmp_path):
    source = tmp_path / "source"
    fill(source, large=4 * MB, small=10)
    origin, receiver = begin(pair, source, publisher_settings="[mirror]\nupload_limit = 400 KB\n")
    receiver.await_version(1)
    check_rate(receiver, 4 * MB - (1 << 20))  # an answer may be larger than what is left
    assert "gives at most 400 KB/s\n" in origin.do("status")
    assert tree(receiver.current) == tree(source)


@pytest.mark.parametrize(("line", "sentence"), [
    ("limit = fast", "not a number with a unit"),
    ("limit = 10 bytes", "less than 1 KiB"),
    ("window = 22:00", "is no window"),
    ("window = 25:00-06:00 1 MB", "is no window"),
    ("window = 22:00-22:00 1 MB", "no length"),
    ("upload_window = 22:00-06:00 much", "not a number with a unit"),
])
def test_mistakes_in_the_settings_are_told(mnemon, tmp_path, line, sentence):
    (tmp_path / "mnemon.conf").write_text(f"[mirror]\n{line}\n")
    done = mnemon("serve", "--data", tmp_path, "--http", "0")
    assert done.returncode != 0 and sentence in done.stderr, done.stderr
