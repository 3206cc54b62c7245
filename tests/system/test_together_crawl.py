"""Many nodes crawl a large site together, and some of them die in the middle. MNEMON_TOGETHER=12,5000,1 says how many nodes and
pages there are, and places of each node; without it the smaller ones of test_together.py are enough."""
import os

import pytest

from ringnodes import await_agreement, found, wait_for
from test_together import NODES, PAGES, PLACES, SERVE, Origin, crawl, held, node  # noqa: F401 (a fixture by its name)

LEVEL = 3
HOSTS = 10
DELAY_S = 0.01
RULES = "[ring]\ngrace = 20 s\ncompare = 5 s\n"


@pytest.fixture
def origin():
    made = Origin(HOSTS, PAGES // HOSTS)
    yield made
    made.close()


def low(nodes, origin):
    having = [{capture[0] for capture in held(each)} for each in nodes]
    return [url for url in origin.urls() if sum(url in urls for urls in having) < LEVEL]


def keys(nodes):
    return sum(each.status()["together"]["keeping"]["keys"] for each in nodes)


def gaps(origin):
    """Of each host, the time between the end of one request and the begin of the next, by whichever node."""
    for name in origin.names:
        times = sorted((begin, end) for host, _, begin, end in list(origin.asked) if host == name)
        yield from (later[0] - earlier[1] for earlier, later in zip(times, times[1:]))


@pytest.mark.skipif("MNEMON_TOGETHER" not in os.environ, reason="MNEMON_TOGETHER names no sizes, as 12,5000,1")
def test_a_large_crawl_ends_though_three_die(node, origin):
    patience_s = 300 + len(origin.urls()) // 5
    nodes = [node(number) for number in range(2, 2 + NODES)]
    for each in nodes:
        each.directory.mkdir()
        (each.directory / "mnemon.conf").write_text(RULES)
    found(nodes[0], "--open", "--replicas", str(LEVEL))
    serve = (*SERVE, "--capacity", str(PLACES))
    nodes[0].start(*serve)
    for each in nodes[1:]:
        each.launch("--join", nodes[0].place, *serve)
    for each in nodes[1:]:
        each.ready()
    await_agreement(nodes, patience_s)
    crawl(nodes, origin, "--delay", f"{round(DELAY_S * 1000)} ms")
    wait_for(lambda: 2 * len(origin.fetched()) > len(origin.urls()), lambda: str(len(origin.fetched())), patience_s)
    before = origin.fetched()
    assert len(before) == len(set(before)), "each page once"
    dead = nodes[2::4][:3]
    for each in dead:
        each.kill()
    living = [each for each in nodes if each not in dead]
    wait_for(lambda: set(origin.fetched()) >= origin.urls(), lambda: f"{len(set(origin.fetched()))} of {len(origin.urls())}", patience_s)

    # Only what died with the three was fetched again; the hosts were never asked faster than by one node.
    again = len(origin.fetched()) - len(origin.urls())
    assert again < len(origin.urls()) // 10, again
    assert min(gaps(origin)) > DELAY_S * 0.8

    wait_for(lambda: keys(living) >= LEVEL * len(origin.urls()), lambda: str(keys(living)), patience_s)
    wait_for(lambda: not low(living, origin), lambda: f"{len(low(living, origin))} with too few copies", patience_s)
