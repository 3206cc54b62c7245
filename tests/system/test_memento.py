"""Memento (RFC 7089): TimeGate, TimeMaps, and the headers of mementos."""
import email.utils
import json
import re

import pytest

from test_replay import BROWSER, TIME, response, serve, web, world  # noqa: F401

LINK = re.compile(r'<([^>]*)>((?:\s*;\s*[a-z]+="[^"]*")*)')
TIMES = ["20260102030405", "20260202030405", "20260302030405"]


def links(text):
    """[(URL, {attribute: value})]"""
    return [(url, dict(re.findall(r'([a-z]+)="([^"]*)"', rest))) for url, rest in LINK.findall(text)]


def by_relation(text):
    out = {}
    for url, attributes in links(text):
        for relation in attributes["rel"].split():
            out.setdefault(relation, []).append((url, attributes))
    return out


def memento(world, time14):
    return f"http://{world.host}/web/{time14}/http://a.example/"


def test_the_timegate_leads_to_the_closest(world):
    for date, expected in (("Sat, 03 Jan 2026 00:00:00 GMT", TIMES[0]), ("Sun, 01 Feb 2026 00:00:00 GMT", TIMES[1]),
                           ("Fri, 01 Jan 2027 00:00:00 GMT", TIMES[2]), ("Thu, 01 Jan 1998 00:00:00 GMT", TIMES[0]), (None, TIMES[2])):
        answer = world.get("/web/http://a.example/", **({"Accept_Datetime": date} if date else {}))
        assert (answer.status, answer["Location"], answer["Vary"]) == (302, web(expected, "http://a.example/"), "accept-datetime")
        found = by_relation(answer["Link"])
        assert found["original"][0][0] == "http://a.example/"
        assert found["timemap"][0] == (f"http://{world.host}/web/timemap/link/http://a.example/", {"rel": "timemap", "type": "application/link-format"})
        assert answer["Memento-Datetime"] is None
    assert world.get("/web/http://a.example/", **BROWSER)["Location"] == web(TIMES[2], "http://a.example/")


@pytest.mark.parametrize("date", ["yesterday", "2026-01-02", "Fri, 99 Jan 2026 00:00:00 GMT", "x" * 5000])
def test_a_bad_date_is_refused(world, date):
    answer = world.get("/web/http://a.example/", Accept_Datetime=date)
    assert answer.status == 400 and "Accept-Datetime" in answer.text


def test_the_timegate_of_nothing(world):
    assert world.get("/web/http://none.example/", Accept_Datetime="Sat, 03 Jan 2026 00:00:00 GMT").status == 404


@pytest.mark.parametrize("index, expected", [
    (0, {"first": 0, "next": 1, "last": 2}),
    (1, {"first": 0, "prev": 0, "next": 2, "last": 2}),
    (2, {"first": 0, "prev": 1, "last": 2}),
])
def test_mementos_know_their_neighbours(world, index, expected):
    for modifier in ("", "id_"):
        answer = world.get(web(TIMES[index], "http://a.example/", modifier))
        found = by_relation(answer["Link"])
        assert found["original"][0][0] == "http://a.example/"
        assert found["timegate"][0][0] == f"http://{world.host}/web/http://a.example/"
        for relation in ("first", "prev", "next", "last"):
            urls = [url for url, _ in found.get(relation, [])]
            assert urls == ([memento(world, TIMES[expected[relation]])] if relation in expected else []), relation
        times = [attributes["datetime"] for _, attributes in found["memento"]]
        assert answer["Memento-Datetime"] in times and len(times) == len(set(times))
        assert all(email.utils.parsedate_to_datetime(text) for text in times)


def test_redirects_and_failures_are_mementos(world):
    for url, status in (("http://a.example/moved", 301), ("http://a.example/gone", 404)):
        answer = world.get(web(TIME, url))
        assert answer.status == status and answer["Memento-Datetime"] == "Fri, 02 Jan 2026 03:04:05 GMT"
        assert by_relation(answer["Link"])["first"][0][0] == f"http://{world.host}{web(TIME, url)}"


def test_the_timemap_as_links(world):
    answer = world.get("/web/timemap/link/http://a.example/")
    assert answer.status == 200 and answer["Content-Type"] == "application/link-format"
    found = by_relation(answer.text)
    assert found["original"][0][0] == "http://a.example/"
    assert found["timegate"][0][0] == f"http://{world.host}/web/http://a.example/"
    assert [url for url, _ in found["memento"]] == [memento(world, time14) for time14 in TIMES]
    assert found["first"][0][0] == memento(world, TIMES[0]) and found["last"][0][0] == memento(world, TIMES[2])
    url, own = found["self"][0]
    assert url == f"http://{world.host}/web/timemap/link/http://a.example/" and own["type"] == "application/link-format"
    assert own["from"] == "Fri, 02 Jan 2026 03:04:05 GMT" and own["until"] == "Mon, 02 Mar 2026 03:04:05 GMT"


def test_the_timemap_as_json_and_cdx(world):
    shown = json.loads(world.get("/web/timemap/json/http://a.example/").text)
    assert shown["original_uri"] == "http://a.example/" and "next" not in shown
    assert [row["uri"] for row in shown["mementos"]["list"]] == [memento(world, time14) for time14 in TIMES]
    assert shown["mementos"]["list"][0]["datetime"] == "2026-01-02T03:04:05Z"
    assert shown["timemap_uri"]["link_format"] == f"http://{world.host}/web/timemap/link/http://a.example/"
    lines = world.get("/web/timemap/cdx/http://a.example/").text.splitlines()
    assert [line.split()[:3] for line in lines] == [["example,a)/", time14, "http://a.example/"] for time14 in TIMES]
    assert all(len(line.split()) == 7 and line.split()[4] == "200" for line in lines)
    assert world.get("/web/timemap/cdxj/http://a.example/").text == world.get("/cdx?url=http://a.example/").text
    assert shown["timemap_uri"]["cdxj_format"] == f"http://{world.host}/web/timemap/cdxj/http://a.example/"


def test_the_calendar_of_a_range(world):
    """pywb's query forms: 2009-2015/URL and its halves."""
    for path, times in (("202602-2026", TIMES[1:]), ("-202602", TIMES[:2]), ("202603-*", TIMES[2:]), ("20260202030405-20260202030405", TIMES[1:2])):
        page = world.get(f"/web/{path}/http://a.example/")
        assert page.status == 200, (path, page.text)
        assert [time14 for time14 in TIMES if f"/web/{time14}/http://a.example/" in page.text] == list(times), path
    assert world.get("/web/2001-2002/http://a.example/").status == 404
    assert world.get("/web/2015-2009/http://a.example/").status == 400


def test_a_timemap_from_a_time_on(world):
    found = by_relation(world.get("/web/timemap/link/20260202030405/http://a.example/").text)
    assert [url for url, _ in found["memento"]] == [memento(world, time14) for time14 in TIMES[1:]]
    assert "first" not in found and found["self"][0][0].endswith("/link/20260202030405/http://a.example/")


def test_timemaps_of_nothing_and_of_nonsense(world):
    for kind in ("link", "json", "cdx", "cdxj"):
        assert world.get(f"/web/timemap/{kind}/http://none.example/").status == 404
        assert world.get(f"/web/timemap/{kind}/").status == 400
        assert world.get(f"/web/timemap/{kind}/*/http://a.example/*").status == 400
        assert world.get(f"/web/timemap/{kind}/20261399/http://a.example/").status == 400
    assert world.get("/web/timemap/xml/http://a.example/").status == 400


def test_links_have_the_name_that_the_client_uses(world):
    answer = world.get(web(TIME, "http://a.example/"), X_Forwarded_Proto="https")
    assert f"<https://{world.host}/web/" in answer["Link"]
    odd = world.get(web(TIME, "http://a.example/"), X_Forwarded_Proto="javascript")
    assert f"<http://{world.host}/web/" in odd["Link"]


def test_many_captures_of_one_url(serve):  # noqa: F811
    times = [f"2026{month:02}{day:02}000000" for month in range(1, 13) for day in range(1, 29)]
    node = serve(*(response("http://many.example/", f"<p>{time14}", time14=time14) for time14 in times))
    found = by_relation(node.get("/web/timemap/link/http://many.example/").text)
    assert len(found["memento"]) == len(times)
    middle = by_relation(node.get(web(times[100], "http://many.example/"))["Link"])
    for relation, time14 in (("first", times[0]), ("prev", times[99]), ("next", times[101]), ("last", times[-1])):
        assert middle[relation][0][0] == f"http://{node.host}{web(time14, 'http://many.example/')}"
    assert node.get(web("20260615120000", "http://many.example/"))["Location"] == web("20260615000000", "http://many.example/")
