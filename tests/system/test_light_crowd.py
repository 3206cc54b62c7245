"""Light members take part in the crowd through a relay, and choose another one when it dies."""
import contextlib
import json
import re
import time
import urllib.error

import pytest

import ringnodes
from lightnodes import Light
from ringnodes import await_agreement, found, wait_for
from test_crowd import archive, configure, crowd, locate, node, origin  # noqa: F401: fixtures

BUSY_S = 120
ANOTHER_S_MAX = 10


class LightProxy(Light):
    command = ("proxy", "--listen", "127.0.0.1:0")


@pytest.fixture
def light(mnemon, tmp_path):
    made = []

    def make(number, kind=Light):
        made.append(kind(mnemon, tmp_path / f"light{number}", "127.0.0.1"))
        made[-1].directory.mkdir()
        return made[-1]

    yield make
    ringnodes.end(made)


def start_members(node, count, *lines):  # noqa: F811
    nodes = [node(2 + i, ip=f"127.0.9.{2 + i}") for i in range(count)]
    for number, each in enumerate(nodes):
        configure(each, *(("offers = kept",) if number == 0 else ()), *lines)
    found(nodes[0], "--open", "--replicas", "1")
    nodes[0].start("--allow-private")
    for each in nodes[1:]:
        each.start("--allow-private", "--join", nodes[0].place)
    await_agreement(list(nodes))
    wait_for(lambda: all(len(crowd(n).get("view", [])) == count - 1 for n in nodes), lambda: str([crowd(n) for n in nodes]), BUSY_S)
    return nodes


def relayed(each):
    return crowd(each).get("relayed", {})


def relay_of(each, nodes):
    """The member that is its relay, once it has one."""
    wait_for(lambda: relayed(each).get("relay"), lambda: str(crowd(each)) + each.said)
    return next(n for n in nodes if n.place == relayed(each)["relay"])


def is_found(each, origin):  # noqa: F811
    return locate(each, origin.url).get("size") == len(origin.body)


def reads(each, origin):  # noqa: F811
    with contextlib.suppress(urllib.error.HTTPError):
        return each.get(f"/web/2id_/{origin.url}").encode() == origin.body
    return False


def test_light_members_find_and_are_found_through_their_relays(node, light, origin):  # noqa: F811
    nodes = start_members(node, 3)
    archive(nodes[0], origin)
    lights = [light(i).start("--join", nodes[i].place) for i in range(2)]
    relays = [relay_of(each, nodes) for each in lights]
    for each in lights:
        assert re.search(r"^relay +in the crowd through 127\.0\.9\.\d+:\d+ since \d{4}-\S+Z$", each.run("ring", "status").stdout, re.MULTILINE)
    for each in nodes:
        wait_for(lambda: crowd(each)["relay"]["light_members"] == relays.count(each), lambda: str(crowd(each)))
        said = each.run("ring", "status").stdout
        assert (f"of {relays.count(each)} light member" in said) == (each in relays), said

    # From a member that has it.
    wait_for(lambda: is_found(lights[0], origin), lambda: str(locate(lights[0], origin.url)) + lights[0].said)
    assert origin.fetched == 1, "nobody fetches on another's word"
    assert relayed(lights[0])["searches"] > 0

    # Then only the light member gives it: to the relay, which checks it and gives it to others.
    nodes[0].stop()
    configure(nodes[0], "part = mute")
    nodes[0].start("--allow-private")
    await_agreement(list(nodes))
    nodes[1:] = [n for n in nodes[1:] if n is not nodes[0]]
    for each in lights:
        relay_of(each, nodes)
    wait_for(lambda: is_found(lights[1], origin), lambda: str(locate(lights[1], origin.url)) + lights[1].said)
    assert sum(crowd(n)["relay"]["taken"] for n in nodes[1:]) == 1
    for each in nodes[1:]:
        wait_for(lambda: is_found(each, origin), lambda: str(locate(each, origin.url)) + each.said)
    assert not any("blamed" in each.said for each in [*nodes, *lights])
    for each in nodes:  # nobody is ever sent to a light member
        assert {n["address"] for n in crowd(each)["view"]} <= {n.place for n in nodes}


def test_another_relay_is_chosen_when_one_dies(node, light, origin):  # noqa: F811
    nodes = start_members(node, 3)
    archive(nodes[0], origin)
    reader = light(0).start("--join", nodes[0].place)
    wait_for(lambda: is_found(reader, origin), lambda: str(locate(reader, origin.url)) + reader.said)
    first = relay_of(reader, nodes)
    begun = time.monotonic()
    first.kill()
    wait_for(lambda: relayed(reader)["relay"] not in (first.place, None), lambda: str(relayed(reader)) + reader.said)
    took = time.monotonic() - begun
    print(f"another relay after {took:.1f} s")
    assert took < ANOTHER_S_MAX, took
    assert f"the relay {first.place} does not answer any more" in reader.said
    for each in nodes:
        if each is not first:
            each.kill()
    wait_for(lambda: relayed(reader)["relay"] is None, lambda: str(relayed(reader)))
    wait_for(lambda: "not in the crowd: " in reader.run("ring", "status").stdout, lambda: reader.run("ring", "status").stdout)


def test_members_that_relay_nobody_are_not_chosen_and_read_from(node, light, origin):  # noqa: F811
    nodes = start_members(node, 2, "relay = 0")
    archive(nodes[0], origin)
    reader = light(0).start("--join", nodes[0].place)
    wait_for(lambda: relayed(reader).get("why_none") == "no member that is known can be one", lambda: str(crowd(reader)))
    assert "not in the crowd: no member that is known can be one" in reader.run("ring", "status").stdout
    assert "relay" not in crowd(nodes[0])
    wait_for(lambda: reads(reader, origin), lambda: reader.said)  # a new capture is at its holder a moment later
    full = start_one_more(node, nodes, "relay = 1")
    assert relay_of(reader, [*nodes, full]) is full
    other = light(1).start("--join", nodes[0].place)
    wait_for(lambda: relayed(other).get("why_none") == "no member that can be one answers and has room", lambda: str(crowd(other)))
    reader.stop()
    assert relay_of(other, [*nodes, full]) is full


def start_one_more(node, nodes, *lines):  # noqa: F811
    each = node(9, ip="127.0.9.9")
    configure(each, *lines)
    each.start("--allow-private", "--join", nodes[0].place)
    await_agreement([*nodes, each])
    return each


def test_a_proxy_is_a_light_member_unless_it_was_more(node, light, origin):  # noqa: F811
    nodes = start_members(node, 2)
    archive(nodes[0], origin)
    browser = light(0, LightProxy).start("--join", nodes[0].place)
    wait_for(lambda: browser.is_in, lambda: browser.said)
    wait_for(lambda: is_found(browser, origin), lambda: str(locate(browser, origin.url)) + browser.said)
    state = browser.status()
    assert state["light"] and json.loads(browser.get("/api/v1/status"))["store"]["captures"] == 0
    browser.stop()
    browser.start()  # it stays one
    wait_for(lambda: browser.is_in, lambda: browser.said)
    browser.stop()

    def starts_light(*command):
        browser.launch(*command)
        lines = [browser.process.stdout.readline() for _ in range(3)]
        browser.kill()
        return "as a light member" in lines[2]

    assert not starts_light("--capacity", "1", "--address", "127.0.9.7", "--port", "0")
    assert not starts_light("--address", "127.0.9.7", "--port", "0"), "others count on its copies"
    assert starts_light("--capacity", "0")
