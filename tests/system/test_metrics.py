"""/metrics of nodes in a ring, with a group, a collection, a crowd and a job: each number is held to the truth, and alerts and dashboard
name none that is not there."""
import json
import pathlib
import re
import shutil
import subprocess

import pytest

import ringnodes
from ringnodes import await_agreement, found, wait_for
from test_copies_lines import write
from test_desk import page, parse_metrics, web  # noqa: F401 (web: a fixture by its name)
from test_together_refill import keeping

COUNT = 60
NET = "127.0.21"
DOCS = pathlib.Path(__file__).resolve().parent.parent.parent / "docs"


@pytest.fixture
def nodes(mnemon, tmp_path):
    made = [ringnodes.Node(mnemon, tmp_path / f"node{i}", f"{NET}.{1 + i}") for i in range(3)]
    for each in made:
        each.directory.mkdir()
        (each.directory / "mnemon.conf").write_text("[mirror]\ngather = 100 ms\nperiod = 1 s\n[group]\nperiod = 2 s\nsilence = 8 s\n")
    yield made
    ringnodes.end(made)


def measured(each):
    return parse_metrics(each.get("/metrics"))


def value(each, name, **labels):
    """NaN where there is no such sample, so that nothing is equal to it."""
    text = "{" + ",".join(f'{key}="{label}"' for key, label in labels.items()) + "}" if labels else ""
    return measured(each)[1].get((f"mnemon_{name}", text), float("nan"))


def becomes(each, wanted, name, **labels):
    wait_for(lambda: value(each, name, **labels) == wanted, lambda: f"{name} is {value(each, name, **labels)}, not {wanted}\n{each.said}")


def held(each):
    done = each.run("list", "*", "--local", "--limit", "100000")
    assert done.returncode == 0, done.stderr
    return len(done.stdout.splitlines())


def promtool(*arguments, said=""):
    program = shutil.which("promtool")
    if program is None:
        return
    done = subprocess.run([program, *arguments], input=said, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def begin(nodes, tmp_path):
    """Two of the three in a ring with 60 captures, two copies wanted; a collection from the first to the second; both in a group."""
    first, second, _ = nodes
    found(first, "--replicas", "2", "--open")
    write(tmp_path / "some.warc", COUNT)
    done = first.run("import", str(tmp_path / "some.warc"))
    assert done.returncode == 0, done.stderr
    first.start()
    second.start("--join", first.place)
    await_agreement([first, second])
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "file").write_text("x" * 1000)
    wish = first.run("mirror", "publish", "papers", str(tmp_path / "tree")).stdout.split("subscribe ")[1].strip()
    assert second.run("mirror", "subscribe", wish, "--from", first.place).returncode == 0
    assert first.run("group", "create", "lib", "--open").returncode == 0
    assert second.run("group", "join", f"lib@{first.place}").returncode == 0


def test_each_number_is_true_also_when_a_node_is_down(nodes, tmp_path, web):  # noqa: F811
    begin(nodes, tmp_path)
    first, second, third = nodes
    web.put("/", page("/a", "/gone"))
    web.put("/a", page())
    done = first.run("job", "add", web.url("/"), "--delay", "0")
    assert done.returncode == 0, done.stderr

    name = json.loads(first.get("/api/v1/jobs"))["jobs"][0]["job"]

    # a job is where it was added
    becomes(first, 1, "jobs", state="complete")
    becomes(first, 0, "job_urls_waiting", job=name)
    documents = json.loads(first.get("/api/v1/jobs"))["jobs"][0]
    assert value(first, "job_documents_total", job=name) == documents["stored"]
    assert value(second, "jobs", state="complete") == 0
    assert value(second, "job_documents_total", job=name) != value(second, "job_documents_total", job=name)  # not there

    # copies: what both have, by their own lists
    for each in (first, second):
        wait_for(lambda: keeping(each)["whole"], lambda: str(keeping(each)))
        becomes(each, held(each), "ring_captures")
        assert held(each) >= COUNT
        becomes(each, 1, "ring_member")
        becomes(each, 2, "ring_nodes")
        becomes(each, 0, "ring_captures_missing")
        becomes(each, 0, "ring_captures_unconfirmed")
        assert value(each, "ring_replicas") == 2
    sums = [value(each, "ring_captures_copies_min", copies="2") for each in (first, second)]
    assert sum(sums) == held(first) == held(second)  # each capture is of one node's arcs
    fetched = value(second, "ring_copies_fetched_total")
    assert COUNT <= fetched <= held(second)

    # between nodes: what one sent, the other received, as far as it has come
    assert 0 < value(second, "streams_received_bytes_total") <= value(first, "streams_sent_bytes_total")
    assert value(first, "questions_answered_total") > 0

    # a collection, a group, the crowd
    becomes(second, 1, "mirror_version", mirror="papers")
    assert value(second, "mirror_publisher", mirror="papers") == 0 and value(first, "mirror_publisher", mirror="papers") == 1
    assert value(second, "mirror_files", mirror="papers") == 1 and value(second, "mirror_bytes", mirror="papers") == 1000
    becomes(second, 0, "mirror_left_bytes", mirror="papers")
    for each in (first, second):
        becomes(each, 2, "group_members", group="lib")
        becomes(each, 1, "group_neighbours", group="lib")
        becomes(each, 1, "crowd_neighbours")
    assert value(first, "group_master", group="lib") == 1 and value(second, "group_master", group="lib") == 0

    for each in (first, second):
        becomes(each, 2, "ring_nodes_state", state="here")
        assert value(each, "ring_clock_offset_seconds") < 2

    # the tools of Prometheus take it, and docs name nothing else
    said = first.get("/metrics")
    promtool("check", "metrics", said=said)
    samples = {name for name, _ in measured(first)[1]} | {name for name, _ in measured(second)[1]}
    for name in ("alerts.yml", "grafana.json"):
        named = set(re.findall(r"mnemon_[a-z0-9_]+", (DOCS / name).read_text()))
        assert named and named <= samples, (name, named - samples)

    # one is down: it is missed, and what it had is no copy any more
    second.kill()
    becomes(first, 1, "ring_nodes")
    becomes(first, 1, "ring_nodes_state", state="away")
    becomes(first, 1, "ring_nodes_state", state="here")
    becomes(first, 0, "ring_captures_copies_min", copies="2")
    becomes(first, held(first), "ring_captures_copies_min", copies="1")
    assert value(first, "ring_arcs", level="whole") == 0
    assert value(first, "volume_up", volume="0") == 1
    second.start()
    becomes(first, 2, "ring_nodes")
    becomes(first, held(first), "ring_captures")
    wait_for(lambda: value(first, "ring_captures_copies_min", copies="2") + value(second, "ring_captures_copies_min", copies="2") == held(first),
             lambda: first.get("/metrics"))

    # a node in no ring says nothing of one
    third.directory.joinpath("mnemon.conf").write_text("")
    with third.directory.parent.joinpath("alone.log").open("w") as log:
        third.process = subprocess.Popen([third.program, "serve", "--data", third.directory, "--http", "0"], stdout=subprocess.PIPE, stderr=log, text=True)
    third.url = third.process.stdout.readline().split()[-1]
    assert not [name for name in measured(third)[0] if name.startswith(("mnemon_ring_", "mnemon_crowd_", "mnemon_group_", "mnemon_mirror_"))]


def test_prometheus_takes_the_alerts():
    promtool("check", "rules", str(DOCS / "alerts.yml"))
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed (Debian: prometheus)")


def test_the_dashboard_is_one_that_grafana_can_read():
    board = json.loads((DOCS / "grafana.json").read_text())
    assert board["uid"] == "mnemon" and len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    for panel in board["panels"]:
        assert panel["type"] == "row" or all(target["expr"] for target in panel["targets"]), panel
        assert 0 <= panel["gridPos"]["x"] and panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24, panel
