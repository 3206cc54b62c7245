"""Sites: no site has all copies of a capture while there is another one, so that the loss of a whole site loses none."""

import pytest

from releases import previous_program
from ringnodes import Node, await_agreement, end, found, wait_for
from test_together import Origin, await_copies, copies, crawl

SERVE = ("--allow-private", "--allow-private-ring")
SETTINGS = "[ring]\ncompare = 1 s\n"
PAGES = 40


@pytest.fixture
def node(mnemon, tmp_path):
    made = []

    def make(ip):
        each = Node(mnemon, tmp_path / f"node{len(made)}", ip)
        each.directory.mkdir()
        (each.directory / "mnemon.conf").write_text(SETTINGS)
        made.append(each)
        return each

    yield make
    end(made)


@pytest.fixture
def web():
    origin = Origin(1, PAGES)
    yield origin
    origin.close()


def sentence(each):
    return each.status()["services"]["sentences"]["sites"]


def start_ring(first, *others, options=()):
    """options: of each."""
    nodes = [first, *others]
    options = options or [()] * len(nodes)
    found(first, "--open", "--replicas", "2")
    first.start(*SERVE, *options[0])
    for each, own in zip(others, options[1:]):
        each.start("--join", first.place, *SERVE, *own)
    await_agreement(nodes)
    return nodes


def test_every_capture_survives_the_loss_of_a_site(node, web):
    """Three nodes in one network, one in another; two copies. By their places alone some keys would be in the first only."""
    nodes = start_ring(node("127.1.0.2"), node("127.1.0.3"), node("127.1.0.4"), node("127.2.0.2"))
    *site, alone = nodes
    for each in nodes:
        wait_for(lambda: "not chosen by sites" not in sentence(each), lambda: sentence(each))
    crawl(nodes, web, "--delay", "0")
    await_copies(nodes, web, 2)
    wait_for(lambda: min(copies([alone], web).values()) == 1, lambda: str(copies([alone], web)))
    urls = len(web.urls())
    for each in nodes:  # what the status says is so
        wait_for(lambda: "not known" not in sentence(each), lambda: sentence(each))
    total = 0
    for each in nodes:
        view = each.status()["services"]["sites"]
        assert [(s["name"], s["nodes"]) for s in view["list"]] in (
            [("127.1.0.0/16", 3), ("127.2.0.0/16", 1)], [("127.2.0.0/16", 1), ("127.1.0.0/16", 3)]), view
        assert view["used"] and view["at_one_site"] == 0 and all(s["captures"] == view["captures"] for s in view["list"]), view
        assert "site 127.2.0.0/16" in each.run("ring", "status").stdout
        total += view["captures"]
    assert total >= urls
    for each in site:
        each.kill()
    assert min(copies([alone], web).values()) == 1
    for url in sorted(web.urls()):
        assert "words" in alone.get(f"/web/2id_/{url}")
    assert not any("blamed" in each.said for each in nodes)


def test_names_say_where_nodes_of_one_network_stand(node, web):
    nodes = start_ring(node("127.0.0.2"), node("127.0.0.3"), node("127.0.0.4"),
                       options=[("--site", "hall"), ("--site", "hall"), ("--site", "cellar")])
    for each in nodes:
        wait_for(lambda: each.status()["services"]["sites"]["used"], lambda: sentence(each))
    crawl(nodes, web, "--delay", "0")
    await_copies(nodes, web, 2)
    wait_for(lambda: min(copies(nodes[2:], web).values()) == 1, lambda: str(copies(nodes[2:], web)))
    assert {n["site"] for n in nodes[0].status()["nodes"]} == {"hall", "cellar"}
    bad = nodes[2].mnemon("serve", "--data", nodes[2].directory.parent / "other", "--http", "0", "--port", "0", "--site", "two words")
    assert bad.returncode != 0 and "the name of a site has 1 to 32" in bad.stderr, bad.stderr


def test_with_a_node_of_the_release_before_sites_do_not_count_and_status_says_why(node):
    old, now = node("127.2.0.2"), node("127.1.0.2")
    old.program = previous_program()
    found(old, "--open", "--replicas", "2")
    old.start()
    now.start("--join", old.place, *SERVE)
    await_agreement([old, now])
    said = f"; holders are not chosen by sites: {old.place} does not know them"
    wait_for(lambda: sentence(now).endswith(said), lambda: sentence(now))
    assert not now.status()["services"]["sites"]["used"]
    assert said in now.run("ring", "status").stdout
