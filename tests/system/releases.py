"""The program of the release before, for tests of nodes of both releases together."""
import functools
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MISSING = 3  # tools/previous: its history is not there


@functools.cache
def previous_program():
    """Where it is; it is built if need be. Without its history the test is skipped, with the reason."""
    made = subprocess.run([ROOT / "tools" / "previous"], capture_output=True, text=True)
    if made.returncode == MISSING:
        pytest.skip(made.stderr.strip())
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()
