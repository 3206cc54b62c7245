"""mnemon links"""
import json

import pytest

PAGE = """<!DOCTYPE html>
<title>A page</title>
<link rel=stylesheet href="style.css">
<p style="background: url(bg.png)">Go <a href="../next?a=1&amp;b=2#top">on</a>, <a href="mailto:a@b.example">write</a>.
<img src=one.png srcset="one.png 1x, two.png 2x">
<form action="/search"><input name=q></form>
<script>load("/api/items.json")</script>
"""
BASE = "https://example.org/dir/page.html"


@pytest.fixture
def links(mnemon, tmp_path):
    """Write a document and ask: links("page.html", text, "--json")."""

    def run(name, text, *arguments, base=BASE):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return mnemon("links", str(path), "--base", base, *arguments)

    return run


def rows(result):
    assert result.returncode == 0, result.stderr
    return [line.split() for line in result.stdout.splitlines()]


def test_prints_kind_element_attribute_and_url(links):
    assert rows(links("page.html", PAGE)) == [
        ["embed", "link", "href", "https://example.org/dir/style.css"],
        ["embed", "*", "style", "https://example.org/dir/bg.png"],
        ["page", "a", "href", "https://example.org/next?a=1&b=2"],
        ["embed", "img", "src", "https://example.org/dir/one.png"],
        ["embed", "img", "srcset", "https://example.org/dir/two.png"],
    ]


def test_forms_and_guesses_where_asked_for(links):
    found = rows(links("page.html", PAGE, "--forms", "--guesses"))
    assert ["form", "form", "action", "https://example.org/search"] in found
    assert ["guess", "script", "text", "https://example.org/api/items.json"] in found
    assert len(found) == 7


def test_guesses_look_into_strings_and_data_attributes(links):
    page = """<div data-full-src="/i/full.jpg" data-all="/i/a1.jpg, /i/a2.jpg" data-json='["/i/j1.jpg","\\u002fi\\u002fj2.jpg"]'></div>
<script>var h = "<p><img src='/i/html1.png'><a href=\\"/i/html2.html\\">x</a><img src=/i/html3.png></p>";
var u = "\\u002fi\\u002fescaped.png", l = "/i/l1.png,/i/l2.png", s = '/i/s1.png 1x, /i/s2.png 2x', j = "{\\"src\\":\\"\\\\u002fi\\\\u002fjson.png\\"}";
var one = "/i/with,comma.png";</script>"""
    found = {row[3].removeprefix("https://example.org/i/") for row in rows(links("page.html", page, "--guesses")) if row[0] == "guess"}
    assert found == {"full.jpg", "a1.jpg", "a2.jpg", "j1.jpg", "j2.jpg", "html1.png", "html2.html", "html3.png", "escaped.png", "l1.png", "l2.png",
                     "s1.png", "s2.png", "json.png", "with,comma.png"}
    assert not rows(links("page.html", page))


def test_json_has_offsets(links):
    result = links("page.html", PAGE, "--json")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert found[0] == {
        "kind": "embed", "element": "link", "attribute": "href", "offset": PAGE.index("style.css"),
        "url": "https://example.org/dir/style.css",
    }
    assert found[2]["offset"] == PAGE.index("../next")


def test_standard_input_needs_no_name(mnemon):
    result = mnemon("links", "--base", BASE, "-", stdin=PAGE)
    assert len(rows(result)) == 5


def test_name_or_type_say_what_it_is(links):
    css = "@import 'a.css'; b { c: url(d.png) }"
    want = [["embed", "-", "@import", "https://example.org/dir/a.css"], ["embed", "-", "url", "https://example.org/dir/d.png"]]
    assert rows(links("style.css", css)) == want
    assert rows(links("style", css, "--type", "text/css")) == want
    result = links("style", css)
    assert result.returncode == 1
    assert "--type" in result.stderr and "style" in result.stderr


def test_charset_of_the_type_counts(links):
    page = b"<a href='\xe4?\xe4'>"
    assert rows(links("a.html", page, "--type", "text/html; charset=windows-1251"))[0][3].endswith("/%D0%B4?%E4")
    assert rows(links("a.html", page))[0][3].endswith("/%C3%A4?%E4")


def test_wrong_usage_is_explained(mnemon, links):
    missing = mnemon("links", "-", stdin=PAGE)
    assert missing.returncode == 2 and "--base" in missing.stderr
    relative = links("page.html", PAGE, base="dir/page.html")
    assert relative.returncode == 2 and "--base" in relative.stderr
    absent = mnemon("links", "--base", BASE, "/nonexistent/page.html")
    assert absent.returncode == 1 and "/nonexistent/page.html" in absent.stderr
    assert mnemon("links", "--base", BASE).returncode == 2


def test_hostile_pages_end(links):
    for text in ("<" * 3_000_000, "<a " * 1_000_000, "<a href='" + "x" * 3_000_000, "<!--" * 700_000,
                 "<img srcset='" + "," * 3_000_000, b"\0" * 3_000_000, b"\xff\xfe" * 1_000_000):
        assert links("page.html", text).returncode == 0


def test_no_control_characters_reach_the_terminal(links):
    result = links("page.html", "<a href='x\x1b[2J\x07\x7f'><a href='\x9b'>")
    assert result.returncode == 0
    assert not set(result.stdout) & {"\x1b", "\x07", "\x7f", "\x9b"}
