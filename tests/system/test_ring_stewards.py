"""Stewards: a ring outlives its founder's key; k of n agree; keys rotate; members are replaced without a new ring."""
import re
import shutil

import pytest

from ringnodes import await_agreement, found, wait_for
from releases import previous_program
from test_ring import invite
from test_ring_decrees import SERVE
from test_together import Origin, node, read  # noqa: F401 (a fixture by its name)
from test_versions import complaints


@pytest.fixture
def previous():
    return previous_program()


@pytest.fixture
def origin():
    made = Origin(1, 2)
    yield made
    made.close()


def key(each):
    return re.search(r"node +(?:\S+, )?(\S+?)(?:,|$)", each.run("ring", "status").stdout, re.MULTILINE)[1]


def said(done):
    return done.stdout + done.stderr


def act_of(done):
    assert done.returncode == 0, said(done)
    return re.search(r"ring sign ([0-9a-f]{32})", done.stdout)[1]


def version(each):
    return each.status()["charter"]["version"]


def stewards(each):
    charter = each.status()["charter"]
    return charter["generation"], sorted(charter["stewards"])


def await_act(each, act, signed=1):
    """The act is known there, with so many signatures."""
    def is_there():
        return any(a["id"] == act and len(a["signed_by"]) >= signed for a in each.status()["services"]["acts"])
    wait_for(is_there, lambda: said(each.run("ring", "pending")))


def sign(each, act):
    await_act(each, act)
    done = each.run("ring", "sign", act[:10])
    assert done.returncode == 0, said(done)
    return done.stdout


def invited(steward, other):
    """A token that two stewards have signed."""
    proposed = steward.run("ring", "invite")
    act = act_of(proposed)
    early = steward.run("ring", "invite", "--act", act)
    assert early.returncode == 1 and "only 1 of the 2 stewards" in early.stderr, said(early)
    assert "enough stewards have signed" in sign(other, act)
    await_act(steward, act, 2)
    done = steward.run("ring", "invite", "--act", act)
    assert done.returncode == 0, said(done)
    return done.stdout.strip()


def test_the_ring_goes_on_without_its_founder(node, origin):
    a, b, c, d, e = (node(2 + number) for number in range(5))
    url = f"http://{origin.names[0]}/"
    found(a)
    a.start(*SERVE)
    for each in (b, c):
        each.start("--join", a.place, "--token", invite(a), *SERVE)
    await_agreement([a, b, c])
    done = b.run("archive", url, "--scope", "page", "--delay", "0", "--quiet", "--allow-private")
    keys = {each: key(each) for each in (a, b, c)}

    # An old charter is that of one steward, the founder; it hands over to three, of whom two must agree.
    refused = b.run("ring", "amend", "--steward", keys[b])
    assert refused.returncode == 1 and "only the founder" in refused.stderr
    done = a.run("ring", "amend", *(word for each in (a, b, c) for word in ("--steward", keys[each])), "--needed", "2")
    assert done.returncode == 0 and 'version 2 of "films" signed' in done.stdout, said(done)
    for each in (a, b, c):
        wait_for(lambda each=each: stewards(each) == (1, sorted(keys.values())), lambda: a.said + b.said)
    assert "must sign: amend 2, invite 2, rule 2, delete 2, job 2" in b.run("ring", "status").stdout

    # The founder alone is no longer enough.
    act = act_of(a.run("ring", "takedown", url))
    assert a.status()["services"]["decrees"] == []
    a.stop()
    shutil.rmtree(a.directory)  # and now its key is lost

    # Two of three go on: an amendment, an invitation.
    act = act_of(b.run("ring", "amend", "--replicas", "2"))
    await_act(c, act)
    pending = c.run("ring", "pending")
    assert "replicas 2 instead of 6" in pending.stdout and f"signed by {keys[b]}" in pending.stdout, pending.stdout
    assert version(b) == version(c) == 2
    again = b.run("ring", "sign", act)
    assert again.returncode == 1 and "has signed it already" in again.stderr, said(again)
    other = b.run("ring", "amend", "--replicas", "3")
    assert other.returncode == 1 and "only one of them can count" in other.stderr, said(other)
    sign(c, act)
    for each in (b, c):
        wait_for(lambda each=each: each.status()["charter"]["replicas"] == 2, lambda: b.said + c.said)
        assert version(each) == 3

    # The place of the lost key goes to a new member's.
    d.start("--join", b.place, "--token", invited(b, c), *SERVE)
    await_agreement([b, c, d])
    keys[d] = key(d)
    act = act_of(c.run("ring", "amend", *(word for each in (b, c, d) for word in ("--steward", keys[each])), "--needed", "2"))
    assert f"no longer {keys[a]}" in sign(b, act)
    now = (2, sorted(keys[each] for each in (b, c, d)))
    for each in (b, c, d):
        wait_for(lambda each=each: stewards(each) == now, lambda: b.said + c.said + d.said)
    act = act_of(d.run("ring", "remove", keys[a]))
    sign(b, act)
    for each in (b, c, d):
        wait_for(lambda each=each: each.status()["charter"]["removed"] == [keys[a]], lambda: b.said + c.said + d.said)

    # The one that is new takes down, with another, and all obey.
    act = act_of(d.run("ring", "takedown", url))
    assert "rules" in sign(c, act)
    for each in (b, c, d):
        wait_for(lambda each=each: [(x["author"], x["in_force"]) for x in each.status()["services"]["decrees"]] == [("the stewards", True)],
                 lambda: json_of(b))
        assert read(each, url) == "404 Not Found"
    wait_for(lambda: all(a["kind"] != "decree" for a in d.status()["services"]["acts"]), "what is done waits for nobody")

    # A node that joins now believes all of it, from the founder on.
    e.start("--join", d.place, "--token", invited(d, c), *SERVE)
    await_agreement([b, c, d, e])
    assert stewards(e) == now and version(e) == version(b)
    wait_for(lambda: [x["in_force"] for x in e.status()["services"]["decrees"]] == [True], lambda: e.said)
    for each in (b, c, d, e):
        assert complaints(each) == [], complaints(each)


def hand_over(a, b):
    keys = sorted(key(each) for each in (a, b))
    done = a.run("ring", "amend", *(word for each in keys for word in ("--steward", each)), "--needed", "2")
    assert done.returncode == 0, said(done)
    for each in (a, b):
        wait_for(lambda each=each: stewards(each) == (1, keys), lambda: a.said + b.said)


def test_nodes_of_the_release_before_go_on_with_the_charter_that_they_can_read(node, previous, origin):
    a, b, old, young = (node(2 + number) for number in range(4))
    old.program = young.program = previous
    url = f"http://{origin.names[0]}/"
    found(a)
    a.start("--allow-private")
    tokens = [invite(a) for _ in range(3)]
    for each, token in ((b, tokens[0]), (old, tokens[1])):
        each.start("--join", a.place, "--token", token, "--allow-private")
    await_agreement([a, b, old])
    done = b.run("archive", url, "--scope", "page", "--delay", "0", "--quiet", "--allow-private")
    assert done.returncode == 0, said(done)
    # What the founder decreed alone stays in force everywhere.
    assert a.run("ring", "takedown", url + "*").returncode == 0
    wait_for(lambda: len(old.status()["services"]["decrees"]) == 1, lambda: old.said)
    hand_over(a, b)
    sign(b, act_of(a.run("ring", "amend", "--replicas", "2")))
    sign(a, act_of(b.run("ring", "takedown", url + "1")))
    for each in (a, b):
        wait_for(lambda each=each: each.status()["charter"]["replicas"] == 2, lambda: a.said + b.said)
        wait_for(lambda each=each: [x["in_force"] for x in each.status()["services"]["decrees"]] == [True, True],
                 lambda: json_of(a))
    # One more of the release before comes, through a node with stewards, and learns what it can read.
    young.start("--join", b.place, "--token", tokens[2], "--allow-private")
    await_agreement([a, b, old, young])
    for each in (old, young):
        assert version(each) == 1
        wait_for(lambda each=each: len(each.status()["services"]["decrees"]) == 1, lambda each=each: each.said)
    told = [sentence for each in (a, b, old, young) for sentence in complaints(each)]
    assert not [sentence for sentence in told if not sentence.startswith("no answer from")], told
    # Also after all were away.
    for each in (a, b, old, young):
        each.stop()
    for each in (a, b, old, young):
        each.start("--allow-private")
    await_agreement([a, b, old, young])
    assert [version(each) for each in (a, b, old, young)] == [3, 3, 1, 1]


def json_of(each):
    return str(each.status()["services"]["decrees"])
