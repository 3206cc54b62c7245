"""libmnemon: the program of docs/library.md, built with an installed library."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """`make install` into a directory of its own: its root, and the environment that finds it."""
    program = pathlib.Path(os.environ.get("MNEMON", "build/mnemon")).resolve()
    build = program.parent
    if not (build / "build.ninja").exists():
        pytest.skip(f"{build} is no build directory")
    root = tmp_path_factory.mktemp("installed")
    command = ["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", root]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result
    configuration = next(root.rglob("mnemon.pc"))
    environment = dict(
        os.environ,
        PKG_CONFIG_PATH=str(configuration.parent),
        PKG_CONFIG_SYSROOT_DIR=str(root),
        LD_LIBRARY_PATH=str(configuration.parent.parent),
    )
    return root, environment


@pytest.fixture
def hello(root, tmp_path):
    """The example as the document has it."""
    source = re.search(r"```c\n(.*?)```", (root / "docs" / "library.md").read_text(), re.DOTALL).group(1)
    path = tmp_path / "hello.c"
    path.write_text(source)
    return path


def pkg_config(environment, *words):
    command = ["pkg-config", *words, "mnemon"]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert result.returncode == 0, result
    return result.stdout.split()


# A library with sanitizers wants their runtime in the program.
IS_SANITIZED = "MNEMON_SANITIZED" in os.environ
RUNTIME = ["-fsanitize=address,undefined,fuzzer-no-link"] if IS_SANITIZED else []
C = ["clang" if IS_SANITIZED else "cc", *RUNTIME]
CPP = ["clang++" if IS_SANITIZED else "c++", *RUNTIME]


def compile_program(source, environment, *words):
    output = source.with_suffix("")
    command = [*C, "-std=c11", "-Wall", "-Wextra", "-Werror", "-o", output, source, *words]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert result.returncode == 0, result.stderr
    return output


def run(program, *arguments, environment):
    return subprocess.run([program, *arguments], capture_output=True, text=True, env=environment, timeout=60)


def expect_hello(program, environment, place):
    first = run(program, place, environment=environment)
    assert first.returncode == 0, first
    key = first.stdout.split()[0]
    capture = "https://example.org/hello text/plain, 15 bytes"
    assert first.stdout == f"{key} is new\nHello, archive\n{capture}\n"
    again = run(program, place, environment=environment)
    assert again.stdout == f"{key} is known\nHello, archive\n{capture}\n{capture}\n"
    return key


def test_the_example_of_the_document_runs(installed, hello, mnemon, tmp_path):
    _, environment = installed
    program = compile_program(hello, environment, *pkg_config(environment, "--cflags", "--libs"))
    needed = subprocess.run(["ldd", program], capture_output=True, text=True, env=environment).stdout
    assert "libmnemon.so.0 =>" in needed
    key = expect_hello(program, environment, tmp_path / "archive")
    assert mnemon("store", "get", key, "--data", str(tmp_path / "archive")).stdout == "Hello, archive\n"


def test_the_example_runs_with_the_static_library(installed, hello, tmp_path):
    root, environment = installed
    archive = next(root.rglob("libmnemon.a"))
    needs = pkg_config(environment, "--print-requires-private")
    libraries = subprocess.run(["pkg-config", "--libs", *needs], capture_output=True, text=True, check=True)
    flags = pkg_config(environment, "--cflags")
    words = [str(archive), *libraries.stdout.split(), "-lunistring", "-pthread"]
    program = compile_program(hello, environment, *flags, *words)
    needed = subprocess.run(["ldd", program], capture_output=True, text=True, env=environment).stdout
    assert "libmnemon" not in needed
    expect_hello(program, environment, tmp_path / "archive")


def test_a_connector_file_is_a_place_too(installed, hello, mnemon, tmp_path):
    _, environment = installed
    program = compile_program(hello, environment, *pkg_config(environment, "--cflags", "--libs"))
    connector = tmp_path / "connector"
    connector.write_text("[volume-4]\npath = four\n[volume-5]\npath = five\n")
    key = expect_hello(program, environment, connector)
    assert key[:2] in ("4:", "5:")
    stat = json.loads(mnemon("store", "stat", "--json", "--data", str(tmp_path)).stdout)
    assert stat["documents"] == 1 and stat["captures"] == 2
    connector.write_text(connector.read_text() + "[volume-6]\npath = /nonexistent/six\n")
    assert run(program, connector, environment=environment).stdout.endswith("\nwithout volume 6\n")


def test_failures_are_told_in_words(installed, hello, tmp_path):
    _, environment = installed
    program = compile_program(hello, environment, *pkg_config(environment, "--cflags", "--libs"))
    connector = tmp_path / "connector"
    connector.write_text("[volume-4]\npaht = four\n")
    wrong = run(program, connector, environment=environment)
    assert wrong.returncode == 1
    assert 'line 2, column 1: unknown key "paht"' in wrong.stderr


def test_only_the_names_of_the_header_are_visible(installed, root):
    tree, _ = installed
    header = (root / "include" / "mnemon.h").read_text()
    declared = set(re.findall(r"\b(mnemon_\w+)\(", header))
    for library, option in (("libmnemon.so", "-D"), ("libmnemon.a", "-g")):
        path = next(tree.rglob(library))
        command = ["nm", option, "--defined-only", "--format=posix", path]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        symbols = {line.split("@")[0].split()[0] for line in lines if len(line.split()) > 1 and " A " not in line}
        if not any(name.startswith("__asan") for name in symbols):  # sanitizers add names of their own
            assert symbols == declared


@pytest.mark.skipif(shutil.which(CPP[0]) is None, reason="there is no C++ compiler")
def test_the_header_is_cpp_too(installed, tmp_path):
    _, environment = installed
    source = tmp_path / "plain.cpp"
    source.write_text('#include <mnemon.h>\nint main() { return mnemon_version()[0] == 0; }\n')
    output = tmp_path / "plain"
    command = [*CPP, "-Wall", "-Werror", "-o", output, source, *pkg_config(environment, "--cflags", "--libs")]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert result.returncode == 0, result.stderr
    assert run(output, environment=environment).returncode == 0
