"""mnemon export and import of WACZ files: read back by Python's zipfile, unzip and npm's wabac; written by npm's js-wacz."""
import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import time
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FILES = pathlib.Path(os.environ.get("MNEMON_TEST_DATA", ROOT.parent / "shared" / "data")) / "warc"
SAMPLES = ["iana.warc.gz", "example.warc.gz", "post-test.warc.gz", "20130729-heritrix-original.warc.gz",
           "20130729-heritrix-revisit-with-http-headers.warc.gz", "example-resource.warc.gz"]

needs_files = pytest.mark.skipif(not FILES.is_dir(), reason="skipped: no test data")


@pytest.fixture
def run(tmp_path, mnemon):
    """run("import", …, data="a"): in the archive "a" of the test."""
    program = mnemon("version").args[0]

    def call(*arguments, data="a", status=0):
        result = subprocess.run(
            [program, *map(str, arguments), "--data", tmp_path / data], capture_output=True, text=True, timeout=120
        )
        assert result.returncode == status, result
        return result

    return call


def captures(run, data):
    """What of an archive does not depend on where and how it is stored."""
    found = [json.loads(line) for line in run("list", "*", "--json", data=data).stdout.splitlines()]
    return sorted((c["urlkey"], c["timestamp"], c["url"], c.get("status", ""), c["digest"]) for c in found)


def record(uri, body, date="2026-01-02T03:04:05Z", kind="text/html"):
    block = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    head = (f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{hashlib.md5(uri.encode()).hexdigest()}>\r\n"
            f"WARC-Date: {date}\r\nWARC-Target-URI: {uri}\r\nContent-Type: application/http;msgtype=response\r\n"
            f"Content-Length: {len(block)}\r\n\r\n")
    return head.encode() + block + b"\r\n\r\n"


def index_of(archive):
    """The lines of the index, in either of its forms, and whether it was in blocks."""
    names = archive.namelist()
    if "indexes/index.cdxj" in names:
        return archive.read("indexes/index.cdxj").decode().splitlines(), False
    blocks = archive.read("indexes/index.cdx.gz")
    idx = archive.read("indexes/index.idx").decode().splitlines()
    assert idx[0] == '!meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}'
    lines, end = [], 0
    for entry in idx[1:]:
        place, text = entry.split(" {", 1)
        where = json.loads("{" + text)
        assert where["offset"] == end
        end += where["length"]
        block = gzip.decompress(blocks[where["offset"]:end]).decode().splitlines()
        assert block[0].startswith(place + " {")
        lines += block
    assert end == len(blocks)
    return lines, True


def read_record(archive, entry):
    """The record that an index line leads to: WARC fields, HTTP head, body."""
    warc = archive.getinfo("archive/" + entry["filename"])
    assert warc.compress_type == zipfile.ZIP_STORED
    with archive.open(warc) as file:
        file.seek(int(entry["offset"]))
        text = gzip.decompress(file.read(int(entry["length"])))
    head, block = text.split(b"\r\n\r\n", 1)
    fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    http, _, body = block[: int(fields["Content-Length"])].partition(b"\r\n\r\n")
    return fields, http, body


def check_package(archive):
    package = archive.read("datapackage.json")
    digest = json.loads(archive.read("datapackage-digest.json"))
    assert digest == {"path": "datapackage.json", "hash": "sha256:" + hashlib.sha256(package).hexdigest()}
    package = json.loads(package)
    assert (package["profile"], package["wacz_version"]) == ("data-package", "1.1.1")
    assert package["software"].startswith("mnemon/") and package["created"].endswith("Z")
    listed = {resource["path"]: resource for resource in package["resources"]}
    assert set(archive.namelist()) == set(listed) | {"datapackage.json", "datapackage-digest.json"}
    for path, resource in listed.items():
        content = archive.read(path)
        assert resource["hash"] == "sha256:" + hashlib.sha256(content).hexdigest()
        assert (resource["bytes"], resource["name"]) == (len(content), path.rsplit("/", 1)[1])


def check_index(archive):
    """Every line leads to its record, every revisit to a record in the file. Gives the entries."""
    lines, _ = index_of(archive)
    assert lines == sorted(lines, key=lambda line: line.split(" ")[:2])
    entries, full, revisits = [], set(), []
    for line in lines:
        _, timestamp, text = line.split(" ", 2)
        entry = dict(json.loads(text), timestamp=timestamp)
        fields, http, _ = read_record(archive, entry)
        assert fields["WARC-Target-URI"] == entry["url"]
        assert "".join(c for c in fields["WARC-Date"][:19] if c.isdigit()) == timestamp
        if fields["WARC-Type"] == "revisit":
            assert entry["mime"] == "warc/revisit"
            revisits.append((fields["WARC-Refers-To-Target-URI"], fields["WARC-Refers-To-Date"], entry["digest"]))
        else:
            full.add((fields["WARC-Target-URI"], fields["WARC-Date"], entry["digest"]))
        entry["isEncoded"] = b"content-encoding:" in http.lower()
        entries.append(entry)
    assert set(revisits) <= full
    return entries


@pytest.fixture
def exported(run, tmp_path):
    """Sample files of others, imported and exported."""
    if not FILES.is_dir():
        pytest.skip("skipped: no test data")
    run("import", "-q", *(FILES / name for name in SAMPLES))
    path = tmp_path / "out.wacz"
    summary = json.loads(run("export", "-q", "--json", "-o", path).stdout)
    assert summary["size"] == path.stat().st_size
    return path, summary


def test_others_read_what_is_written(exported):
    path, summary = exported
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert all(info.compress_type == zipfile.ZIP_STORED for info in archive.infolist())
        check_package(archive)
        entries = check_index(archive)
        assert len(entries) == summary["captures"] and summary["revisits"] > 0
        pages = [json.loads(line) for line in archive.read("pages/pages.jsonl").decode().splitlines()]
    assert pages[0] == {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}
    assert len(pages) - 1 == summary["pages"]
    assert all(set(page) <= {"id", "url", "ts", "title"} and page["url"] and page["ts"] for page in pages[1:])
    titles = {page["url"]: page.get("title") for page in pages[1:]}
    assert titles["http://www.iana.org/domains/root/db"] == "IANA — Root Zone Database"  # came with gzip encoding
    assert titles["http://www.bl.uk/"] == "THE BRITISH LIBRARY - The world's knowledge"
    if shutil.which("unzip"):
        assert subprocess.run(["unzip", "-tqq", path], timeout=60).returncode == 0


def test_what_was_exported_comes_back(run, exported):
    path, summary = exported
    counts = json.loads(run("import", "-q", "--json", path, data="b").stdout)
    assert (counts["captures"], counts["requests"]) == (summary["captures"], summary["requests"])
    assert captures(run, "a") == captures(run, "b")
    again = json.loads(run("import", "-q", "--json", path, data="b").stdout)
    assert (again["captures"], again["present"]) == (0, summary["captures"])
    run("store", "verify", "-q", data="b")


@needs_files
def test_several_urls_give_one_sorted_index(run, tmp_path):
    run("import", "-q", *(FILES / name for name in SAMPLES))
    run("export", "-q", "-o", tmp_path / "x.wacz", "http://www.iana.org/*", "http://example.com/*", "http://www.bl.uk/*",
        "http://www.iana.org/domains/*")
    with zipfile.ZipFile(tmp_path / "x.wacz") as archive:
        entries = check_index(archive)
    hosts = {entry["url"].split("/")[2] for entry in entries}
    assert {"www.iana.org", "example.com", "www.bl.uk"} <= hosts


def test_equal_keys_are_sorted_by_what_follows(run, tmp_path):
    """As `LC_ALL=C sort` has it: two URLs of one key and time, stored in the other order."""
    (tmp_path / "a.warc").write_bytes(b"".join(record(f"http://a.example/{name}", name.encode()) for name in ("zZ", "Zz", "ZZ", "zz")))
    run("import", "-q", tmp_path / "a.warc")
    run("export", "-q", "-o", tmp_path / "a.wacz", "a.example/*")
    with zipfile.ZipFile(tmp_path / "a.wacz") as archive:
        lines, _ = index_of(archive)
    assert len(lines) == 4 and [line.encode() for line in lines] == sorted(line.encode() for line in lines)


def test_a_large_index_is_in_blocks(run, tmp_path):
    padding = "x" * 1000
    warc = b"".join(record(f"http://a/{padding}/{i:05}", b"<title>%d</title>" % i) for i in range(4200))
    (tmp_path / "a.warc").write_bytes(warc)
    run("import", "-q", tmp_path / "a.warc")
    run("export", "-q", "-o", tmp_path / "x.wacz")
    with zipfile.ZipFile(tmp_path / "x.wacz") as archive:
        check_package(archive)
        lines, is_in_blocks = index_of(archive)
        assert is_in_blocks and len(lines) == 4200 and lines == sorted(lines)
        fields, _, body = read_record(archive, json.loads(lines[1234].split(" ", 2)[2]))
        assert (fields["WARC-Target-URI"][-5:], body) == ("01234", b"<title>1234</title>")
    run("import", "-q", tmp_path / "x.wacz", data="b")
    assert captures(run, "a") == captures(run, "b")


def test_an_empty_selection_is_a_file_all_the_same(run, tmp_path):
    (tmp_path / "a.warc").write_bytes(record("http://a/", b"a"))
    run("import", "-q", tmp_path / "a.warc")
    run("export", "-q", "-o", tmp_path / "x.wacz", "http://nowhere/")
    with zipfile.ZipFile(tmp_path / "x.wacz") as archive:
        check_package(archive)
        assert index_of(archive) == ([], False)


def test_an_export_that_fails_leaves_nothing(run, tmp_path):
    (tmp_path / "a.warc").write_bytes(record("http://a/", b"a" * 1000, kind="image/png"))
    run("import", "-q", tmp_path / "a.warc")
    segment = next((tmp_path / "a" / "volumes" / "0").glob("*.warc.zst"))
    damaged = bytearray(segment.read_bytes())
    damaged[-40] ^= 1
    segment.write_bytes(damaged)
    run("export", "-q", "-o", tmp_path / "x.wacz", status=1)
    assert not list(tmp_path.glob("x.wacz*"))


# ---- files of strangers ----


def make_zip(files, method=zipfile.ZIP_STORED, **options):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method, **options) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return out.getvalue()


def package_of(files):
    return json.dumps({"profile": "data-package", "resources": [
        {"path": name, "hash": "sha256:" + hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        for name, content in files]}).encode()


WARC = record("http://a/", b"<title>a</title>")
MEMBERS = [("archive/a.warc", WARC), ("archive/deep/b.warc.gz", gzip.compress(record("http://b/", b"b")))]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("has_package", [True, False])
def test_stored_and_deflated_members_are_imported(run, tmp_path, method, has_package):
    files = MEMBERS + ([("datapackage.json", package_of(MEMBERS))] if has_package else [])
    (tmp_path / "named.zip").write_bytes(make_zip(files, method))
    counts = json.loads(run("import", "-q", "--json", tmp_path / "named.zip").stdout)
    assert counts["captures"] == 2
    assert [url for _, _, url, *_ in captures(run, "a")] == ["http://a/", "http://b/"]


def change(content, at, byte):
    changed = bytearray(content)
    changed[at] = byte
    return bytes(changed)


def hostile():
    whole = make_zip(MEMBERS)
    central = whole.index(b"PK\1\2")
    wrong = package_of([("archive/a.warc", b"another"), MEMBERS[1]]).replace(b'"bytes": 7', b'"bytes": %d' % len(WARC))
    far = bytearray(whole)
    struct.pack_into("<I", far, whole.rindex(b"PK\1\2") + 42, 0)
    bomb = bytearray(make_zip([("archive/a.warc", b"\0" * 5000000)], zipfile.ZIP_DEFLATED))
    for at in (bomb.index(b"PK\3\4") + 22, bomb.index(b"PK\1\2") + 24):
        struct.pack_into("<I", bomb, at, 1000)
    yield "truncated", whole[:-10], 0, "no end of the directory"
    yield "prepended", b"MZ" + whole, 0, "something stands before"
    yield "climbing name", make_zip([("archive/../../evil.warc", WARC)]), 0, "climbs"
    yield "absolute name", make_zip([("/archive/evil.warc", WARC)]), 0, "absolute"
    yield "encrypted", change(whole, central + 8, 1), 0, "encrypted"
    yield "unknown method", make_zip(MEMBERS, zipfile.ZIP_BZIP2), 0, "method 12"
    yield "overlap", bytes(far), 0, "overlap"
    yield "changed byte", change(whole, whole.index(b"<title>"), 0), 1, "archive/a.warc: its bytes do not have the CRC-32"
    yield "wrong digest", make_zip(MEMBERS + [("datapackage.json", wrong)]), 1, "archive/a.warc: its bytes do not have the digest"
    yield "missing file", make_zip(MEMBERS[:1] + [("datapackage.json", package_of(MEMBERS))]), 0, "archive/deep/b.warc.gz"
    yield "bomb", bytes(bomb), 0, "it unpacks to more than its size"
    yield "nothing in it", make_zip([("a.txt", b"text")]), 0, "no WARC file"
    yield "no ZIP at all", b"PK\3\4 and nothing else", 0, "no end of the directory"


@pytest.mark.parametrize("content, good, reason", [pytest.param(*case[1:], id=case[0]) for case in hostile()])
def test_a_wacz_that_lies_is_refused(run, tmp_path, content, good, reason):
    """The reason is told with file and place; sound members and other files are imported all the same."""
    (tmp_path / "x.wacz").write_bytes(content)
    (tmp_path / "good.warc").write_bytes(record("http://good/", b"good"))
    before = {path for path in tmp_path.rglob("*")} | {tmp_path / "a"}
    result = run("import", "-q", "--json", tmp_path / "x.wacz", tmp_path / "good.warc", status=1)
    counts = json.loads(result.stdout)
    assert (counts["captures"], counts["files_failed"]) == (1 + good, 1)
    assert reason in result.stderr and str(tmp_path / "x.wacz") in result.stderr
    after = {path for path in tmp_path.rglob("*") if tmp_path / "a" not in path.parents}
    assert after == before


def test_digests_can_be_ignored(run, tmp_path):
    wrong = package_of([("archive/a.warc", b"x" * len(WARC))])
    (tmp_path / "x.wacz").write_bytes(make_zip([("archive/a.warc", WARC), ("datapackage.json", wrong)]))
    assert "--ignore-digests" in run("import", "-q", tmp_path / "x.wacz", status=1).stderr
    run("import", "-q", "--ignore-digests", tmp_path / "x.wacz")
    assert len(captures(run, "a")) == 1


def test_a_killed_import_goes_on(run, tmp_path, mnemon):
    warcs = [(f"archive/{i}.warc", b"".join(record(f"http://h{i}/{j}", os.urandom(3000)) for j in range(300)))
             for i in range(4)]
    (tmp_path / "x.wacz").write_bytes(make_zip(warcs))
    program = mnemon("version").args[0]
    for delay in (0.05, 0.15, 0.3):
        process = subprocess.Popen([program, "import", "-q", tmp_path / "x.wacz", "--data", tmp_path / "a"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay)  # killed at any time: the moment is the subject
        process.send_signal(signal.SIGKILL)
        process.wait()
    run("import", "-q", tmp_path / "x.wacz")
    assert len(captures(run, "a")) == 1200
    run("store", "verify", "-q")


# ---- programs of others ----


@pytest.fixture(scope="module")
def npm():
    """The directory with wabac and js-wacz in it, installed once per build directory."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("skipped: node or npm is not installed")
    source = pathlib.Path(__file__).parent / "npm" / "wacz"
    directory = pathlib.Path(os.environ.get("MNEMON", ROOT / "build" / "mnemon")).parent / "npm-wacz"
    directory.mkdir(exist_ok=True)
    wanted = json.loads((source / "package.json").read_text())["dependencies"]
    for name in ("package.json", "wacz-check.js"):
        shutil.copy(source / name, directory)
    installed = [directory / "node_modules" / name / "package.json" for name in wanted]
    versions = [json.loads(path.read_text())["version"] if path.exists() else None for path in installed]
    if versions != list(wanted.values()):
        result = subprocess.run(
            ["npm", "install", "--prefix", directory, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
            capture_output=True, text=True, timeout=300,
        )
        if result.returncode != 0:
            pytest.skip(f"skipped: npm could not install {', '.join(wanted)}: {result.stderr.strip().splitlines()[-1:]}")
    return directory


def replay(npm, path, entries):
    result = subprocess.run(
        ["node", "wacz-check.js", path], cwd=npm, input="".join(json.dumps(entry) + "\n" for entry in entries),
        capture_output=True, text=True, timeout=300,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout)


def distinct(entries):
    """Without captures that share URL and second with another: no reader can tell them apart."""
    places = [(entry["url"], entry["timestamp"]) for entry in entries]
    return [entry for entry, place in zip(entries, places) if places.count(place) == 1]


def test_wabac_replays_what_is_written(npm, exported):
    path, summary = exported
    with zipfile.ZipFile(path) as archive:
        entries = distinct(check_index(archive))
    posts = [entry for entry in entries if "method" in entry]
    assert {entry["url"] for entry in posts} == {"http://httpbin.org/post", "http://httpbin.org/post?foo=bar"}
    for entry in posts:  # by the URL that stands for the request, as wabac itself makes one of a POST
        entry["url"] += ("&" if "?" in entry["url"] else "?") + "__wb_method=" + entry["method"] + "&" + entry["requestBody"]
    report = replay(npm, path, entries)
    assert report["errors"] == []
    assert report["replayed"] == len(entries) and report["compared"] > 100
    assert len(report["pages"]) == summary["pages"]
    assert {"Internet Assigned Numbers Authority", "Example Domain"} <= {page.get("title") for page in report["pages"]}


def test_wabac_replays_a_large_index(npm, run, tmp_path):
    padding = "x" * 1000
    warc = b"".join(record(f"http://a.example/{padding}/{i:05}", b"%d" % (i // 2)) for i in range(4200))
    (tmp_path / "a.warc").write_bytes(warc)
    run("import", "-q", tmp_path / "a.warc")
    run("export", "-q", "-o", tmp_path / "x.wacz")
    with zipfile.ZipFile(tmp_path / "x.wacz") as archive:
        lines, is_in_blocks = index_of(archive)
    assert is_in_blocks
    chosen = [line.split(" ", 2) for line in (lines[0], lines[2000], lines[-1])]
    entries = [dict(json.loads(text), timestamp=timestamp) for _, timestamp, text in chosen]
    report = replay(npm, tmp_path / "x.wacz", entries)
    assert report["errors"] == []
    assert report["replayed"] == report["compared"] == len(entries)


@needs_files
def test_what_js_wacz_writes_is_read(npm, run, tmp_path):
    """Its digests of files are wrong (every piece is hashed twice), which is told; --ignore-digests takes them."""
    for name in SAMPLES[:2]:
        shutil.copy(FILES / name, tmp_path)
    result = subprocess.run(
        ["node", npm / "node_modules" / ".bin" / "js-wacz", "create", "-f", tmp_path / "*.warc.gz", "-o", tmp_path / "js.wacz"],
        cwd=npm, capture_output=True, text=True, timeout=120,
    )
    assert result.returncode == 0 and (tmp_path / "js.wacz").exists(), result.stdout[-2000:]
    assert "archive/iana.warc.gz: its bytes do not have the digest" in run("import", "-q", tmp_path / "js.wacz", status=1).stderr
    run("import", "-q", "--ignore-digests", tmp_path / "js.wacz")
    run("import", "-q", *(tmp_path / name for name in SAMPLES[:2]), data="b")
    assert captures(run, "a") == captures(run, "b")
