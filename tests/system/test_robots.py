"""mnemon robots"""
import json

import pytest

FILE = """# rules of a shop
User-agent: *
Disallow: /cart        # not for crawlers
Disallow: /*?sort=
Allow: /cart/help$

User-agent: Mnemon
User-agent: otherbot
Disallow: /private/
"""


@pytest.fixture
def robots(mnemon, tmp_path):
    """Write a file and ask: robots(text, "--agent", "x", "http://…")."""

    def run(text, *arguments, **options):
        path = tmp_path / "robots.txt"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return mnemon("robots", str(path), *arguments, **options)

    return run


def test_digits_are_part_of_a_name(robots):
    rules = "User-agent: crawler1\nDisallow: /\n\nUser-agent: crawler3/2.0\nDisallow: /three\n"
    for agent, path, allowed in (("crawler1", "/x", False), ("crawler3", "/x", True), ("crawler3", "/three", False), ("crawler", "/x", True)):
        verdict = robots(rules, "--agent", agent, "https://a.example" + path).stdout
        assert verdict.startswith("allow " if allowed else "deny "), (agent, path, verdict)


def test_prints_verdict_url_and_deciding_line(robots):
    result = robots(FILE, "--agent", "someone", "https://a.example/cart/1?x#y", "https://a.example/cart/help",
                    "https://a.example/list?sort=up", "https://a.example/")
    assert result.returncode == 0
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        'deny   https://a.example/cart/1?x  line 3: "Disallow: /cart" for "*"',
        'allow  https://a.example/cart/help  line 5: "Allow: /cart/help$" for "*"',
        'deny   https://a.example/list?sort=up  line 4: "Disallow: /*?sort=" for "*"',
        "allow  https://a.example/  no rule of robots.txt matches",
    ]


def test_asks_for_this_program_unless_told_otherwise(robots):
    assert robots(FILE, "http://a.example/private/x").stdout.startswith("deny ")
    assert robots(FILE, "http://a.example/cart").stdout.startswith("allow")
    agent = "OtherBot/2.1 (+https://other.example/bot)"
    assert robots(FILE, "--agent", agent, "http://a.example/private/x").stdout.startswith("deny ")
    assert robots(FILE, "--agent", "somebody", "http://a.example/private/x").stdout.startswith("allow")


def test_json(robots):
    result = robots(FILE, "--json", "http://a.example/private/x", "http://a.example/", "not a url")
    denied, allowed, invalid = map(json.loads, result.stdout.splitlines())
    assert denied == {
        "url": "http://a.example/private/x", "allowed": False, "line": 9, "text": "Disallow: /private/",
        "agent": "Mnemon", "reason": 'line 9 of robots.txt, "Disallow: /private/" for "Mnemon", decides',
    }
    assert allowed["allowed"] and "line" not in allowed
    assert invalid["error"]
    assert result.returncode == 1


def test_a_path_will_do(robots):
    result = robots(FILE, "/private/x", "/robots.txt")
    assert result.stdout.splitlines()[0].split()[:2] == ["deny", "/private/x"]
    assert result.stdout.splitlines()[1].split()[:2] == ["allow", "/robots.txt"]


def test_reads_standard_input(mnemon):
    result = mnemon("robots", "-", "http://a.example/x", stdin="User-agent: *\nDisallow: /\n")
    assert result.stdout.startswith("deny ")
    assert result.returncode == 0


def test_hostile_files_reach_neither_terminal_nor_memory(robots):
    text = b"User-agent: *\nDisallow: /\x1b[2J*\x07\xff\n" + b"Disallow: /" + b"*a" * 400000 + b"$\n"
    result = robots(text, "http://a.example/%1B[2Jx%07%ff", "http://a.example/" + "a" * 5000)
    assert result.returncode == 0
    assert "\x1b" not in result.stdout and "\x07" not in result.stdout
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["deny", "allow"]
    assert "line 2: " in result.stdout


def test_only_the_first_512_kib_count(robots):
    padding = "#" * 99 + "\n"
    early = "User-agent: *\n" + padding * 5100 + "Disallow: /early\n"
    text = early + padding * 500 + "Disallow: /late\n"
    result = robots(text, "/early", "/late")
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["deny", "allow"]


def test_wrong_usage(mnemon, tmp_path):
    assert mnemon("robots").returncode == 2
    assert mnemon("robots", str(tmp_path)).returncode == 2
    missing = mnemon("robots", str(tmp_path / "none"), "http://a.example/")
    assert missing.returncode == 1
    assert "No such file" in missing.stderr
    directory = mnemon("robots", str(tmp_path), "http://a.example/")
    assert directory.returncode == 1
    assert "directory" in directory.stderr
