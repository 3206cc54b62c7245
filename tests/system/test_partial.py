"""Nothing is missing without a word: every interface says when somebody that could hold an answer is not there."""
import gzip
import io
import json
import re
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request
import zipfile

import pytest

from ringnodes import await_agreement, many, program
from test_through_node import warc
from test_together import start_ring
from waiting import wait_for

PAGES = 24
SITE = "http://site.test"


def body_of(number):
    return f"<title>{number}</title><p>walnut {number} stands beside the road".encode()


def ask(url, path):
    """Status, headers, body: of an error, too."""
    try:
        with urllib.request.urlopen(url + path, timeout=30) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


@pytest.fixture
def nodes(mnemon):
    """nodes(directory) starts one and gives its URL and its process."""
    started = []

    def start(directory, *options):
        process = subprocess.Popen([program(mnemon), "serve", "--data", str(directory), "--http", "0", *options],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        started.append(process)
        return re.search(r"http://[0-9.]+:\d+", process.stdout.readline()).group(), process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture
def archive(mnemon, nodes, tmp_path):
    """Three volumes: here, on a disk that can be unplugged, and on a server that can be killed."""
    data, disk = tmp_path / "data", tmp_path / "disk"
    data.mkdir()
    disk.mkdir()
    url, server = nodes(tmp_path / "server")
    token = (tmp_path / "server" / "token").read_text().strip()
    (data / "connector").write_text(
        f'[volume-0]\npath = volumes/0\nindex = index/0\n[volume-1]\npath = "{disk}"\n'
        f'[volume-2]\nurl = "{url}"\ntoken = "{token}"\n')
    source = tmp_path / "pages.warc"
    source.write_bytes(b"".join(warc(f"{SITE}/{i}", body_of(i)) for i in range(PAGES)))
    assert mnemon("import", "-q", source, "--data", data).returncode == 0
    whole = mnemon("list", "*", "--data", data)
    lines = whole.stdout.splitlines()
    assert whole.returncode == 0 and len(lines) == PAGES
    places = {}
    for line in lines:
        fields = json.loads(line.split(" ", 2)[2])
        places.setdefault(int(fields["filename"].split("/")[0]), []).append(fields["url"])
    assert set(places) == {0, 1, 2}

    class Archive:
        pass

    made = Archive()
    made.data, made.disk, made.server, made.places = data, disk, server, places
    return made


def named(headers):
    """Those that the header names, in some order."""
    return sorted(headers["X-Mnemon-Partial"].split(", ")) if "X-Mnemon-Partial" in headers else None


def tells(found, names):
    return found["partial"] is True and sorted(found["unanswered"]) == names


def run(mnemon, archive, *words):
    return mnemon(*words, "--data", archive.data)


def infos(raw):
    """The warcinfo of a WARC file."""
    return raw.split(b"WARC/1.1\r\n")[1].decode()


def check_commands(mnemon, archive, missing, tmp_path):
    """What the commands say while these volumes are down."""
    names = [f"volume {number}" for number in missing]
    here = [url for number, urls in archive.places.items() if number not in missing for url in urls]
    listed = run(mnemon, archive, "list", "*")
    assert listed.returncode == 1 and len(listed.stdout.splitlines()) == len(here), listed
    assert all(name in listed.stderr for name in names) and "may not be all" in listed.stderr
    assert run(mnemon, archive, "get", here[0]).returncode == 0
    gone = run(mnemon, archive, "get", archive.places[missing[0]][0])
    assert gone.returncode == 1 and "holds no capture" not in gone.stderr
    assert all(name in gone.stderr for name in names) and "did not answer" in gone.stderr, gone.stderr
    out = tmp_path / "out.warc.gz"
    refused = run(mnemon, archive, "export", "-q", "-o", out)
    assert refused.returncode == 1 and not out.exists() and "--partial" in refused.stderr, refused
    assert all(name in refused.stderr for name in names)
    written = run(mnemon, archive, "export", "-q", "--json", "--partial", "-o", out)
    assert written.returncode == 0, written
    summary = json.loads(written.stdout)
    assert summary["captures"] == len(here) and tells(summary, names)
    info = infos(gzip.decompress(out.read_bytes()))
    assert "partial: true" in info and sorted(re.search("unanswered: (.*)\r", info)[1].split(", ")) == names, info
    packed = tmp_path / "out.wacz"
    assert run(mnemon, archive, "export", "-q", "--partial", "-o", packed).returncode == 0
    with zipfile.ZipFile(packed) as wacz:
        assert tells(json.loads(wacz.read("datapackage.json")), names)
        inner = gzip.GzipFile(fileobj=io.BytesIO(wacz.read("archive/data.warc.gz"))).read()
        assert "partial: true" in infos(inner)
    for path in (out, packed):
        path.unlink()


def test_commands_say_which_volumes_did_not_answer(mnemon, archive, tmp_path):
    out = tmp_path / "whole.warc.gz"
    assert run(mnemon, archive, "export", "-q", "-o", out).returncode == 0
    assert "partial" not in infos(gzip.decompress(out.read_bytes()))
    none = run(mnemon, archive, "get", f"{SITE}/none")
    assert none.returncode == 1 and "holds no capture" in none.stderr and "did not answer" not in none.stderr
    archive.server.kill()
    archive.server.wait()
    check_commands(mnemon, archive, [2], tmp_path)
    archive.disk.rename(archive.disk.with_name("unplugged"))
    check_commands(mnemon, archive, [1, 2], tmp_path)


def check_interfaces(url, archive, missing):
    """What the node says while these volumes are down."""
    names = [f"volume {number}" for number in missing]
    gone, here = archive.places[missing[0]][0], archive.places[0][0]
    for path, kind in (("/cdx?url=site.test/*", "text"), ("/cdx?url=site.test/*&output=json", "json"),
                       ("/cdx/search/cdx?url=site.test/*", "text"), ("/cdx/search/cdx?url=site.test/*&output=json", "table"),
                       ("/cdx?url=site.test/*&showNumPages=true", "text"), ("/cdx/search/cdx?url=site.test/*&limit=-2", "text"),
                       (f"/cdx?url={here}", "text"), (f"/web/timemap/link/{here}", "text"),
                       (f"/web/timemap/cdx/{here}", "text"), (f"/web/*/{here}", "text"), ("/list?url=site.test/*", "text"),
                       (f"/web/20260102030405id_/{here}", "text")):
        status, headers, text = ask(url, path)
        assert status == 200 and named(headers) == names, (path, status, headers.items())
        if kind == "json":
            assert tells(json.loads(text.splitlines()[-1]), names)
    status, headers, text = ask(url, f"/web/timemap/json/{here}")
    assert status == 200 and named(headers) == names and tells(json.loads(text), names)
    status, headers, text = ask(url, f"/wayback/available?url={here}")
    found = json.loads(text)
    assert status == 200 and found["archived_snapshots"]["closest"]["available"]
    assert tells(found, names) and named(headers) == names
    for path in (f"/wayback/available?url={gone}", f"/web/timemap/link/{gone}", f"/web/timemap/json/{gone}",
                 f"/web/timemap/cdx/{gone}", f"/web/2026/{gone}", f"/web/*/{gone}", f"/cdx?url={gone}",
                 f"/cdx?url={gone}&output=json", f"/cdx/search/cdx?url={gone}&output=json"):
        status, headers, text = ask(url, path)
        assert status == 503 and named(headers) == names and "volume" in text, (path, status, text)
    assert tells(json.loads(ask(url, f"/wayback/available?url={gone}")[2]), names)
    assert tells(json.loads(ask(url, "/api/v1/search?q=walnut")[2]), names)
    assert tells(json.loads(ask(url, f"/api/v1/calendar?url={here}")[2]), names)
    assert ", ".join(names) in ask(url, "/search?q=walnut")[2]


def test_a_node_says_which_volumes_did_not_answer(nodes, archive):
    url, process = nodes(archive.data)
    gone, never = archive.places[2][0], f"{SITE}/never"
    for path, expected in (("/cdx?url=site.test/*", 200), (f"/web/timemap/link/{gone}", 200), (f"/web/timemap/link/{never}", 404),
                           (f"/wayback/available?url={never}", 200), (f"/web/2026/{never}", 404), (f"/cdx?url={never}", 200)):
        status, headers, text = ask(url, path)
        assert status == expected and "X-Mnemon-Partial" not in headers and '"partial": true' not in text, (path, text)
    archive.server.kill()
    archive.server.wait()
    check_interfaces(url, archive, [2])
    process.terminate()
    process.wait()
    archive.disk.rename(archive.disk.with_name("unplugged"))
    check_interfaces(nodes(archive.data)[0], archive, [1, 2])


# ---- a ring


@pytest.fixture
def ring(mnemon, tmp_path):
    """Three nodes; the second and the third have pages of their own, which the others get as copies."""
    with many(mnemon, tmp_path) as make:
        made = start_ring(make, 3, "--replicas", "2")
        for number, each in enumerate(made[1:], 1):
            source = tmp_path / f"{number}.warc"
            source.write_bytes(b"".join(warc(f"{SITE}/{number}/{i}", body_of(f"{number}-{i}")) for i in range(12)))
            assert each.run("import", "-q", source).returncode == 0
        yield made


def urls_of(listed):
    return {json.loads(line.split(" ", 2)[2])["url"] for line in listed.stdout.splitlines()}


def has_all(raw, urls):
    return all(f"WARC-Target-URI: {url}\r\n".encode() in raw for url in urls)


def test_commands_on_a_member_see_the_whole_ring_or_say_who_is_missing(ring, tmp_path):
    first, second, third = ring
    everything = {f"{SITE}/{number}/{i}" for number in (1, 2) for i in range(12)}
    for each in ring:
        listed = each.run("list", "*")
        assert listed.returncode == 0 and urls_of(listed) == everything, (listed.stderr, len(urls_of(listed)))
        assert len(listed.stdout.splitlines()) == 24  # nothing twice
    for url in (f"{SITE}/1/3", f"{SITE}/2/7"):
        for each in ring:
            assert each.run("get", url).stdout == body_of("-".join(url.split("/")[-2:])).decode(), (each.place, url)
    none = first.run("get", f"{SITE}/none")
    assert none.returncode == 1 and "holds no capture" in none.stderr, none.stderr
    out = tmp_path / "all.warc.gz"
    written = first.run("export", "-q", "--json", "-o", out)
    assert written.returncode == 0 and json.loads(written.stdout)["captures"] == 24, written
    raw = gzip.decompress(out.read_bytes())
    assert "partial" not in infos(raw) and has_all(raw, everything)
    assert first.run("export", "-q", "--local", "-o", tmp_path / "local.warc.gz").returncode == 0

    found = json.loads(ask(first.url, "/api/v1/search?q=walnut&scope=node")[2])
    assert tells(found, ["the other nodes of the ring"]) and found["index"]["ring_captures"] >= len(
        first.run("list", "--local", "*").stdout.splitlines()), found["index"]
    assert "On this node: " in ask(first.url, "/search?q=walnut&scope=node")[2]
    found = json.loads(ask(first.url, "/api/v1/search?q=walnut")[2])
    assert found["ring"]["nodes"] == 3, found

    for each in ring:
        waited = each.run("ring", "wait", "--whole", "--quiet", "--timeout", "120s")
        assert waited.returncode == 0, waited.stderr
    third.process.send_signal(signal.SIGSTOP)
    try:
        name = f"node {third.place}"
        listed = first.run("list", "*")
        assert listed.returncode == 1 and name in listed.stderr, listed.stderr
        assert first.run("list", "--local", "*").returncode == 0
        # A node that is silent for long is gone. Then the other two have everything, and nothing is missing.
        refused, file = first.run("export", "-q", "-o", tmp_path / "refused.warc.gz"), tmp_path / "refused.warc.gz"
        if refused.returncode == 0:
            assert has_all(gzip.decompress(file.read_bytes()), everything), refused
        else:
            assert refused.returncode == 1 and name in refused.stderr and not file.exists(), refused
        written = first.run("export", "-q", "--partial", "-o", tmp_path / "rest.warc.gz")
        raw = gzip.decompress((tmp_path / "rest.warc.gz").read_bytes())
        assert written.returncode == 0, written.stderr
        assert f"unanswered: {name}\r\n" in infos(raw) or ("partial" not in infos(raw) and has_all(raw, everything))
        status, headers, text = ask(first.url, "/cdx?url=site.test/*&output=json")
        rows = [json.loads(line) for line in text.splitlines()]
        assert status == 200, text
        if named(headers) or "partial" in rows[-1]:
            assert named(headers) == [name] and tells(rows[-1], [name]), (headers, rows[-1])
        else:
            assert {row["url"] for row in rows} == everything, rows
    finally:
        third.process.send_signal(signal.SIGCONT)
    third.stop()
    (third.directory / "connector").write_text("[volume-0]\npath = volumes/0\nindex = index/0\n[volume-1]\npath = /nonexistent/disk\n")
    third.start()
    await_agreement([first, second, third])
    listed = second.run("list", "*")  # it answers, and says that it may have more
    assert listed.returncode == 1 and name in listed.stderr and urls_of(listed) == everything, listed.stderr
    first.stop()
    alone = first.run("list", "*")
    assert alone.returncode == 1 and "this node is not running" in alone.stderr, alone.stderr
    assert first.run("list", "--local", "*").returncode == 0


# ---- what an outage leaves behind


def test_documents_that_an_outage_stored_twice_are_counted_and_merged(mnemon, tmp_path):
    data, disk = tmp_path / "data", tmp_path / "disk"
    data.mkdir()
    disk.mkdir()
    (data / "connector").write_text(f'[volume-0]\npath = volumes/0\nindex = index/0\n[volume-1]\npath = "{disk}"\n')

    def run(*words, **options):
        return mnemon(*words, "--data", data, **options)

    def stat():
        return json.loads(run("store", "stat", "--json").stdout)

    def bring(name, *days):
        source = tmp_path / f"{name}.warc"
        source.write_bytes(b"".join(warc(f"{SITE}/{i}", body_of(i) + b"x" * 2000, f"2026-01-{day:02}T03:04:05Z")
                                    for day in days for i in range(PAGES)))
        assert run("import", "-q", source).returncode == 0

    bring("before", 1)
    before = stat()
    away = before["volumes"][1]["documents"]
    assert (before["documents"], before["duplicates"]) == (PAGES, 0) and 0 < away < PAGES
    disk.rename(disk.with_name("unplugged"))
    bring("during", 2, 3)
    disk.with_name("unplugged").rename(disk)
    whole = run("list", "*")
    assert whole.returncode == 0 and len(whole.stdout.splitlines()) == 3 * PAGES
    after = stat()
    assert after["duplicates"] == away and after["documents"] == PAGES + away and after["duplicate_size"] > 2000 * away
    assert f"duplicates   {away} on more than one volume" in run("store", "stat").stdout

    moved = next(f["url"] for f in map(lambda line: json.loads(line.split(" ", 2)[2]), whole.stdout.splitlines())
                 if f["filename"].startswith("1/"))
    merged = run("store", "compact", "--dead", "0", "--json")
    assert merged.returncode == 0 and json.loads(merged.stdout)["merged"] == 2 * away, merged
    last = stat()
    assert (last["documents"], last["duplicates"]) == (PAGES, 0)
    listed = run("list", "*")
    fields = [json.loads(line.split(" ", 2)[2]) for line in listed.stdout.splitlines()]
    assert [(f["url"], f["digest"], f["status"]) for f in fields] == [
        (f["url"], f["digest"], f["status"]) for f in map(lambda line: json.loads(line.split(" ", 2)[2]), whole.stdout.splitlines())]
    for day in (1, 2, 3):
        got = run("get", "--headers", "--at", f"202601{day:02}", moved)
        assert got.stdout.startswith("HTTP/1.1 200 OK\n") and got.stdout.endswith("x" * 2000), got
    assert run("store", "verify").returncode == 0


def test_a_node_merges_what_an_outage_of_a_disk_stored_twice(mnemon, nodes, tmp_path):
    """The disk is back with the next start; nobody runs a command."""
    data, disk = tmp_path / "data", tmp_path / "disk"
    data.mkdir()
    disk.mkdir()
    (data / "connector").write_text(f'[volume-0]\npath = volumes/0\nindex = index/0\n[volume-1]\npath = "{disk}"\n')

    def bring(day):
        source = tmp_path / "pages.warc"
        source.write_bytes(b"".join(warc(f"{SITE}/{i}", body_of(i) + b"x" * 2000, f"2026-01-{day:02}T03:04:05Z") for i in range(PAGES)))
        assert mnemon("import", "-q", source, "--data", data).returncode == 0

    def stat():
        return json.loads(mnemon("store", "stat", "--json", "--data", data).stdout)

    bring(1)
    away = stat()["volumes"][1]["documents"]
    assert not (data / "unmerged").exists()
    disk.rename(disk.with_name("unplugged"))
    _, process = nodes(data)
    bring(2)
    assert (data / "unmerged").exists()
    process.terminate()
    assert process.wait(60) == 0
    disk.with_name("unplugged").rename(disk)
    assert stat()["duplicates"] == away
    assert f"duplicates   {away} on more than one volume" in (said := mnemon("store", "stat", "--data", data).stdout)
    assert "mnemon store compact merges them" in said

    url, process = nodes(data)
    wait_for(lambda: not (data / "unmerged").exists(), "the merge")
    assert stat()["duplicates"] == 0
    listed = mnemon("list", "*", "--data", data)
    assert listed.returncode == 0 and len(listed.stdout.splitlines()) == 2 * PAGES
    for i in range(PAGES):
        for day in (1, 2):
            status, _, text = ask(url, f"/web/202601{day:02}030405id_/{SITE}/{i}")
            assert status == 200 and text.encode() == body_of(i) + b"x" * 2000
    process.terminate()
    assert process.wait(60) == 0
    assert mnemon("store", "verify", "--data", data).returncode == 0


def test_a_node_merges_what_an_outage_of_a_server_stored_twice(mnemon, nodes, archive, tmp_path):
    """The server comes back while the node runs, and the node stores meanwhile."""
    url, process = nodes(archive.data)
    archive.server.kill()
    archive.server.wait()
    source = tmp_path / "again.warc"
    source.write_bytes(b"".join(warc(f"{SITE}/{i}", body_of(i), "2027-01-02T03:04:05Z") for i in range(PAGES)))
    assert run(mnemon, archive, "import", "-q", source).returncode == 0
    assert (archive.data / "unmerged").exists()
    port = re.search(r':(\d+)"', (archive.data / "connector").read_text())[1]
    back = subprocess.Popen([program(mnemon), "serve", "--data", str(tmp_path / "server"), "--http", port],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert back.stdout.readline()
        wait_for(lambda: not (archive.data / "unmerged").exists(), "the merge")
        stat = json.loads(run(mnemon, archive, "store", "stat", "--json").stdout)
        assert (stat["duplicates"], stat["captures"]) == (0, 2 * PAGES), stat
        listed = run(mnemon, archive, "list", "*")
        assert listed.returncode == 0 and len(listed.stdout.splitlines()) == 2 * PAGES, listed.stderr
        for i in range(PAGES):
            for year in (2026, 2027):
                status, _, text = ask(url, f"/web/{year}id_/{SITE}/{i}")
                assert status == 200 and text.encode() == body_of(i)
    finally:
        process.kill()
        back.kill()
        back.wait()
        back.stdout.close()
