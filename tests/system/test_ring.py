"""Rings of real nodes on 127.0.0.2, .3 …: founded, joined, left by force, come back; by invitation; refused, and why."""
import html
import json
import re
import subprocess
import time

import pytest

from ringnodes import await_agreement, found, many, wait_for


@pytest.fixture
def node(mnemon, tmp_path):
    with many(mnemon, tmp_path) as make:
        yield make


# ---- commands ----


def test_a_ring_is_created_once(node):
    a = node(2)
    assert "others join with" in found(a, "--open", "--scope", "example.org/*", "--period", "6 h")
    state = json.loads(a.run("ring", "status", "--json").stdout)
    charter = state["charter"]
    assert (charter["name"], charter["version"], charter["open"]) == ("films", 1, True)
    assert (charter["scope"], charter["period_seconds"]) == (["example.org/*"], 6 * 3600)
    assert charter["founder"] == state["key"]
    again = a.run("ring", "create", "books")
    assert again.returncode == 1 and "already in the ring \"films\"" in again.stderr


def test_wrong_usage_is_explained(node):
    a = node(2)
    for arguments, text in [
        (("create", "two words"), "is not a valid name"),
        (("create", "films", "--witnesses", "7"), "witness"),
        (("create", "films", "--open", "--invite"), "either --open or --invite"),
        (("create", "films", "--scope", "re:["), "--scope"),
        (("create",), "name the ring"),
        (("remove",), "name a key"),
        (("frobnicate",), "unknown action"),
    ]:
        done = a.run("ring", *arguments)
        assert done.returncode == 2 and text in done.stderr, (arguments, done.stderr)
    for action in ("invite", "amend", "leave"):
        done = a.run("ring", action)
        assert done.returncode == 1 and "in no ring" in done.stderr, (action, done.stderr)


def test_a_damaged_charter_is_refused(node):
    a = node(2)
    found(a)
    path = a.directory / "ring" / "charter"
    whole = path.read_bytes()
    path.write_bytes(whole[:50] + bytes([whole[50] ^ 1]) + whole[51:])
    done = a.run("ring", "invite")
    assert done.returncode == 1 and "damaged" in done.stderr
    served = a.run("serve", "--address", a.ip, "--http", "0", "--port", "0")
    assert served.returncode == 1 and "damaged" in served.stderr


def test_only_the_founder_signs(node):
    a, b = node(2), node(3)
    found(a)
    b.run("ring", "status")
    (b.directory / "ring").mkdir(parents=True)
    (b.directory / "ring" / "charter").write_bytes((a.directory / "ring" / "charter").read_bytes())
    for action in ("invite", "amend"):
        done = b.run("ring", action)
        assert done.returncode == 1 and "only the founder" in done.stderr


def test_leaving_keeps_a_copy(node):
    a = node(2)
    found(a)
    assert a.run("ring", "leave").returncode == 0
    assert (a.directory / "ring" / "charter.left").exists()
    assert json.loads(a.run("ring", "status", "--json").stdout)["charter"] is None


# ---- an open ring ----


def test_nodes_join_die_and_come_back(node):
    a, b, c = node(2), node(3), node(4)
    found(a, "--open")
    a.start()
    b.start("--join", a.place)
    c.start("--join", b.place)
    await_agreement([a, b, c])
    assert "member of \"films\"" in c.run("ring", "status").stdout

    b.kill()
    await_agreement([a, c])

    b.start()  # without --join: it remembers
    await_agreement([a, b, c])

    for each in (a, b, c):
        each.stop()
    for each in (c, b, a):
        each.launch()
    for each in (c, b, a):
        each.ready()
    await_agreement([a, b, c])


def test_a_running_node_is_not_left(node):
    a = node(2)
    found(a, "--open")
    a.start()
    done = a.run("ring", "leave")
    assert done.returncode == 1 and "stop it first" in done.stderr


def test_a_new_version_spreads(node):
    a, b, c = node(2), node(3), node(4)
    found(a, "--open")
    a.start()
    b.start("--join", a.place)
    c.start("--join", a.place)
    await_agreement([a, b, c])
    amended = a.run("ring", "amend", "--replicas", "3", "--scope", "*.pdf")
    assert amended.returncode == 0, amended.stderr
    for each in (a, b, c):
        wait_for(lambda: each.status()["charter"]["version"] == 2, "version 2 at " + each.place)
        charter = each.status()["charter"]
        assert (charter["replicas"], charter["scope"]) == (3, ["*.pdf"])
    await_agreement([a, b, c])
    c.stop()
    assert json.loads(c.run("ring", "status", "--json").stdout)["charter"]["version"] == 2


def test_who_is_removed_is_refused(node):
    a, b, c = node(2), node(3), node(4)
    found(a, "--open")
    a.start()
    b.start("--join", a.place)
    c.start("--join", a.place)
    await_agreement([a, b, c])
    removed = a.run("ring", "remove", c.key)
    assert removed.returncode == 0, removed.stderr
    await_agreement([a, b])
    wait_for(lambda: c.status()["state"] == "removed", "the removed node knows")
    assert "this node has been removed from" in c.said
    c.stop()
    (c.directory / "ring" / "charter").unlink()  # it may try as it likes
    c.start("--join", a.place)
    wait_for(lambda: c.status()["state"] == "removed", "and again")
    assert c.place not in a.neighbours()


def test_the_dashboard_shows_the_ring(node):
    a, b = node(2), node(3)
    found(a, "--open")
    a.start()
    b.start("--join", a.place)
    await_agreement([a, b])

    def page():
        return html.unescape(a.get("/dashboard"))

    wait_for(lambda: "0 captures here, 6 copies of each wanted, more than there are nodes" in page(), page)
    wait_for(lambda: "Arcs that this node looks after" in page() and "too few copies" in page(), page)
    share = sum(vnode["share"] for vnode in json.loads(a.get("/api/v1/ring"))["vnodes"])
    assert f"looks after {100 * share:.1f} % of the ring" in page(), page()
    assert 'member of "films"' in page() and "/static/ring.js" in page()
    assert f"<td>{b.place}" in page()
    assert json.loads(a.get("/api/v1/ring"))["neighbours"][0]["key"] == b.key
    assert "svg" in a.get("/static/ring.js")


# ---- by invitation ----


def test_strangers_are_refused_and_both_sides_say_why(node):
    a, b = node(2), node(3)
    found(a)
    a.start()
    b.start("--join", a.place)
    reason = "the ring is by invitation, and it has none"
    wait_for(lambda: f"{b.place} is refused: {reason}" in a.said, lambda: a.said + b.said)
    wait_for(lambda: f"{a.place} refuses this node" in b.said and reason in b.said, lambda: a.said + b.said)
    assert b.status()["state"] == "joining"
    assert a.neighbours() == set()
    for each in (a, b):
        wait_for(lambda: any(reason in c["text"] for c in each.status()["complaints"]), "the complaint in the status")
        assert reason in each.run("ring", "status").stdout


def invite(founder, *options):
    done = founder.run("ring", "invite", *options)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_tokens_let_in(node):
    a, b, c = node(2), node(3), node(4)
    found(a)
    a.start()
    b.start("--join", a.place, "--token", invite(a))
    c.directory.mkdir()
    c.start("--join", b.place, "--token", invite(a, "--for", c.key))
    await_agreement([a, b, c])

    c.kill()
    c.start()  # the membership is kept
    await_agreement([a, b, c])

    done = a.run("ring", "invite")
    token_key = re.search(r"mnemon ring remove ([a-z2-7]{52})", done.stderr).group(1)
    assert a.run("ring", "remove", token_key).returncode == 0
    wait_for(lambda: b.status()["charter"]["version"] == 2, "version 2")
    await_agreement([a, b, c])
    d = node(5)
    d.start("--join", a.place, "--token", done.stdout.strip())
    wait_for(lambda: "it has been removed from the ring" in a.said, lambda: a.said + d.said)
    assert d.place not in a.neighbours()


def test_tokens_for_others_expired_and_mistyped_are_refused(node):
    a, b, c = node(2), node(3), node(4)
    found(a)
    a.start()
    token = invite(a)
    mistyped = token[:-1] + ("a" if token[-1] != "a" else "b")
    done = b.run("serve", "--address", b.ip, "--http", "0", "--port", "0", "--join", a.place, "--token", mistyped)
    assert done.returncode == 1 and "--token" in done.stderr
    expired = invite(a, "--expires", "0")
    time.sleep(1.1)  # it is good to the end of its second
    b.start("--join", a.place, "--token", expired)
    wait_for(lambda: "its invitation has expired" in b.said, lambda: a.said + b.said)
    b.kill()
    c.start("--join", a.place, "--token", invite(a, "--for", b.key))
    wait_for(lambda: "is not for this node and ring" in c.said, lambda: a.said + c.said)
    assert a.neighbours() == set()


# ---- other rings, other clocks ----


def test_another_ring_is_refused_and_both_sides_say_why(node):
    a, b = node(2), node(3)
    found(a, "--open")
    found(b, "--open")
    a.start()
    b.start("--join", a.place)
    wait_for(lambda: f"{b.place} is refused: it belongs to another ring" in a.said, lambda: a.said + b.said)
    wait_for(lambda: f"{a.place} refuses this node" in b.said and "another ring" in b.said,
             lambda: a.said + b.said)
    assert a.neighbours() == set() and b.neighbours() == set()


SLOW_CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, time);
    if (clock == CLOCK_REALTIME) time->tv_sec -= 3600;
    return result;
}
"""


def test_a_wrong_clock_is_refused_and_both_sides_say_why(node, tmp_path):
    compiled = subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", tmp_path / "slow.so", "-"],
                              input=SLOW_CLOCK, text=True)
    assert compiled.returncode == 0
    a, b = node(2), node(3)
    found(a, "--open")
    a.start()
    b.start("--join", a.place, wrap=("env", f"LD_PRELOAD={tmp_path / 'slow.so'}"))
    wait_for(lambda: f"{b.place} is refused: its clock is 60 minutes behind" in a.said, lambda: a.said + b.said)
    wait_for(lambda: f"{a.place} refuses this node: its clock is 60 minutes ahead" in b.said,
             lambda: a.said + b.said)
    assert a.neighbours() == set()


def test_a_token_of_another_ring_is_not_used(node):
    a, b, c = node(2), node(3), node(4)
    found(a)
    found(b, "--open")
    b.start()
    c.start("--join", b.place, "--token", invite(a))
    wait_for(lambda: "the charter of another ring" in c.said, lambda: c.said)
    assert c.status()["charter"] is None


def test_nobody_there_is_said(node):
    a = node(2)
    a.start("--join", "127.0.0.9:9")
    wait_for(lambda: "no answer from 127.0.0.9:9" in a.said, lambda: a.said)
    assert a.status()["state"] == "asking"


def test_names_are_looked_up(node):
    a, b = node(2), node(3)
    a.ip = "127.0.0.1"
    found(a, "--open")
    a.start()
    b.start("--join", f"localhost:{a.port}")
    await_agreement([a, b])
    b.stop()
    c = node(4)
    c.start("--join", "nobody.invalid")
    wait_for(lambda: "nobody.invalid: " in c.said, lambda: c.said)
    assert c.status()["state"] == "looking"


def test_a_lookup_names_the_owner(node):
    a, b = node(2), node(3)
    found(a, "--open")
    a.start()
    b.start("--join", a.place)
    await_agreement([a, b])
    for url in ("http://example.org/", "http://example.org/a?b=c&d=%25"):
        assert a.owner(url) == b.owner(url) and a.owner(url)[0] in (a.place, b.place)
        shown = b.run("ring", "lookup", url, "--vnodes", "2").stdout
        assert b.run("ring", "lookup", url, "--places", "2").stdout == shown, "its name in 0.1"
        assert f"  {a.owner(url)[0]} " in shown.splitlines()[1] and len(shown.splitlines()) == 3, shown
    state = a.status()
    assert [vnode["id"] for vnode in state["vnodes"]] == [place["id"] for place in state["places"]] != []
    assert state["services"].keys() - {"copies"} == state["together"].keys() - {"keeping"}
    same = ("https://www.example.org:443/Path/?b=1&a=2#top", "https://example.org/path?a=2&b=1")
    assert a.owner(same[0]) == a.owner(same[1])
    for arguments, text in [(("http://",), "host"), ((), "name a URL")]:
        done = a.run("ring", "lookup", *arguments)
        assert done.returncode != 0 and text in done.stderr, done.stderr
    b.stop()
    assert "no node runs" in b.run("ring", "lookup", "http://example.org/").stderr


def test_by_host_all_of_a_host_has_one_owner(node):
    a, b, c = node(2), node(3), node(4)
    found(a, "--open", "--mapping", "host")
    a.start()
    b.start("--join", a.place)
    c.start("--join", a.place)
    await_agreement([a, b, c])
    owners = {n.owner(f"http://example.org/{i}") for n in (a, b, c) for i in range(20)}
    assert len(owners) == 1
    assert len({a.owner(f"http://{i}.example/") for i in range(50)}) == 3


def test_who_is_in_no_ring_cannot_look_up(node):
    a = node(2)
    a.directory.mkdir()
    a.start("--join", "127.0.0.9:9")
    done = a.run("ring", "lookup", "http://example.org/")
    assert done.returncode == 1 and "in no ring" in done.stderr


def test_a_contact_that_is_none_is_refused(node):
    a = node(2)
    a.directory.mkdir()
    for contact in ("", ":7070", "host:0", "host:port", "a:1:2"):
        done = a.run("serve", "--address", a.ip, "--http", "0", "--port", "0", "--join", contact)
        assert done.returncode == 1 and "is no HOST" in done.stderr, (contact, done.stderr)
