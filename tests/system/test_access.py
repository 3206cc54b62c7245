"""Access rules: at once, everywhere, and never half."""
import json
import os
import time

import pytest

from test_cdx import IA, PYWB, Cdx, available, resume, start
from test_replay import response, web
from waiting import wait_for

TIMES = ["20200102030405", "20220102030405", "20240102030405"]
PLACES = ["http://example.org/", "http://example.org/private/a", "http://example.org/private/b", "http://sub.example.org/"]


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    directory = tmp_path_factory.mktemp("access")
    records = [response(url, f"<p>{url} at {time14}", time14=time14) for url in PLACES for time14 in TIMES]
    node = start(directory, *records)
    yield node
    node.stop()


@pytest.fixture
def rules(node):
    """rules("line", …) puts rules in force and waits until they count."""
    path = node.data / "access.aclj"
    marker = 0

    def put(*lines, is_good=True):
        nonlocal marker
        marker += 1
        # The last line tells when they are in force: it blocks a capture that nobody else asks for.
        probe = "exclude" if marker % 2 else "allow"
        text = "\n".join([*lines, f'org,example,sub)/ - {{"access": "{probe}"}}', ""])
        temporary = path.with_suffix(".tmp")
        temporary.write_text(text)
        os.replace(temporary, path)
        if is_good:
            wait(lambda: (Cdx(node).lines(PYWB, url="http://sub.example.org/") == []) == (probe == "exclude"))

    yield put
    path.write_text("")
    wait(lambda: len(Cdx(node).lines(PYWB, url="*.example.org")) == 12)


def wait(condition):
    wait_for(condition, "the rules do not come into force")


def rule(key, access, **more):
    return f"{key} - {json.dumps({'access': access, **more})}"


def test_excluded_captures_are_not_there(node, rules):
    cdx = Cdx(node)
    rules(rule("org,example)/private", "exclude"), rule("org,example)/private/b###", "allow"))
    for path in (IA, PYWB):
        assert len(cdx.lines(path, url="http://example.org/private/*")) == 3
        assert cdx.lines(path, url="http://example.org/private/a") == []
        assert cdx.lines(path, url="http://example.org/private/a", closest="2022", sort="closest") == []
        assert cdx.lines(path, url="http://example.org/private/a", sort="reverse") == []
        assert "private/a" not in cdx.get(path, url="*").text
    assert cdx.rows(url="http://example.org/private/a", limit=-1) == []
    assert cdx.get(IA, url="http://example.org/private/a", showNumPages="true").text == "0\n"
    assert available(node, url="http://example.org/private/a")["archived_snapshots"] == {}
    assert node.get("/web/timemap/link/http://example.org/private/a").status == 404
    assert node.get(web(TIMES[0], "http://example.org/private/a", "id_")).status == 404
    assert node.get(web(TIMES[0], "http://example.org/private/b", "id_")).status == 200


def test_blocked_captures_are_told_but_not_shown(node, rules):
    cdx = Cdx(node)
    rules(rule("org,example)/private", "block"))
    objects = cdx.objects(url="http://example.org/*")
    assert [value.get("access") for value in objects] == [None] * 3 + ["block"] * 6
    assert cdx.lines(PYWB, url="http://example.org/private/a", fields="access", output="text") == ["block"] * 3
    assert '"access": "block"' in cdx.get(PYWB, url="http://example.org/private/a").text
    assert len(cdx.rows(url="http://example.org/private/a")) == 3
    assert cdx.objects(url="http://example.org/*", filter="=access:allow") == objects[:3]
    assert available(node, url="http://example.org/private/a")["archived_snapshots"] == {}
    answer = node.get(web(TIMES[0], "http://example.org/private/a", "id_"))
    assert answer.status == 451 and b"private/a at" not in answer.body
    assert node.get(web(TIMES[0], "http://example.org/", "id_")).status == 200


def test_rules_of_a_time(node, rules):
    cdx = Cdx(node)

    def times(url):
        return [row[1] for row in cdx.rows(url=url)]

    rules(rule("org,example)/", "exclude", before="2020"), rule("org,example)/private/a", "exclude", after="2020", before="2023-06-01"))
    assert times("http://example.org/") == TIMES[1:]
    assert times("http://example.org/private/a") == [TIMES[2]]  # the shorter rule still counts for the first
    assert f"at {TIMES[0]}" not in node.get(web(TIMES[0], "http://example.org/", "id_")).text
    rules(rule("org,example)/", "exclude", newer={"years": 1000}))
    assert times("http://example.org/") == []
    rules(rule("org,example)/", "exclude", older={"years": 1000}))
    assert times("http://example.org/") == TIMES


def test_resume_keys_and_pages_under_rules(node, rules):
    cdx = Cdx(node)
    rules(rule("org,example)/private/a", "exclude", before="2023"))
    everything = cdx.rows(url="*.example.org")
    assert resume(cdx, url="*.example.org", limit=2) == everything
    assert sum((cdx.rows(url="*.example.org", page=page, pageSize=2) for page in range(8)), []) == everything


def test_a_directory_of_rules(node, rules):
    directory = node.data / "access"
    directory.mkdir()
    (directory / "takedown.aclj").write_text(rule("org,example)/private", "exclude") + "\n")
    (directory / "notes.txt").write_text("nothing")
    rules()
    assert Cdx(node).lines(PYWB, url="http://example.org/private/*") == []
    (directory / "takedown.aclj").unlink()
    rules()
    assert len(Cdx(node).lines(PYWB, url="http://example.org/private/*")) == 6
    (directory / "notes.txt").unlink()
    directory.rmdir()


def test_wrong_rules_leave_the_old_ones_in_force(mnemon, tmp_path):
    node = start(tmp_path, *[response(url, "x") for url in PLACES])
    path = node.data / "access.aclj"
    cdx = Cdx(node)
    path.write_text(rule("org,example)/private", "exclude") + "\n")
    wait(lambda: cdx.lines(PYWB, url="http://example.org/private/*") == [])
    path.write_text('org,example)/ - {"access": "allow"}\norg,example)/other - {"acess": "block"}\n')
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        assert cdx.lines(PYWB, url="http://example.org/private/*") == []
        time.sleep(0.2)  # for longer than the second after which rules are read again: nothing may change
    err = node.stop()
    assert err.count("access.aclj:2:") == 1 and "stay in force" in err
    # It does not start with them either.
    done = mnemon("serve", "--data", str(node.data), "--http", "0")
    assert done.returncode != 0 and "access.aclj:2:" in done.stderr
    path.unlink()
    node.start()
    assert len(cdx.lines(PYWB, url="http://example.org/private/*")) == 2
    node.stop()
