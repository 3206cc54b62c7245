"""mnemon archive among servers, nameservers and disks that fail: the crawl ends, and nothing good is missing."""
import json
import os
import ssl
import subprocess
import threading

import pytest

from badserver import ANSWERS, BadServer, NameServer
from test_archive import archive, captures, data, page, site  # fixtures by name
from waiting import wait_for

BAD = [path for path in ANSWERS if path not in ("/echo", "/503", "/429", "/304", "/private")]  # the last leads out of loopback
WORSE = ["/silent", "/silent-body", "/slow-head", "/slow-body", "/endless", "/endless-chunks", "/endless-trailer",
         "/endless-head", "/endless-line", "/flood-1xx", "/drip-1xx", "/reset", "/reset-body", "/bomb", "/dripped",
         "/closes-idle", "/closes-on-request", "/garbage-later", "/fails-once"]


@pytest.fixture
def bad_servers():
    """Each answer from an address of its own, so that none waits for another."""
    servers = [BadServer(f"127.0.4.{i + 1}") for i in range(len(BAD + WORSE))]
    yield servers
    for server in servers:
        server.stop()


def test_no_bad_answer_stops_a_crawl(mnemon, archive, site, bad_servers):
    web = site()
    links = []
    for server, path in zip(bad_servers, BAD + WORSE):
        links.append(server.origin + path)
    web.put("/", page("/a", *links, "/b"))
    web.put("/a", page("/c"))
    web.put("/b", page())
    web.put("/c", page())
    summary = archive(web.url("/"), "--scope", "any", "--ignore-robots", "--timeout", "700 ms", "--limit-body", "1 MB",
                      "--limit-time", "20 s")
    # What drips for ever is cut by the limit; everything else has ended by then.
    assert summary["waiting"] <= 2, summary
    found = {capture["url"] for capture in captures(mnemon)}
    assert found >= {web.url(path) for path in ["/", "/a", "/b", "/c"]}
    assert summary["truncated"] > 5 and summary["failed"] > 5
    good = [path for path in ["/ok", "/chunked", "/lf-only", "/no-length", "/http10", "/204", "/100", "/103"]]
    assert all(any(url.endswith(path) for url in found) for path in good)
    assert not any(url.endswith(("/http09", "/nothing", "/half-head")) for url in found)
    assert mnemon("store", "verify").returncode == 0


def test_truncation_is_recorded(mnemon, archive, bad_servers, tmp_path):
    origin = bad_servers[0].origin
    archive(origin + "/short", "--scope", "page", "--ignore-robots")
    archive(bad_servers[1].origin + "/endless", "--scope", "page", "--ignore-robots", "--limit-body", "100 KB")
    out = tmp_path / "out.warc"
    assert mnemon("export", "-o", str(out)).returncode == 0
    text = out.read_bytes()
    assert b"WARC-Truncated: disconnect" in text and b"WARC-Truncated: length" in text


def test_names_that_change_to_private_addresses_lead_nowhere(mnemon, data, site):
    web = site()
    web.put("/", page())
    names = NameServer({"moves.example": [["192.0.2.1"], ["127.0.2.1"]], "inside.example": ["127.0.2.1"]})
    port = web.port
    for name in ["moves.example", "inside.example"]:
        done = mnemon("archive", f"http://{name}:{port}/", "--nameserver", names.address, "--timeout", "500 ms",
                      "--json", "-q", "--ignore-robots", "--delay", "0")
        assert done.returncode == 1 and json.loads(done.stdout)["failed"] == 1
    names.stop()
    assert not web.asked()


def test_a_nameserver_that_is_down_does_not_stop_others(mnemon, data, site):
    web = site()
    web.put("/", page("http://silent.example/", "/a"))
    web.put("/a", page())
    names = NameServer({"silent.example": "silent"})
    done = mnemon("archive", web.url("/"), "--scope", "any", "--nameserver", names.address, "--allow-private",
                  "--timeout", "500 ms", "--json", "-q", "--delay", "0")
    names.stop()
    summary = json.loads(done.stdout)
    assert summary["stored"] == 2 and summary["failed"] == 1


def test_a_redirect_to_a_private_address_is_refused(mnemon, data, bad_servers):
    """Reached through a name with a public look, as an attacker would."""
    port = bad_servers[0].origin.rsplit(":", 1)[1]
    names = NameServer({"public.example": ["192.0.2.7"]})
    done = mnemon("archive", f"http://public.example:{port}/private", "--nameserver", names.address, "--json", "-q",
                  "--timeout", "300 ms", "--ignore-robots", "--delay", "0")
    names.stop()
    assert json.loads(done.stdout)["stored"] == 0


def test_a_storm_of_429_ends(archive, bad_servers):
    summary = archive(bad_servers[0].origin + "/503", "--scope", "page", "--ignore-robots", "--limit-time", "50 s")
    assert summary["state"] == "complete"
    assert summary["statuses"] == {"503": 1} and summary["retried"] == 3


def make_small_disk(path, size):
    path.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)], capture_output=True)
    if done.returncode != 0:
        pytest.skip("no file system may be mounted here")


def test_a_full_disk_pauses_the_crawl_until_there_is_room(mnemon, site, tmp_path):
    web = site()
    web.put("/", page(*[f"/{i}" for i in range(60)]))
    for i in range(60):
        web.put(f"/{i}", os.urandom(500000), kind="image/jpeg")
    disk = tmp_path / "disk"
    make_small_disk(disk, "110m")
    try:
        ballast = disk / "ballast"
        ballast.write_bytes(b"\0" * (30 << 20))
        program = mnemon("version").args[0]
        command = [program, "archive", web.url("/"), "--data", str(disk / "data"), "--allow-private", "--delay", "0",
                   "--json"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        told = []
        threading.Thread(target=lambda: told.extend(iter(process.stderr.readline, "")), daemon=True).start()
        wait_for(lambda: any("waiting until there is room" in line for line in told), lambda: str(told))
        ballast.unlink()
        subprocess.run(["mount", "-o", "remount,size=400m", str(disk)], check=True)
        out = process.stdout.read()
        assert process.wait(120) == 0
        summary = json.loads(out)
        assert summary["state"] == "complete" and summary["stored"] == 61 and summary["failed"] == 0
        assert all(web.asked(f"/{i}") == 1 for i in range(60)), "what was fetched is kept, not fetched again"
        assert mnemon("store", "verify", "--data", str(disk / "data")).returncode == 0
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


def test_a_bad_certificate_is_recorded_and_refused_on_request(mnemon, archive, tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "9", "-subj", "/CN=127.0.4.1",
                    "-addext", "subjectAltName=IP:127.0.4.1", "-keyout", str(tmp_path / "key"), "-out",
                    str(tmp_path / "cert")], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    server = BadServer("127.0.4.1", context=context)
    refused = archive(server.origin + "/ok", "--scope", "page", "--ignore-robots", "--refuse-bad-certificates", status=1)
    assert refused["stored"] == 0 and refused["failed"] == 1
    taken = archive(server.origin + "/ok", "--scope", "page", "--ignore-robots", "--depth", "1")
    server.stop()
    assert taken["stored"] == 1 and taken["bad_certificates"] == 1
    out = tmp_path / "out.warc"
    assert mnemon("export", "-o", str(out)).returncode == 0
    assert b"Mnemon-TLS: self-signed certificate\r\n" in out.read_bytes()
