"""What the program's own build defends, and what a running node may still do."""
import platform
import shutil
import subprocess

import pytest


def read_program(mnemon, *command):
    program = mnemon("version").args[0]
    return subprocess.run([*command, program], capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.fixture
def is_sanitized(mnemon):
    with open(mnemon("version").args[0], "rb") as program:
        return b"__sanitizer_" in program.read()


@pytest.mark.skipif(shutil.which("readelf") is None, reason="needs readelf")
def test_the_program_is_built_with_its_defences(mnemon, is_sanitized):
    text = read_program(mnemon, "readelf", "-hldW")
    lines = text.splitlines()
    assert any("Type:" in line and "DYN" in line for line in lines)  # lies anywhere in memory
    assert any("(FLAGS)" in line and "BIND_NOW" in line for line in lines)  # its tables are filled at the start …
    assert any(line.split()[:1] == ["GNU_RELRO"] for line in lines)  # … and then read-only
    stack = next(line for line in lines if line.split()[:1] == ["GNU_STACK"])
    assert stack.split()[-2] == "RW", stack
    for line in lines:
        words = line.split()
        assert words[:1] != ["LOAD"] or not ("W" in "".join(words[6:-1]) and "E" in "".join(words[6:-1])), line
    symbols = read_program(mnemon, "readelf", "-W", "--dyn-syms")
    assert is_sanitized or ("__stack_chk_fail" in symbols and "_chk@" in symbols)


@pytest.mark.skipif(shutil.which("objdump") is None or platform.machine() != "x86_64", reason="of x86-64")
def test_functions_begin_where_calls_may_land(mnemon, is_sanitized):
    if is_sanitized:
        pytest.skip("not built for it")
    text = read_program(mnemon, "objdump", "-d", "--no-show-raw-insn", "--disassemble=main")
    body = text[text.index("<main>:") :].splitlines()
    assert "endbr64" in body[1]
