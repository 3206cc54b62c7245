"""Who may tell the whole ring what to do: strangers may not, and nobody can keep the founder from it."""
import json
import re
import signal

import pytest

from ringnodes import await_agreement, found, wait_for
from test_ring import invite
from test_together import Origin, files, node, read, start_ring  # noqa: F401 (a fixture by its name)
from test_together_hostile import liar  # noqa: F401 (likewise)

SERVE = ("--allow-private", "--allow-private-ring")


@pytest.fixture
def origin():
    made = Origin(1, 3)
    yield made
    made.close()


def invited_ring(node, count):
    """The founder and others, all by invitation."""
    nodes = [node(2 + number) for number in range(count)]
    found(nodes[0])
    nodes[0].start(*SERVE)
    for each in nodes[1:]:
        each.start("--join", nodes[0].place, "--token", invite(nodes[0]), *SERVE)
    await_agreement(nodes)
    return nodes


def decrees(each):
    return {d["name"]: d for d in each.status()["services"]["decrees"]}


def access_files(each):
    return files(each, "access")


def test_a_flood_of_strangers_decrees_does_not_keep_a_takedown_out(node, liar, origin):
    good = [node(2), node(3)]
    url = f"http://{origin.names[0]}/"
    assert good[0].run("archive", url, "--scope", "page", "--delay", "0", "--quiet", "--allow-private").returncode == 0
    found(good[0])
    good[0].start(*SERVE)
    good[1].start("--join", good[0].place, "--token", invite(good[0]), *SERVE)
    bad = node(30)
    bad.program = liar
    bad.start("--join", good[0].place, "--token", invite(good[0]), *SERVE,
              wrap=("env", "RING_LIE=decrees", f"RING_LIE_URL=http://{origin.names[0]}/secret"))
    await_agreement([*good, bad])
    for each in good:
        wait_for(lambda each=each: each.status()["services"]["decrees_refused"] > 4000, "the flood arrives")

    done = good[0].run("ring", "takedown", url)
    assert done.returncode == 0, done.stderr
    assert "is no longer shown on this node" in done.stdout and re.search(r"\d of 3 nodes have confirmed", done.stdout), done.stdout
    assert read(good[0], url) == "404 Not Found", "in force here when the command says so"
    wait_for(lambda: access_files(good[1]) == access_files(good[0]) != [], "the rule at the other node")
    wait_for(lambda: read(good[1], url) == "404 Not Found", "in force there")
    for each in good:
        assert not [j for j in files(each, "jobs") if j.startswith("ring-")] and not [n for n in decrees(each) if n.startswith("stranger")]
    assert not [path for path in origin.fetched() if "secret" in path]


def test_a_takedown_says_who_has_not_confirmed_it(node):
    a, b, c = invited_ring(node, 3)
    done = a.run("ring", "takedown", "http://example.org/private*")
    assert done.returncode == 0 and "3 of 3 nodes have confirmed it" in done.stdout, done.stdout + done.stderr
    for each in (b, c):
        assert access_files(each) == access_files(a) != [], "who confirms has the rule"

    c.process.send_signal(signal.SIGSTOP)
    try:
        done = a.run("ring", "takedown", "http://example.org/other")
        assert done.returncode == 0 and "2 of 3 nodes have confirmed it" in done.stdout, done.stdout + done.stderr
        assert f"not confirmed by {c.place}" in done.stdout and f"not confirmed by {b.place}" not in done.stdout
    finally:
        c.process.send_signal(signal.SIGCONT)
    wait_for(lambda: all(d["confirmed"] == 3 for d in decrees(a).values()), lambda: str(decrees(a)))


def test_a_takedown_that_the_node_cannot_obey_is_no_success(node):
    a, b = invited_ring(node, 2)
    (a.directory / "access.aclj").write_text("nonsense\n")
    done = a.run("ring", "takedown", "http://example.org/private*")
    assert done.returncode == 1 and "not in force on this node" in done.stderr and "access.aclj" in done.stderr, done.stdout + done.stderr
    (a.directory / "access.aclj").unlink()
    wait_for(lambda: decrees(a) and all(d["in_force"] for d in decrees(a).values()), lambda: str(decrees(a)))


def test_a_takedown_without_a_node_is_in_force_on_the_disk(node):
    alone = node(2)
    found(alone)
    done = alone.run("ring", "takedown", "http://example.org/private*")
    assert done.returncode == 0 and "no node runs" in done.stdout, done.stderr
    assert len(access_files(alone)) == 1
    assert alone.run("ring", "restore", "http://example.org/private*").returncode == 0
    assert access_files(alone) == []


def test_members_jobs_carry_their_invitation_and_do_not_ignore_robots(node):
    a, b = invited_ring(node, 2)
    rude = b.run("job", "add", "--ring", "http://127.0.0.1:9/", "--ignore-robots")
    assert rude.returncode == 1 and "only the founder may let jobs of the ring ignore robots.txt" in rude.stderr
    assert b.run("job", "add", "--ring", "http://127.0.0.1:9/").returncode == 0
    wait_for(lambda: len(files(a, "jobs")) == 1, "the member's job at the founder")
    assert a.run("job", "add", "--ring", "http://127.0.0.1:9/", "--ignore-robots", "--scope", "page").returncode == 0
    wait_for(lambda: len(files(b, "jobs")) == 2, "the founder's job at the member")

    # A member that is removed has said nothing.
    assert a.run("ring", "remove", b.key).returncode == 0
    wait_for(lambda: len(decrees(a)) == 1, lambda: str(decrees(a)))
    wait_for(lambda: len([j for j in files(a, "jobs") if (a.directory / "jobs" / j / "job.conf").exists()]) == 1, "its job is over")


def failed_count(each):
    """URLs of jobs that the ring shares which could not be fetched here."""
    states = [json.loads(path.read_text()) for path in each.directory.glob("jobs/ring-*/state.json")]
    return sum(state["failed"] for state in states)


@pytest.mark.parametrize("serve, is_fetched", [(("--allow-private",), False), (("--allow-private-ring",), True)])
def test_private_addresses_for_jobs_of_the_ring_need_a_switch_of_their_own(node, origin, serve, is_fetched):
    a, b = start_ring(node, 2, serve=serve)
    shared, local = (f"http://{origin.names[0]}/p{number}.html" for number in (1, 2))
    assert a.run("job", "add", "--ring", shared, "--scope", "page", "--delay", "0").returncode == 0
    if is_fetched:
        wait_for(lambda: shared in origin.fetched(), "the ring's job is run")
    else:
        wait_for(lambda: failed_count(a) + failed_count(b) > 0, "the ring's job is refused")
        assert not origin.asked
    assert a.run("job", "add", local, "--scope", "page", "--delay", "0").returncode == 0
    if is_fetched:  # the one switch is not the other
        wait_for(lambda: any(json.loads(p.read_text())["failed"] for p in a.directory.glob("jobs/127*/state.json")), "refused")
        assert local not in origin.fetched()
    else:
        wait_for(lambda: local in origin.fetched(), "the node's own job is run")
        assert shared not in origin.fetched()
