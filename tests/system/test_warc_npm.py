"""npm's warcio, the reader of replayweb.page, reads everything that mnemon writes."""
import gzip
import json
import os
import pathlib
import shutil
import subprocess

import pytest

TYPES = {"warcinfo": 1, "response": 10, "request": 9, "revisit": 10, "resource": 1, "conversion": 1, "metadata": 1}


@pytest.fixture(scope="module")
def build():
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    return pathlib.Path(os.environ.get("MNEMON", root / "build" / "mnemon")).parent


@pytest.fixture(scope="module")
def warcio(build):
    """The directory with warcio in it, installed once per build directory."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node or npm is not installed")
    directory = build / "npm"
    directory.mkdir(exist_ok=True)
    source = pathlib.Path(__file__).parent / "npm"
    for name in ("package.json", "warcio-check.js"):
        shutil.copy(source / name, directory)
    version = json.loads((source / "package.json").read_text())["dependencies"]["warcio"]
    installed = directory / "node_modules" / "warcio" / "package.json"
    if not installed.exists() or json.loads(installed.read_text())["version"] != version:
        result = subprocess.run(
            ["npm", "install", "--prefix", directory, "--no-audit", "--no-fund", "--loglevel=error"],
            capture_output=True, text=True, timeout=300,
        )
        if result.returncode != 0:
            pytest.skip(f"npm could not install warcio {version}: {result.stderr.strip().splitlines()[-1:]}")
    return directory


def write(build, framing, path):
    with open(path, "wb") as file:
        subprocess.run([build / "tests" / "system" / "warcwrite", framing], stdout=file, check=True, timeout=60)


def read(warcio, path):
    result = subprocess.run(
        ["node", warcio / "warcio-check.js", path], cwd=warcio, capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


# Not zstd: warcio 2.4 takes it for an uncompressed file.
@pytest.mark.parametrize("framing", ["plain", "gzip"])
def test_warcio_reads_what_we_write(build, warcio, tmp_path, framing):
    path = tmp_path / "test.warc"
    write(build, framing, path)
    report = read(warcio, path)
    assert report["errors"] == []
    assert report["types"] == TYPES
    assert report["digests"] == sum(TYPES.values()) + TYPES["response"] + TYPES["resource"] + TYPES["conversion"]


def test_warcio_check_notices_a_changed_byte(build, warcio, tmp_path):
    path = tmp_path / "test.warc"
    write(build, "plain", path)
    data = bytearray(path.read_bytes())
    data[data.index(b"<p>hello</p>")] ^= 1
    path.write_bytes(data)
    assert len(read(warcio, path)["errors"]) == 2  # block and payload


def test_gzip_and_zstd_read_what_we_write(build, tmp_path):
    """The usual tools undo the compression to the very same bytes."""
    for framing in ("plain", "gzip", "zstd"):
        write(build, framing, tmp_path / framing)
    plain = (tmp_path / "plain").read_bytes()
    assert gzip.decompress((tmp_path / "gzip").read_bytes()) == plain
    if shutil.which("zstd") is None:
        pytest.skip("zstd is not installed")
    result = subprocess.run(["zstd", "-dc"], stdin=open(tmp_path / "zstd", "rb"), capture_output=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert result.stdout == plain
