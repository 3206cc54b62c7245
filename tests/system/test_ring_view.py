"""Any node shows all nodes and how far the jobs are, each by its own signed word, and is held to the truth: while they crawl, while one
is down, and beside a node of the release before, which says nothing."""
import json
import re
import time

import pytest

import ringnodes
from releases import previous_program
from ringnodes import await_agreement, found, wait_for
from test_together import SERVE, Origin, crawl

NET = "127.0.23"
PAGES = 40


@pytest.fixture
def nodes(mnemon, tmp_path):
    made = [ringnodes.Node(mnemon, tmp_path / f"node{i}", f"{NET}.{1 + i}") for i in range(4)]
    for each in made:
        each.directory.mkdir()
        (each.directory / "mnemon.conf").write_text("[ring]\ncompare = 1 s\n")  # so they are challenged every other second
    yield made
    ringnodes.end(made)


@pytest.fixture
def origin():
    made = Origin(2, PAGES // 2)
    yield made
    made.close()


def reports(each):
    return each.status().get("reports", {"nodes": [], "jobs": [], "missing": -1})


def seen(each, other):
    return next((node for node in reports(each)["nodes"] if node["address"] == other.place), {})


def own(each):
    """What is true of a node, as it says itself in other places, or as its files have it."""
    status = json.loads(each.get("/api/v1/status"))
    listed = each.run("list", "*", "--local", "--limit", "100000")
    assert listed.returncode == 0, listed.stderr
    return {"captures": len(listed.stdout.splitlines()), "used_size": status["store"]["used_bytes"]}


def is_true(each, other):
    said, true = seen(each, other), own(other)
    return said.get("state") == "here" and {name: said[name] for name in true} == true


def jobs(each):
    return json.loads(each.get("/api/v1/jobs"))["jobs"]


def await_word(each, others):
    wait_for(lambda: all(is_true(each, other) for other in others),
             lambda: "\n".join(f"{seen(each, other)} {own(other)}" for other in others) + each.said)


def test_any_node_shows_all_nodes_and_jobs_and_what_it_does_not_know(mnemon, nodes, origin):
    three, late = nodes[:3], nodes[3]
    version = json.loads(mnemon("version", "--json").stdout)["version"]
    found(three[0], "--open", "--replicas", "2")
    begun = time.monotonic()
    three[0].start(*SERVE)
    for each in three[1:]:
        each.start("--join", three[0].place, *SERVE)
    await_agreement(list(three))
    crawl(three, origin, "--delay", "0")
    wait_for(lambda: set(origin.fetched()) >= origin.urls(), lambda: str(len(set(origin.fetched()))))

    # all of them, at each of them, true to the capture and the byte
    for each in three:
        await_word(each, three)
        listed = reports(each)
        assert [node["self"] for node in listed["nodes"]] == [True, False, False] and listed["missing"] == 0
        for node in listed["nodes"]:
            assert node["program"] == version and abs(node.get("clock_offset_milliseconds", 0)) < 2000
            assert node["free_size"] > 0 and node["heard_seconds_ago"] < 60
    name = jobs(three[0])[0]["job"]

    # the job: the sum of what each has stored itself, and each page was stored once
    def total(nodes):
        return sum(job["stored"] for each in nodes for job in jobs(each) if job["job"] == name)

    def ring(each):
        return next((job for job in reports(each)["jobs"] if job["job"] == name), {})

    for each in three:
        wait_for(lambda: ring(each).get("stored") == total(three) >= PAGES and ring(each).get("nodes") == 3, lambda: f"{ring(each)} {total(three)}")
        assert ring(each)["missing"] == 0 and jobs(each)[0]["ring"]["nodes"] == 3
        told = each.run("job", "list")
        assert told.returncode == 0 and re.search(r"whole ring: \d+ stored, \d+ waiting, \d+ failed, .* on 3 nodes", told.stdout), told
        assert "missing" not in told.stdout
    assert f"<span class=whole>{total(three)} stored" in three[1].get("/jobs")

    # what each contributes: its own word of what it keeps, and no more uptime than there was
    def contributed(each, other):
        return next(node for node in reports(each)["contributions"] if node["address"] == other.place)

    for each in three:
        for other in three:
            wait_for(lambda: contributed(each, other)["proved_seconds"] > 2, lambda: str(contributed(each, other)))
            said = contributed(each, other)
            assert said["proved_seconds"] <= time.monotonic() - begun and said["challenges_met"] > 1
            assert said["challenges_failed"] == 0 and 1 <= said["challengers"] <= 2
            assert said["kept_size"] == own(other)["used_size"]
            sent = float(re.search(r"^mnemon_streams_sent_bytes_total (\d+)$", other.get("/metrics"), re.M).group(1))
            assert 0 < said["sent_size"] <= sent
    assert "id=ring-contributions" in three[0].get("/dashboard")

    # one is down: its last word stays, with its age, and its counts are in the sum
    last, stored = seen(three[0], three[2]), total(three[2:])
    three[2].kill()
    for each in three[:2]:
        wait_for(lambda: seen(each, three[2]).get("state") == "away", lambda: str(seen(each, three[2])))
        wait_for(lambda: seen(each, three[2])["heard_seconds_ago"] > 3)
        assert seen(each, three[2])["captures"] == last["captures"]
        wait_for(lambda: ring(each)["stored"] == total(three[:2]) + stored, lambda: f"{ring(each)} {total(three[:2])} {stored}")
        told = each.run("ring", "status").stdout
        assert re.search(re.escape(three[2].place) + r" +away, last word \d+", told), told
        assert f"{three[2].place}" in each.get("/dashboard")
    three[2].start(*SERVE)
    for each in three:
        await_word(each, three)

    # a node of the release before says nothing: that is shown, and its counts are missed
    late.program = previous_program()
    late.start("--join", three[0].place, "--allow-private")
    await_agreement(list(nodes))
    for each in three:
        wait_for(lambda: seen(each, late).get("state") == "says nothing", lambda: str(seen(each, late)))
        assert contributed(each, late)["proved_seconds"] >= 0 and "kept_size" not in contributed(each, late)
        assert "captures" not in seen(each, late) and reports(each)["missing"] == 1
        wait_for(lambda: ring(each).get("missing") == 1)
        assert "counts of 1 node are missing" in each.run("job", "list").stdout
    assert not [text for each in three for text in each.status()["complaints"]]
