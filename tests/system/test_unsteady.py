"""tools/test runs what failed once more: what passes then is named, what fails again or was no accident has failed."""
import importlib.machinery
import importlib.util
import shutil
import sys

import pytest

PROJECT = """
project('small')
foreach name : ['good', 'once', 'always', 'leak', 'race', 'dead']
  test(name, find_program('run'), args: [name, meson.project_build_root()], suite: 'unit', protocol: 'tap')
endforeach
test('good', find_program('run'), args: ['always', meson.project_build_root()], suite: 'other', protocol: 'tap')
"""
PROGRAM = """#!/bin/sh
mark=$2/$1.ran
case $1 in
once) [ -e "$mark" ] || {
    : >"$mark"
    printf '1..1\\nnot ok 1 - waits\\n# for the first time\\n'
    printf '==1==ERROR: LeakSanitizer: detected memory leaks\\nSUMMARY: AddressSanitizer: 8 byte(s) leaked\\n' >&2
    exit 1
} ;;
leak) [ -e "$mark" ] || { : >"$mark"; echo 1..1; echo "ok 1 - fine"; echo "LeakSanitizer" >&2; exit 23; } ;;
always) echo 1..1; echo "not ok 1 - never"; exit 1 ;;
race) [ -e "$mark" ] || { : >"$mark"; echo "WARNING: ThreadSanitizer: data race" >&2; exit 66; } ;;
dead) [ -e "$mark" ] || { : >"$mark"; kill -s SEGV $$; } ;;
esac
echo 1..1
echo "ok 1 - fine"
"""
TESTS = """
import pathlib
import pytest

MARK = pathlib.Path(__file__).with_suffix(".ran")

def test_good():
    pass

@pytest.mark.parametrize("words", ["a b", "c - d"])
def test_once(words):
    mark = MARK.with_suffix("." + words[0])
    if not mark.exists():
        mark.touch()
        assert words == "for the first time"
"""


@pytest.fixture
def runner(root, tmp_path):
    """tools/test as a module, for another tree."""
    loader = importlib.machinery.SourceFileLoader("runner", str(root / "tools" / "test"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("runner", loader))
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    loader.exec_module(module)
    sys.dont_write_bytecode = before
    module.ROOT = tmp_path
    return module


def test_meson_tests_are_run_again(runner, tmp_path, capsys):
    if not shutil.which("meson"):
        pytest.skip("no meson")
    (tmp_path / "meson.build").write_text(PROJECT)
    (tmp_path / "run").write_text(PROGRAM)
    (tmp_path / "run").chmod(0o755)
    assert runner.run("meson", "setup", "build").returncode == 0
    total = runner.Tally()
    runner.meson_tests(total, "build", "unit")
    assert str(total) == "1 passed, 3 failed, 2 to run again"
    assert sorted(report.split()[3] for report in total.reports) == ["dead", "leak", "race"]
    runner.run_again(total)
    assert str(total) == "2 passed, 4 failed, 1 unsteady"
    said = capsys.readouterr().out
    assert "unsteady: build: small:unit / once\n" in said and "# for the first time" in said
    assert "--- small:unit / always" in said


def test_system_tests_are_run_again(runner, tmp_path, capsys):
    file = tmp_path / "test_some.py"
    file.write_text(TESTS + "\ndef test_always():\n    assert False\n")
    total = runner.Tally()
    runner.count_pytest(total, sys.executable, file, *runner.run_pytest(sys.executable, file)[:2])
    assert (total.passed, total.failed, len(total.doubts)) == (1, 0, 1)
    runner.run_again(total)
    assert (total.passed, total.failed, total.unsteady) == (3, 1, 0)  # one of the file failed again
    file.write_text(TESTS)
    for mark in tmp_path.glob("test_some.?"):
        mark.unlink()
    total = runner.Tally()
    runner.count_pytest(total, sys.executable, file, *runner.run_pytest(sys.executable, file)[:2])
    runner.run_again(total)
    assert str(total) == "3 passed, 0 failed, 1 unsteady"
    said = capsys.readouterr().out
    assert "unsteady: test_some.py: test_once[a b], test_once[c - d]\n" in said and "for the first time" in said


def test_what_the_program_asserts_is_no_accident(runner, tmp_path):
    file = tmp_path / "test_some.py"
    file.write_text('def test_dies():\n    raise OSError("ring.c:12: assertion failed: count > 0")\n')
    total = runner.Tally()
    runner.count_pytest(total, sys.executable, file, *runner.run_pytest(sys.executable, file)[:2])
    assert str(total) == "0 passed, 1 failed"


def test_many_failures_are_no_accident(runner):
    total = runner.Tally()
    ran = []
    total.doubts = [runner.Doubt(f"test {i}", "text", ran.append) for i in range(runner.DOUBTS_MAX + 1)]
    runner.run_again(total)
    assert total.failed == runner.DOUBTS_MAX + 1 and not ran
