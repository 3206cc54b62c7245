"""A member of the ring that lies about captures, copies and links: refused and blamed, and nothing false is shown or kept."""
import json
import os
import pathlib
import re
import socket
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

from ringnodes import await_agreement, found, program, wait_for
from test_ring_hostile import GROWTH_KIB_MAX, memory_kib
from test_together import SERVE, Origin, copies, crawl, held, node, read, web  # noqa: F401 (a fixture by its name)

PATIENCE_S = 120
RULES = "[ring]\ngrace = 10 s\ncompare = 2 s\n"
EVEN = (*SERVE, "--capacity", "8")  # with one place each, a liar may have nearly nothing to lie about


@pytest.fixture
def liar(mnemon):
    path = pathlib.Path(program(mnemon)).parent / "tests" / "system" / "mnemon-ring-liar"
    if not path.exists():
        pytest.skip(f"no {path}: built with -Dtests=enabled")
    return str(path)


@pytest.fixture
def origin():
    made = Origin(1, 20)
    yield made
    made.close()


def ring(node, liar, lie, *options, serve=SERVE, url=None, count=4, rules=lambda _: RULES):
    """Some that are good, and one that is not."""
    good = [node(2 + number) for number in range(count)]
    bad = node(30)
    bad.program = liar
    for each in (*good, bad):
        each.directory.mkdir()
        (each.directory / "mnemon.conf").write_text(rules(each))
    found(good[0], "--open", *options)
    good[0].start(*serve)
    for each in good[1:]:
        each.start("--join", good[0].place, *serve)
    said = [f"RING_LIE={lie}"] + ([f"RING_LIE_URL={url}"] if url else [])
    bad.start("--join", good[0].place, *serve, wrap=("env", *said))
    await_agreement([*good, bad])
    return good, bad


def complaints(nodes):
    return "\n".join(c["text"] for each in nodes for c in each.status()["complaints"])


def await_blame(nodes, words):
    """Said of the only one that lies; never of a good one."""
    wait_for(lambda: re.search(words, complaints(nodes)), lambda: f"nobody says \"{words}\":\n{complaints(nodes)}", PATIENCE_S)
    assert not [line for line in complaints(nodes).splitlines() if "is blamed" in line and any(n.place in line for n in nodes)]


def await_level(nodes, origin, level):
    def low():
        return {url: count for url, count in copies(nodes, origin).items() if count < level}

    wait_for(lambda: not low(), lambda: f"{len(low())} with too few copies: {list(low().items())[:3]}", PATIENCE_S)


def await_true_content(nodes, origin):
    """All of it, once nobody believes in what the liar had any more."""
    for url in sorted(origin.urls())[::4]:
        for each in nodes:
            wait_for(lambda each=each: read(each, url) == true(origin, url), f"{url} through {each.place}", PATIENCE_S)


def await_shown(each, url, expected):
    """While a liar is a member, or a holder is slow, what is archived may not be had now (502, 503), and that passes. Nothing else is
    ever shown, and never that it is not in the archive: whoever was not told of it yet asks."""
    def is_shown():
        shown = read(each, url)
        assert shown == expected or str(shown)[:3] in ("502", "503"), (each.place, url, shown)
        return shown == expected

    wait_for(is_shown, f"{url} through {each.place}", PATIENCE_S)


def read_as_they_come(good, origin):
    """All pages through every good node, each as soon as one of them has it."""
    seen = set()

    def are_all_seen():
        new = (set().union(*({c[0] for c in held(each)} for each in good)) & origin.urls()) - seen
        for url in sorted(new):
            for each in good:
                await_shown(each, url, true(origin, url))
        seen.update(new)
        return seen == origin.urls()

    wait_for(are_all_seen, lambda: f"not at good nodes: {origin.urls() - seen}", PATIENCE_S)
    for each in good:
        await_shown(each, f"http://{origin.names[0]}/never-was.html", "404 Not Found")


def remove(good, bad):
    """What people do about a liar."""
    assert good[0].run("ring", "remove", bad.key).returncode == 0
    await_agreement(good, PATIENCE_S)
    bad.kill()


def crawling(each):
    return json.loads(each.get("/api/v1/status"))["crawl"]


def links(each):
    return each.status()["together"]["links"]


@pytest.mark.parametrize("lie, words", [
    ("content", "gives an answer about a capture that is none|gives a payload that is not that of its digest|gives a piece|signature is false"),
    ("forged", "gives a capture whose signature is false"),
    ("request", "gives a capture whose signature is false")])
def test_false_captures_are_refused_and_blamed_and_never_shown(node, liar, origin, lie, words):
    good, bad = ring(node, liar, lie, "--replicas", "3", "--witnesses", "2", count=2, serve=EVEN)
    crawl(good, origin, "--delay", "0")
    read_as_they_come(good, origin)
    await_blame(good, words)
    for each in good:
        each.stop()
        assert each.run("store", "verify").returncode == 0


def true(origin, url):
    parts = urllib.parse.urlsplit(url)
    return origin.answer(parts.netloc, parts.path)[2]


def fetch(url, proxy=None):
    """Where it led to, header fields and content; or what was said instead."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": proxy} if proxy else {}))
    try:
        with opener.open(url, timeout=PATIENCE_S) as answer:
            return answer.url, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode()}"


def assert_looked_past(reads, wrong):
    """Every node meets a lie, once: then it blames the liar. A good holder may be slow; at that moment, too."""
    assert len(wrong) <= len(reads) / 20, wrong
    assert sum("damaged" in said for *_, said in wrong) <= 1, wrong


def made_up():
    return time.strftime("%Y%m%d%H%M00", time.gmtime())


def kept_by(good):
    return {(url, stamp) for each in good for url, stamp, _ in held(each)}


def shown_instead(each, url, kept):
    """Of a capture that the liar has just made up: the page that it leads to, named by the time of a true one (which may be that of the other, to the
    second), or what went wrong."""
    shown = fetch(f"{each.url}/web/{made_up()}/{url}")
    if isinstance(shown, str):
        return shown
    return shown[2].decode() if (url, re.search(r"/web/(\d{14})/", shown[0])[1]) in kept else f"made up: {shown[0]}"


def inventing(node, liar, origin, **options):
    """The liar answers for all holders, with captures of this minute that nobody ever made, and hides the others. What is to be read, through whom."""
    good, _ = ring(node, liar, "invents", "--replicas", "2", serve=EVEN, **options)
    crawl(good, origin, "--delay", "0")

    def kept():
        return sorted(url for url, count in copies(good, origin).items() if count > 0)

    # What the liar fetched itself they may not take from it, once they have blamed it.
    wait_for(lambda: len(kept()) >= len(origin.urls()) - 2, lambda: f"only {kept()} are kept", PATIENCE_S)
    return good, [(each, url) for url in kept() for each in good]


def await_shown_instead(each, url, kept):
    def is_shown():
        shown = shown_instead(each, url, kept)
        assert "page" in shown or shown[:3] in ("502", "503"), (each.place, url, shown)
        return "page" in shown

    wait_for(is_shown, f"{url} through {each.place}", PATIENCE_S)


def test_what_a_liar_lists_gives_way_to_what_is_true(node, liar, origin):
    good, reads = inventing(node, liar, origin)
    shown = [(each.place, url, fetch(f"{each.url}/web/2030id_/{url}")) for each, url in reads]
    assert_looked_past(reads, [each for each in shown if isinstance(each[2], str) or each[2][2] != true(origin, each[1])])
    await_blame(good, "gives an answer about a capture that is none")

    # The very time of one that the liar makes up leads to a true one, which is named by its own time.
    kept = kept_by(good)
    for each, url in reads[::5]:
        await_shown_instead(each, url, kept)


def test_details_are_those_of_what_is_true(node, liar, origin):
    good, reads = inventing(node, liar, origin)
    kept = kept_by(good)

    def details(each, url):
        """That of which they are, or what was said instead."""
        shown = fetch(f"{each.url}/details/{made_up()}/{url}")
        return shown if isinstance(shown, str) else (url, re.search(r"/details/(\d{14})[~/]", shown[0])[1])

    shown = [(each.place, url, details(each, url)) for each, url in reads]
    assert_looked_past(reads, [each for each in shown if each[2] not in kept])
    await_blame(good, "gives an answer about a capture that is none")


def test_a_proxy_answers_with_what_is_true_where_the_origin_fails(node, liar, origin):
    def rules(each):
        with socket.create_server((each.ip, 0)) as listener:
            each.proxy = "%s:%d" % listener.getsockname()
        host, port = each.proxy.split(":")
        return f"{RULES}[proxy]\naddress = {host}\nport = {port}\n[crowd]\nenabled = no\n"  # it would have what another has read

    good, reads = inventing(node, liar, origin, rules=rules)
    origin.close()
    shown = [(each.place, url, fetch(url, each.proxy)) for each, url in reads]

    def is_true(url, answer):
        """But for the mark that says what stands in for the page."""
        content = answer if isinstance(answer, str) else re.sub(rb'<div id="mnemon-substitute".*?</div>', b"", answer[2])
        return content == true(origin, url)

    assert_looked_past(reads, [each for each in shown if not is_true(each[1], each[2])])
    assert {fields["X-Mnemon-Source"] for _, fields, _ in (each[2] for each in shown if not isinstance(each[2], str))} == {"archive"}
    await_blame(good, "gives an answer about a capture that is none")


def test_nonsense_is_refused_and_blamed_and_its_author_removed(node, liar, web):
    origin = web(1, 60)  # so many that the liar has some to offer, and hides no page by being the only one who has seen a link to it
    good, bad = ring(node, liar, "ranges,links", "--replicas", "3", count=3)
    before_kib = memory_kib(good[1])
    crawl(good, origin, "--delay", "0")
    for words in ("answers a comparison against the rules", "compares with messages that break the rules", "offers what are no keys"):
        await_blame(good, words)
    wait_for(lambda: all(links(each)["received"] > 20 for each in good), lambda: str([links(each) for each in good]), PATIENCE_S)
    assert memory_kib(good[1]) - before_kib < GROWTH_KIB_MAX

    # Until somebody looks at the liar it is a member with an arc of its own. Its links have led nobody anywhere.
    remove(good, bad)
    await_level(good, origin, 3)
    await_true_content(good, origin)
    assert set(origin.fetched()) == origin.urls()
    assert all(crawling(each)["urls_known"] < 2 * len(origin.urls()) for each in good)


def test_who_claims_and_does_not_hold_is_found_out_and_passed_over(node, liar, origin):
    good, bad = ring(node, liar, "claims", "--replicas", "3")
    crawl(good, origin, "--delay", "0")
    read_as_they_come(good, origin)  # also what the liar should have, and has not
    await_blame(good, "does not hold what it says it holds")
    wait_for(lambda: any(each.status()["together"]["keeping"]["caught"] for each in good), "somebody counts it", PATIENCE_S)

    def counted():
        return [m for each in good for arc in each.status()["together"]["keeping"]["arcs"] for m in arc["members"]
                if m["address"] == bad.place and m["false"]]

    wait_for(counted, "it counts as no copy", PATIENCE_S)

    # Also of its own arc, to whose copies nobody but it would see: the one behind it does.
    await_level(good, origin, 3)


@pytest.mark.skipif("MNEMON_TOGETHER" not in os.environ, reason="a longer one, with MNEMON_TOGETHER=12,5000,1")
def test_lying_links_lead_to_no_private_address(node, liar, origin):
    """These nodes may ask public addresses only; the job takes any URL; and somebody says that these are links."""
    good, bad = ring(node, liar, "links", "--replicas", "3", serve=(), url=f"http://{origin.names[0]}/p", count=2)
    added = good[0].run("job", "add", "--ring", "http://[::ffff:127.0.0.1]:9/", "--scope", "any", "--delay", "0")
    assert added.returncode == 0, added.stderr
    wait_for(lambda: all(links(each)["accepted"] > 100 for each in good), lambda: str([links(each) for each in good]), PATIENCE_S)
    wait_for(lambda: all(crawling(each)["failed"] > 0 for each in good), lambda: str([crawling(each) for each in good]), PATIENCE_S)
    assert origin.asked == []
