"""Full text over the ring: five nodes answer as one archive, and say truly what was not searched."""
import json
import pathlib
import signal
import time
import urllib.parse
import urllib.request

import pytest

from releases import previous_program
from ringnodes import await_agreement, found, many, wait_for
from test_search import write_warc

SITE = "http://site.example"
PAGES = 60
REPLICAS = 2


def page_url(number):
    return f"{SITE}/p{number}"


EVERYTHING = {page_url(number) for number in range(PAGES)}


@pytest.fixture
def node(mnemon, tmp_path):
    with many(mnemon, tmp_path) as make:
        yield make


def search(each, q="heron", **arguments):
    arguments = urllib.parse.urlencode({"q": q, "limit": 100, **arguments})
    return json.loads(each.get("/api/v1/search?" + arguments))


def urls(answer):
    return [result["url"] for result in answer["results"]]


def is_whole(answer):
    ring = answer.get("ring", {})
    return ring.get("parts", 0) > 0 and ring["parts_searched"] == ring["parts"] and "partial" not in answer


def start_ring(node, tmp_path, count=5, settings=(), programs={}):
    nodes = [node(number) for number in range(2, 2 + count)]
    for number, program in programs.items():
        nodes[number].program = program
    for number, each in enumerate(nodes):
        each.directory.mkdir(exist_ok=True)
        more = settings[number] if number < len(settings) else ""
        (each.directory / "mnemon.conf").write_text(f"[ring]\ncompare = 1 s\n{more}\n")
    found(nodes[0], "--open", "--replicas", str(REPLICAS))
    for each in nodes:
        each.start(*(("--join", nodes[0].place) if each is not nodes[0] else ()))
    await_agreement(nodes)
    pages = [(page_url(i), "2025-05-01", f"<title>Page {i}</title><p>A grey heron, number{i} of them. "
              + "Reeds and water. " * (i % 7)) for i in range(PAGES)]
    write_warc(tmp_path / "pages.warc", pages)
    done = nodes[0].run("import", str(tmp_path / "pages.warc"))
    assert done.returncode == 0, done.stderr
    return nodes


def held_by(each):
    """What its own index has, as it says itself."""
    return set(urls(search(each, scope="node")))


def copies_of(nodes):
    """Of the page of which there are fewest, in the indexes of nodes that can search."""
    held = [held_by(each) for each in nodes]
    return min(sum(url in urls_held for urls_held in held) for url in EVERYTHING)


def await_whole(nodes, copies=REPLICAS):
    """Every page has its copies, and every node finds all of them in a ring that is all searched."""
    wait_for(lambda: copies_of(nodes) >= copies, lambda: f"{copies_of(nodes)} copies of a page")
    for each in nodes:
        wait_for(lambda: is_whole(search(each)) and set(urls(search(each))) == EVERYTHING,
                 lambda: str(search(each)["ring"]) + str(len(search(each)["results"])))


def freeze(nodes):
    """And wait until none of their threads runs any more."""
    for each in nodes:
        each.process.send_signal(signal.SIGSTOP)
    tasks = [task for each in nodes for task in pathlib.Path(f"/proc/{each.process.pid}/task").iterdir()]
    wait_for(lambda: all((task / "stat").read_text().rsplit(")", 1)[1].split()[0] == "T" for task in tasks),
             "they run on")


def thaw(nodes):
    for each in nodes:
        each.process.send_signal(signal.SIGCONT)


def test_every_node_finds_all_and_goes_on_when_one_is_killed(node, tmp_path):
    nodes = start_ring(node, tmp_path)
    await_whole(nodes)
    wait_for(lambda: all(held_by(each) for each in nodes), "each has a part")
    answers = [search(each) for each in nodes]
    for each, answer in zip(nodes, answers):
        assert len(urls(answer)) == len(set(urls(answer))) == PAGES and not answer["has_more"]
        assert answer["ring"]["answered"] <= answer["ring"]["nodes"] == 5
        scores = [result["score"] for result in answer["results"]]
        assert scores == sorted(scores, reverse=True)
        places = {other.place for other in nodes if other is not each}
        assert {result["node"] for result in answer["results"] if "node" in result} <= places
        assert answer["ring"]["text"].startswith("Searched: the whole ring of 5 nodes"), answer["ring"]
    assert min(answer["ring"]["answered"] for answer in answers) < 5, "two copies of each: not all need be asked"

    # Pages of results, each found once; a rare word; the period; the local part; a wrong question.
    asker = nodes[3]
    listed = [url for offset in range(0, PAGES, 25) for url in urls(search(asker, limit=25, offset=offset))]
    assert sorted(listed) == sorted(EVERYTHING)
    for number in (0, 17, PAGES - 1):
        answer = search(asker, f"number{number}")
        assert urls(answer) == [page_url(number)] and is_whole(answer)
        (result,) = answer["results"]
        assert result["timestamp"] == "20250501000000" and f"number{number}" in result["snippet_parts"][1]
    assert urls(search(asker, to="2024")) == [] and urls(search(asker, host="other.example")) == []
    shown = asker.get("/search?q=heron")
    assert "id=scope" in shown and "Searched: the whole ring of 5 nodes" in shown and "found by 127.0.0." in shown
    done = asker.run("search", "--limit", "100", "grey", "heron")
    assert done.returncode == 0 and done.stdout.count(SITE) == PAGES, done
    assert "Searched: the whole ring of 5 nodes" in done.stdout
    done = asker.run("search", "--json", "--local", "heron")
    assert done.returncode == 1 and "the other nodes of the ring" in done.stderr, done
    assert asker.run("search", '"').returncode == 1

    # One is killed. The other holders answer in its place, at once; nothing that it held is lost to the search.
    nodes[1].kill()
    begin = time.monotonic()
    answer = search(asker)
    assert set(urls(answer)) == EVERYTHING, answer["ring"]
    assert time.monotonic() - begin < 30, "bounded"
    rest = [each for each in nodes if each is not nodes[1]]
    await_whole(rest)


def test_what_nobody_answers_for_is_named(node, tmp_path):
    nodes = start_ring(node, tmp_path)
    await_whole(nodes)
    asker, *others = nodes
    away = others[:3]  # of five: with two copies, some pages are on no other node
    held = {each: held_by(each) for each in nodes}
    here = set().union(*(held[each] for each in nodes if each not in away))
    freeze(away)
    try:
        answer = search(asker)
        ring, names = answer["ring"], {f"node {each.place}" for each in away}
        # As long as the ring has them, what only they hold is said to be missing; and all else is found.
        assert ring["nodes"] == 5, "the ring knows already that they are gone"
        assert here <= set(urls(answer))
        assert answer["partial"] and set(answer["unanswered"]) >= names, answer["unanswered"]
        assert 0 < ring["missing_percent"] < 100 and ring["parts_missing"] > 0
        assert abs(ring["missing_percent"] + ring["unsure_percent"] + ring["searched_percent"] - 100) < 0.1
        for each in away:
            assert f"{each.place} does not answer" in ring["text"], ring["text"]
        assert not any(each.place in ring["text"].split("Pages may")[0] for each in nodes if each not in away)
    finally:
        thaw(away)
    await_whole(nodes)


@pytest.mark.parametrize("why", ["switched off", "the release before"])
def test_a_node_without_the_feature_is_named_and_its_pages_come_from_others(node, tmp_path, why):
    is_old = why == "the release before"
    settings = ["", "" if is_old else "[search]\nenabled = no"]
    nodes = start_ring(node, tmp_path, settings=settings, programs={1: previous_program()} if is_old else {})
    unable = nodes[1]
    await_whole([each for each in nodes if each is not unable], copies=1)
    answer = search(nodes[0])
    assert answer["ring"]["nodes"] == 5 and not any(r.get("node") == unable.place for r in answer["results"])
    # Its neighbour goes, too: now nobody can search what the two held. The page and the command say so.
    others = [each for each in nodes[2:]]
    freeze(others)
    try:
        answer = search(nodes[0])
        assert f"{unable.place} has no search over the ring" in answer["ring"]["text"], answer["ring"]
        # Once the ring has given them up, they are named as those that have gone.
        places = {each.place for each in others}
        wait_for(lambda: set(search(nodes[0])["ring"]["gone"]) == places, lambda: str(search(nodes[0])["ring"]))
        assert "have gone lately" in search(nodes[0])["ring"]["text"]
        shown = nodes[0].get("/search?q=heron")
        assert "id=gone" in shown and all(each.place in shown for each in others)
        done = nodes[0].run("search", "heron")
        assert done.returncode == 1 and "have gone lately" in done.stderr, done
    finally:
        thaw(others)
