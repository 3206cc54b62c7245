"""What every system test needs: the program, and the root of the tree."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def mnemon():
    """Run the program: mnemon("url", "http://…") gives exit status, stdout and stderr."""
    program = os.environ.get("MNEMON", str(ROOT / "build" / "mnemon"))

    def run(*arguments, stdin="", **options):
        return subprocess.run(
            [program, *arguments], input=stdin, capture_output=True, text=True, timeout=150, **options
        )

    return run


# ---- make test-asan: the program has sanitizers ----

SANITIZER_STATUS = 99  # that of no command; tools/test tells the sanitizers


class Watched(subprocess.Popen):
    """Every process that a test starts is remembered, since most tests look at few of them."""

    started = []

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        Watched.started.append(self)


def fail_on_reports():
    ended = [process for process in Watched.started if process.returncode is not None]
    Watched.started = [process for process in Watched.started if process.returncode is None]
    reports = []
    for process in ended:
        if process.returncode == SANITIZER_STATUS:
            unread = process.stderr is not None and not process.stderr.closed
            reports.append(f"{process.args}\n{process.stderr.read() if unread else 'its report is where it was sent'}")
    assert not reports, "\n".join(["ended by a sanitizer:", *reports])


@pytest.fixture(scope="module", autouse=True)
def watched_processes():
    """A process that a sanitizer ended fails the test, or the file if it ends with that."""
    if "MNEMON_SANITIZED" not in os.environ:
        yield
        return
    usual, subprocess.Popen = subprocess.Popen, Watched
    try:
        yield
        fail_on_reports()
    finally:
        subprocess.Popen = usual


@pytest.fixture(autouse=True)
def no_report(watched_processes):
    yield
    fail_on_reports()
