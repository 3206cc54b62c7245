"""A member of a ring that keeps everything, and one that leads readers to who is responsible: real nodes."""
import urllib.error
import urllib.parse
import urllib.request

import pytest

from ringnodes import await_agreement, found, wait_for
from test_together import SERVE, crawl, held, listed, node, read, web  # noqa: F401 (fixtures by their names)


def make_node(node, number, settings="compare = 1 s"):
    made = node(number)
    made.directory.mkdir(exist_ok=True)
    (made.directory / "mnemon.conf").write_text(f"[ring]\n{settings}\n")
    return made


def start_ring(node):
    """Three ordinary nodes, and one that keeps everything."""
    nodes = [make_node(node, number) for number in (2, 4, 7, 9)]  # the last one is a holder of half of the ring
    found(nodes[0], "--open", "--replicas", "2")
    nodes[0].start(*SERVE)
    for each in nodes[1:3]:
        each.start("--join", nodes[0].place, *SERVE)
    nodes[3].start("--join", nodes[0].place, "--keep", "everything", *SERVE)
    await_agreement(nodes)
    return nodes[:3], nodes[3]


def keeping(each):
    return each.status()["services"]["copies"]


def pages(each, origin):
    return {url for url, _, _ in held(each)} & origin.urls()


def expected(origin, url):
    parts = urllib.parse.urlsplit(url)
    return origin.answer(parts.netloc, parts.path)[2]


def source(each, url):
    with urllib.request.urlopen(f"{each.url}/web/2030id_/{url}", timeout=30) as answer:
        return answer.headers["X-Mnemon-Source"]


def await_everything(others, keeper, origin):
    """All pages at the keeper, and each at one of the others at least: the keeper may be the second of its holders."""
    def missing():
        return origin.urls() - pages(keeper, origin) or origin.urls() - set().union(*(pages(each, origin) for each in others))

    wait_for(lambda: not missing(), lambda: f"missing: {sorted(missing())[:5]}", 120)


def test_it_has_everything_and_reads_it_when_others_are_gone(node, web):
    others, keeper = start_ring(node)
    origin = web(hosts=2, pages=12)
    crawl(others, origin, "--delay", "0")
    await_everything(others, keeper, origin)
    wait_for(lambda: all(arc["level"] == "whole" and arc["copies"] == 2 for each in others for arc in keeping(each)["arcs"]),
             "two copies, as the others count them")
    assert keeping(keeper)["keep"] == "everything" and keeping(others[0])["keep"] == "arc"
    assert "keeps everything" in keeper.run("ring", "status").stdout

    # What is stored later comes, too; then all of it is read from its own disk.
    later = web(hosts=1, pages=5)
    crawl(others, later, "--delay", "0")
    await_everything(others, keeper, later)
    wait_for(lambda: keeping(keeper)["full_sync"]["whole"], lambda: str(keeping(keeper)["full_sync"]))
    assert keeper.status()["together"]["keeping"]["tour"]["whole"], "its name in 0.1"
    assert keeping(keeper)["released"] == 0
    urls = sorted(origin.urls() | later.urls())
    assert {source(keeper, url) for url in urls} == {"store"}

    # A takedown holds for what it keeps, as everywhere.
    gone = f"http://{later.names[0]}/p3.html"
    assert others[0].run("ring", "takedown", gone).returncode == 0
    wait_for(lambda: str(read(keeper, gone)).startswith("404"), "the takedown at the keeper")

    for each in others[:2]:
        each.kill()
    for url in urls:
        if url != gone:
            assert read(keeper, url) == expected(later if url in later.urls() else origin, url), url
    host = origin.names[0]
    assert set(listed(keeper, f"{host}/*")) >= {url for url in origin.urls() if host in url}


class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def led_to(each, url, **headers):
    """Where the first answer leads to: to the exact time of the capture, or to another node."""
    request = urllib.request.Request(f"{each.url}/web/2030id_/{url}", headers=headers)
    try:
        with urllib.request.build_opener(Stay).open(request, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.headers["Location"] if error.code == 302 else error.code


def test_readers_are_led_to_the_node_that_is_responsible(node, web):
    nodes = [make_node(node, number, f"compare = 1 s\nredirect = {'yes' if number == 2 else 'no'}\n"
                                     f"[http]\npublic = http://node{number}.example:8080") for number in (2, 4, 7)]
    leading, showing, _ = nodes
    found(leading, "--open", "--replicas", "1")
    leading.start(*SERVE)
    for each in nodes[1:]:
        each.start("--join", leading.place, *SERVE)
    await_agreement(nodes)
    origin = web(hosts=1, pages=12)
    crawl(nodes, origin, "--delay", "0")
    wait_for(lambda: set().union(*(pages(each, origin) for each in nodes)) == origin.urls(), "the crawl")
    led = 0
    for url in sorted(origin.urls()):
        holder = next(each for each in nodes if each.place == leading.owner(url)[0])
        wait_for(lambda: url in pages(holder, origin), "the copy of who is responsible")
        assert read(holder, url) == read(showing, url) == expected(origin, url), "who does not lead away fetches"
        if url in pages(leading, origin):
            assert read(leading, url) == expected(origin, url)
            continue
        there = f"http://node{holder.ip.split('.')[-1]}.example:8080/web/2030id_/{url}"
        wait_for(lambda: led_to(leading, url) == there, "who is slow to say where it is, is asked again half a minute later", 120)
        assert led_to(leading, url, **{"Sec-Fetch-Dest": "image"}).startswith("/web/"), "parts are always fetched"
        led += 1
    assert led > 0


@pytest.mark.parametrize("settings, complaint", [
    ("keep = all", "line 2"),
    ("compare = 10 ms", "line 2"),
    ("grace = 1 s\ncompare = 1 s", "twice"),
    ("scrub = 0", "line 2"),
    ("[http]\npublic = archive.example.org", "public"),
])
def test_settings_that_make_no_sense_are_refused(mnemon, tmp_path, settings, complaint):
    (tmp_path / "mnemon.conf").write_text(f"[ring]\n{settings}\n")
    done = mnemon("serve", "--data", str(tmp_path), "--http", "0")
    assert done.returncode != 0 and complaint in done.stderr, done.stderr
