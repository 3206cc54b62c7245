"""A node that was away while the ring archived everything three times more: it is brought up to date, not filled again."""
import os

import pytest

from ringnodes import await_agreement, found, wait_for
from test_together import SERVE, Origin, held, node  # noqa: F401 (a fixture by its name)

PATIENCE_S = 180
LEVEL = 3
PERIODS = 3
RULES = "[ring]\ngrace = 6 s\ncompare = 2 s\n"


class Paper(Origin):
    """One page of three is another one at each visit."""

    def answer(self, host, path):
        status, kind, body = super().answer(host, path)
        if kind == "text/html" and sum(path.encode()) % 3 == 0:
            with self.lock:
                body += b" edition %d" % sum((host, path) == (asked[0], asked[1]) for asked in self.asked)
        return status, kind, body + b" " * 20000


@pytest.fixture
def origin():
    made = Paper(1, 18)
    yield made
    made.close()


def keeping(each):
    return each.status()["together"]["keeping"]


def holdings(nodes):
    return {each: held(each) for each in nodes}


def few(nodes, captures):
    having = holdings(nodes)
    return {c for c in captures if sum(c in kept for kept in having.values()) < LEVEL}


def visits(origin):
    fetched = origin.fetched()
    return min(fetched.count(url) for url in origin.urls())


def end_crawl(nodes):
    name = next(path.name for path in (nodes[0].directory / "jobs").iterdir())
    assert nodes[0].run("job", "remove", "--ring", name).returncode == 0
    for each in nodes:
        wait_for(lambda each=each: not any((each.directory / "jobs").iterdir()), f"the end of the job at {each.place}", PATIENCE_S)


def await_rest(nodes, what):
    """All captures that there are have their copies, twice in a row the same."""
    last = [None]

    def is_at_rest():
        everything = set().union(*holdings(nodes).values())
        before, last[0] = last[0], everything
        return before == everything and not few(nodes, everything)

    wait_for(is_at_rest, what, PATIENCE_S)
    return last[0]


@pytest.mark.skipif("MNEMON_TOGETHER" not in os.environ, reason="a longer one, with MNEMON_TOGETHER=12,5000,1")
def test_who_was_away_for_three_periods_gets_what_was_new(node, origin):
    nodes = [node(number) for number in range(2, 7)]
    for each in nodes:
        each.directory.mkdir()
        (each.directory / "mnemon.conf").write_text(RULES)
    found(nodes[0], "--open", "--replicas", str(LEVEL))
    nodes[0].start(*SERVE)
    for each in nodes[1:]:
        each.start("--join", nodes[0].place, *SERVE)
    await_agreement(nodes)
    added = nodes[0].run("job", "add", "--ring", f"http://{origin.names[0]}/", "--scope", "host", "--delay", "0", "--period", "3 s")
    assert added.returncode == 0, added.stderr
    wait_for(lambda: visits(origin) >= 1, lambda: str(visits(origin)), PATIENCE_S)
    away, others = nodes[3], [*nodes[:3], nodes[4]]
    wait_for(lambda: keeping(away)["keys"] > len(origin.urls()) // 3, lambda: str(keeping(away)), PATIENCE_S)
    away.stop()
    had = held(away)
    left_at = visits(origin)
    wait_for(lambda: visits(origin) >= left_at + PERIODS, lambda: str(visits(origin)), PATIENCE_S)
    end_crawl(others)

    # It counts as gone: what it had is copied anew among those that are there.
    everything = await_rest(others, "enough copies without it")

    away.start(*SERVE)
    await_agreement(nodes)

    own_urls = {url for url in {c[0] for c in everything} if away.place in wait_for(lambda: away.owner(url, LEVEL), f"owners of {url}")}

    def lacking():
        return {c for c in everything - held(away) if c[0] in own_urls}

    wait_for(lambda: not lacking(), lambda: f"{len(lacking())} are missing", PATIENCE_S)
    new = held(away) - had
    assert new and keeping(away)["fetched"] <= 1.2 * len(new) + 5, "only what was new has come"
    assert keeping(away)["fetched_size"] <= 1.2 * 21000 * len({digest for _, _, digest in new}) + 5 * 21000

    assert had <= held(away), "nothing of its own is lost"

    # What was copied in its place is given up again, but never before enough others have it. robots.txt is no page of its host's
    # holders: the host's home fetched it, and no node gives up what it fetched itself.
    surplus = {c for c in had & everything if not c[0].endswith("/robots.txt")}

    def too_many():
        having = holdings(nodes)
        short = {c for c in everything if sum(c in kept for kept in having.values()) < LEVEL}
        assert not short or not short & few(nodes, short), "fewer than enough, looked at twice"
        return {c for c in surplus if sum(c in kept for kept in having.values()) > LEVEL}

    wait_for(lambda: not too_many(), lambda: f"{len(too_many())} have too many copies: {list(too_many())[:3]}", PATIENCE_S)
    assert sum(keeping(each)["released"] for each in nodes) > 0
