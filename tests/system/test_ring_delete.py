"""mnemon ring delete: captures go from all nodes, also from those that were away, and do not come back."""
import json
import os
import re
import subprocess
import time
import urllib.error

from ringnodes import await_agreement, found, wait_for
from test_rm import decompressed
from test_through_node import warc
from test_together import held, listed, node, read  # noqa: F401 (a fixture by its name)
from test_together_hostile import liar  # noqa: F401 (likewise)

RULES = "[ring]\ngrace = 6 s\ncompare = 2 s\n"
SERVE = ("--allow-private", "--allow-private-ring")
HOST = "http://example.org"


def secret(number):
    return b"<title>private %d</title><p>quagga%d the private bytes of page %d" % (number, number, number)


def ring_of(node, count, replicas):
    nodes = [node(2 + number) for number in range(count)]
    for each in nodes:
        each.directory.mkdir(parents=True, exist_ok=True)
        (each.directory / "mnemon.conf").write_text(RULES)
    found(nodes[0], "--open", "--replicas", str(replicas))
    nodes[0].start(*SERVE)
    for each in nodes[1:]:
        each.start("--join", nodes[0].place, *SERVE)
    await_agreement(nodes)
    return nodes


def source(tmp_path, count=12):
    path = tmp_path / "source.warc"
    path.write_bytes(b"".join(warc(f"{HOST}/private/{i}", secret(i), f"2025-01-02T03:04:{i:02}Z") for i in range(count))
                     + b"".join(warc(f"{HOST}/public/{i}", b"public %d" % i, f"2025-01-02T03:04:{i:02}Z") for i in range(count)))
    return path


def holders(nodes, part):
    """How many captures of URLs with that part each node has on its disk."""
    return [sum(part in capture[0] for capture in held(each)) for each in nodes]


def deletions(each):
    return [d for d in each.status()["services"]["decrees"] if d["kind"] == "deletion"]


def is_on_disk(each, wanted):
    return any(wanted in path.read_bytes() or wanted in decompressed(path)
               for path in (each.directory / "volumes").rglob("*.warc.zst"))


def searched(each, word):
    """What the full text finds, once its database is open."""
    def ask():
        try:
            return [json.loads(each.get(f"/api/v1/search?q={word}"))["results"]]
        except urllib.error.HTTPError as error:
            assert error.code == 503
            return None

    return wait_for(ask, "the database of the search")[0]


def missing(each):
    """Which keys a node still wants from others."""
    return each.status()["services"]["copies"]["wanted"]


def list_or_status(each, query):
    try:
        return listed(each, query)
    except urllib.error.HTTPError as error:
        return error.code


def test_deleted_with_one_holder_away_which_then_returns(node, tmp_path):
    nodes = ring_of(node, 4, 3)
    warcs = source(tmp_path)
    done = nodes[1].run("import", "--quiet", str(warcs))
    assert done.returncode == 0, done.stderr
    wait_for(lambda: sum(holders(nodes, "/private/")) >= 36 and sum(holders(nodes, "/public/")) >= 36, lambda: str(holders(nodes, "/")))
    wait_for(lambda: any(searched(each, "quagga1") for each in nodes[:3]), "found by its words")
    away = nodes[3]
    had = holders([away], "/private/")[0]
    assert had > 0
    wait_for((away.directory / "ring" / "heard").exists, "it knows which decrees there are")
    away.stop()

    done = nodes[0].run("ring", "delete", f"{HOST}/private/*", "--reason", "asked for by the people in it")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.match(re.escape(f"{HOST}/private/* is deleted on this node; ") + r"[123] of 4 nodes have confirmed it\n\d+ captures have gone", done.stdout), done.stdout
    assert f"not confirmed by {away.place}" in done.stdout and holders(nodes[:1], "/private/") == [0], "here it is in force"
    here = nodes[:3]
    wait_for(lambda: deletions(nodes[0])[0]["confirmed"] == 3, lambda: str(deletions(nodes[0])))  # each asks another one at random
    assert holders(here, "/private/") == [0, 0, 0], "who has confirmed has none"
    for each in here:
        # Until it is known that the fourth has gone, it may have something: 503.
        wait_for(lambda each=each: list_or_status(each, "example.org/private/*") == [], lambda: str(list_or_status(each, "example.org/private/*")))
        assert str(read(each, f"{HOST}/private/1")).startswith("404")
        assert len(listed(each, "example.org/public/*")) == 12
        assert searched(each, "quagga1") == []
    before = {each.place: deletions(each)[0]["removed"] for each in here}
    assert sum(before.values()) + had >= 36

    # The same file once more, on a member; and years later the one that was away.
    again = nodes[1].run("import", "--quiet", "--json", str(warcs))
    assert again.returncode == 1 and json.loads(again.stdout)["refused"] == 12, again.stdout
    assert "has been deleted from the ring" in again.stderr
    os.utime(away.directory / "ring" / "heard", (0, 0))
    away.start(*SERVE)
    wait_for(lambda: "this node was away for long: it offers copies when it has heard what was deleted meanwhile" in away.said, "it says so")
    wait_for(lambda: deletions(away) and deletions(away)[0]["in_force"], lambda: str(deletions(away)))
    assert holders(nodes, "/private/") == [0] * 4
    assert deletions(away)[0]["removed"] == had
    wait_for(lambda: deletions(nodes[0])[0]["confirmed"] == 4, lambda: str(deletions(nodes[0])))

    # Nothing of it moves between the nodes any more: comparisons come and go, and find nothing.
    rounds = [each.status()["services"]["copies"]["compared"] for each in nodes]
    wait_for(lambda: all(e.status()["services"]["copies"]["compared"] > r + 4 for e, r in zip(nodes, rounds)), "some rounds")
    assert time.time() - (away.directory / "ring" / "heard").stat().st_mtime < 600, "it has heard of it"
    assert holders(nodes, "/private/") == [0] * 4 and [missing(each) for each in nodes] == [0] * 4
    assert len({capture[0] for each in nodes for capture in held(each) if "/public/" in capture[0]}) == 12

    # Captured again, it is there, and on several nodes.
    fresh = tmp_path / "fresh.warc"
    fresh.write_bytes(warc(f"{HOST}/private/3", b"another page", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 1))))
    assert nodes[2].run("import", "--quiet", str(fresh)).returncode == 0
    wait_for(lambda: sum(holders(nodes, "/private/3")) >= 3, lambda: str(holders(nodes, "/private/")))
    assert read(nodes[0], f"{HOST}/private/3") == b"another page"

    # Who, when, what, why; and on the disk nothing.
    listed_ = nodes[2].run("ring", "deletions")
    assert f"{HOST}/private/*\n" in listed_.stdout and "  reason     asked for by the people in it\n" in listed_.stdout
    assert f" by {nodes[0].key}\n" in listed_.stdout and f"{before[nodes[2].place]} captures removed, in force since 20" in listed_.stdout
    page = nodes[2].get("/dashboard")
    assert f"<td>deletion<td class=url>{HOST}/private/*: asked for by the people in it; {before[nodes[2].place]} captures have gone from this node" in page
    assert "1 deletion" in nodes[2].status()["services"]["sentences"]["decrees"]
    for each in nodes:
        each.stop()
        assert each.run("store", "compact").returncode == 0
        assert not any(is_on_disk(each, secret(i)) for i in range(12)), each.place
        assert "asked for by the people in it" in each.run("ring", "deletions").stdout
        assert each.run("store", "verify").returncode == 0


def test_a_takedown_hides_and_deletes_nothing(node, tmp_path):
    nodes = ring_of(node, 2, 2)
    assert nodes[0].run("import", "--quiet", str(source(tmp_path))).returncode == 0
    wait_for(lambda: holders(nodes, "/private/") == [12, 12], lambda: str(holders(nodes, "/private/")))
    assert nodes[0].run("ring", "takedown", f"{HOST}/private/*").returncode == 0
    for each in nodes:
        wait_for(lambda each=each: str(read(each, f"{HOST}/private/1")).startswith("404"), "hidden")
    for each in nodes:
        each.stop()
        assert each.run("store", "compact", "--dead", "0").returncode == 0
        assert holders([each], "/private/") == [12] and is_on_disk(each, secret(1))
    for each in nodes:
        each.start(*SERVE)
    assert nodes[0].run("ring", "restore", f"{HOST}/private/*").returncode == 0
    wait_for(lambda: read(nodes[1], f"{HOST}/private/1") == secret(1), "shown again")


def test_only_the_founder_deletes(node, tmp_path):
    nodes = ring_of(node, 2, 2)
    assert nodes[0].run("import", "--quiet", str(source(tmp_path))).returncode == 0
    refused = nodes[1].run("ring", "delete", f"{HOST}/*", "--reason", "because")
    assert refused.returncode == 1 and "only the founder deletes captures" in refused.stderr
    unsaid = nodes[0].run("ring", "delete", f"{HOST}/*")
    assert unsaid.returncode == 1 and "--reason" in unsaid.stderr
    assert all(deletions(each) == [] for each in nodes)
    assert nodes[0].run("ring", "deletions").stdout == "nothing has been deleted from this ring\n"
    wait_for(lambda: holders(nodes, "example.org") == [24, 24], lambda: str(holders(nodes, "")))


def test_a_forged_deletion_is_refused(node, liar, tmp_path):
    good = node(2)
    found(good, "--open")
    assert good.run("import", "--quiet", str(source(tmp_path))).returncode == 0
    good.start(*SERVE)
    bad = node(30)
    bad.program = liar
    bad.start("--join", good.place, *SERVE, wrap=("env", "RING_LIE=decrees", f"RING_LIE_URL={HOST}/private/1"))
    await_agreement([good, bad])
    wait_for(lambda: good.status()["services"]["decrees_refused"] > 4000, "the flood arrives")
    assert deletions(good) == [] and holders([good], "/private/") == [12]
    assert read(good, f"{HOST}/private/1") == secret(1)


def test_killed_in_the_middle_it_goes_on(node, tmp_path):
    """Whatever moment it is: hidden from the first answer on, and all gone in the end, counted once."""
    alone = node(2)
    count = 6000
    path = tmp_path / "many.warc"
    path.write_bytes(b"".join(warc(f"{HOST}/private/{i}", b"page %d" % i, "2025-01-02T03:04:05Z") for i in range(count)))
    assert alone.run("import", "--quiet", str(path)).returncode == 0
    found(alone)
    alone.start(*SERVE)
    asking = subprocess.Popen([alone.program, "ring", "delete", f"{HOST}/private/*", "--reason", "all of it", "--data", alone.directory],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    state = alone.directory / "ring" / "deletions"
    kills = 0
    try:
        for _ in range(3):
            wait_for(lambda: state.is_dir() and any(state.iterdir()), "it begins")
            if "\nfound 0\n" in next(state.iterdir()).read_text():
                break
            alone.kill()
            kills += 1
            alone.start(*SERVE)
            assert str(read(alone, f"{HOST}/private/{count - 1}")).startswith("404"), "hidden, gone or not"
    finally:
        asking.kill()
        asking.wait()
    wait_for(lambda: deletions(alone) and deletions(alone)[0]["in_force"], lambda: str(deletions(alone)))
    assert holders([alone], "/private/") == [0]
    assert deletions(alone)[0]["removed"] == count, f"after {kills} kills"
