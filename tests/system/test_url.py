"""mnemon url"""
import json


def parse(mnemon, *arguments, **options):
    result = mnemon("url", "--json", *arguments, **options)
    return [json.loads(line) for line in result.stdout.splitlines()], result.returncode


def test_parts_canonical_form_and_surt(mnemon):
    (url,), status = parse(mnemon, "http://user:pw@www.Example.co.uk:80/B/../C/?b=2&a=1#x")
    assert status == 0
    assert url == {
        "input": "http://user:pw@www.Example.co.uk:80/B/../C/?b=2&a=1#x",
        "valid": True,
        "href": "http://user:pw@www.example.co.uk/C/?b=2&a=1#x",
        "origin": "http://www.example.co.uk",
        "scheme": "http",
        "username": "user",
        "password": "pw",
        "host": "www.example.co.uk",
        "host_type": "domain",
        "domain": "example.co.uk",
        "path": "/C/",
        "query": "b=2&a=1",
        "fragment": "x",
        "canonical": "http://example.co.uk/c?a=1&b=2",
        "surt": "uk,co,example)/c?a=1&b=2",
    }


def test_text_output_shows_the_same(mnemon):
    result = mnemon("url", "http://www.Example.org:80/B/?b=2&a=1#x")
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert lines[0] == '"http://www.Example.org:80/B/?b=2&a=1#x"'
    assert "  surt         org,example)/b?a=1&b=2" in lines


def test_an_invalid_url_has_a_reason_and_a_position(mnemon):
    (good, bad), status = parse(mnemon, "http://a/", "http://a b/")
    assert status == 1
    assert good["valid"] and not bad["valid"]
    assert bad["error"] == "invalid"
    assert bad["reason"]
    assert bad["offset"] == 8
    text = mnemon("url", "http://a b/")
    assert text.returncode == 1
    assert "invalid: " in text.stdout


def test_relative_urls_need_a_base(mnemon):
    (url,), status = parse(mnemon, "../x?y")
    assert status == 1 and not url["valid"]
    (url,), status = parse(mnemon, "../x?y", "--base", "https://example.org/a/b/c")
    assert status == 0 and url["href"] == "https://example.org/a/x?y"


def test_lines_of_standard_input(mnemon):
    urls, status = parse(mnemon, stdin="http://a/\r\n\nhttp://b\nnot a url\n")
    assert status == 1
    assert [url.get("href") for url in urls] == ["http://a/", "http://b/", None]


def test_hostile_lines_are_bounded(mnemon):
    long = "http://a/" + "x" * 200000
    urls, status = parse(mnemon, stdin=f"{long}\nhttp://b/\n")
    assert status == 1
    assert urls[0]["error"] == "limit"
    assert urls[1]["href"] == "http://b/"


def test_control_characters_never_reach_the_terminal(mnemon):
    result = mnemon("url", "http://a/\x1b[2J\x07")
    assert "\x1b" not in result.stdout and "\x07" not in result.stdout


def test_characters_newer_than_the_library(mnemon):
    """Of Unicode 15.0, 15.1, 16 and 17; as today's browsers have them."""
    for host, mapped in (("\U00031350b", "\U00031350b"), ("a\U0002ebf0b", "a\U0002ebf0b"), ("\U000323b0", "\U000323b0"), ("a\ua7dc", "a\u019b"),
                         ("\U0001ccd6\U0001ccf0", "a0")):
        ascii_host = mapped if mapped.isascii() else "xn--" + mapped.encode("punycode").decode()
        shown = mnemon("url", f"http://{host}.example/").stdout
        assert f"http://{ascii_host}.example/" in shown, (host, shown)
    for host in ("a\u2ffcb", "\U00010efax", "a\U00033480"):  # ideographic description, a mark first, not assigned
        assert "invalid" in mnemon("url", f"http://{host}.example/").stdout
