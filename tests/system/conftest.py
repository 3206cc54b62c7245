"""What every system test needs: the program, and the root of the tree."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def root():
    return ROOT


@pytest.fixture
def mnemon():
    """Run the program: mnemon("url", "http://…") gives exit status, stdout and stderr."""
    program = os.environ.get("MNEMON", str(ROOT / "build" / "mnemon"))

    def run(*arguments, stdin="", **options):
        return subprocess.run(
            [program, *arguments], input=stdin, capture_output=True, text=True, timeout=150, **options
        )

    return run
