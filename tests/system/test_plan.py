"""mnemon plan: the figures of the thesis, the questions of a user, an archive that is measured."""
import json
import re
import signal
import subprocess

import pytest


@pytest.fixture
def plan(mnemon):
    def run(*arguments):
        result = mnemon("plan", "--json", *arguments)
        assert result.returncode == 0, result.stderr
        assert result.stderr == ""
        return json.loads(result.stdout)

    return run


def value(data, path):
    for name in path.split("."):
        data = data[name]
    return data


# Chapters 3, 4.4 and 6 of the thesis, in bytes, kbit/s and shares.
THESIS = {
    "table.snapshot_pages.objects": 2e9,
    "table.snapshot_pages.size": 24e12,
    "table.snapshot_pages.stored": 6e12,
    "table.snapshot_embeds.objects": 1.54e9,
    "table.snapshot_embeds.size": 50e12,
    "table.snapshot_embeds.stored": 50e12,
    "table.snapshot.objects": 3.54e9,
    "table.snapshot.size": 74e12,
    "table.snapshot.stored": 56e12,
    "table.day_pages_changed.objects": 100e6,
    "table.day_pages_changed.size": 1.2e12,
    "table.day_pages_changed.stored": 300e9,
    "table.day_pages_added.objects": 10e6,
    "table.day_pages_added.size": 120e9,
    "table.day_pages_added.stored": 30e9,
    "table.day_pages.objects": 110e6,
    "table.day_pages.size": 1.3e12,
    "table.day_pages.stored": 330e9,
    "table.day_embeds.objects": 7.7e6,
    "table.day_embeds.size": 250e9,
    "table.day_embeds.stored": 250e9,
    "table.day.objects": 118e6,
    "table.day.size": 1.6e12,
    "table.day.stored": 580e9,
    "table.month_pages.objects": 3.3e9,
    "table.month_pages.size": 40e12,
    "table.month_pages.stored": 10e12,
    "table.month_embeds.objects": 231e6,
    "table.month_embeds.size": 7.5e12,
    "table.month_embeds.stored": 7.5e12,
    "table.month.objects": 3.5e9,
    "table.month.size": 47.5e12,
    "table.month.stored": 17.5e12,
    "storage.stored": 213.5e12,
    "storage.replicated": 1281e12,
    "storage.nodes_needed": 12810,
    "storage.nodes": 20000,
    "node_day.urls": 177000,
    "node_day.requests": 1062000,
    "node_day.downloads": 480e6,
    "bandwidth.downloads.up": 8,
    "bandwidth.downloads.down": 46,
    "bandwidth.links.up": 7,
    "bandwidth.links.down": 7,
    "bandwidth.crawling.up": 15,
    "bandwidth.crawling.down": 53,
    "bandwidth.repair.down": 150,
    "bandwidth.repair.up": 75,
    "bandwidth.total.up": 90,
    "bandwidth.total.down": 203,
    "keeping.unavailable": 0.000064,  # corrected
    "keeping.lifetime_needed_days": 360,
    "links.direct_lookup": 920,
    "links.ring_walk": 70,
}


def test_the_thesis_comes_out_within_one_percent(plan):
    data = plan("--preset", "thesis")
    for path, expected in THESIS.items():
        assert value(data, path) == pytest.approx(expected, rel=0.01), path


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ([], {"storage.stored": 96e12, "storage.replicated": 576e12, "storage.nodes_needed": 5760}),
        (["--replicas", "3"], {"storage.replicated": 288e12, "storage.nodes_needed": 2880}),
    ],
)
def test_herodotus_light(plan, arguments, expected):
    data = plan("--preset", "thesis-light", *arguments)
    for path, figure in expected.items():
        assert value(data, path) == pytest.approx(figure, rel=0.01), path


def test_the_table_for_people_has_the_same_figures(mnemon):
    result = mnemon("plan", "--preset", "thesis")
    assert result.returncode == 0 and result.stderr == ""
    squeezed = re.sub(" +", " ", result.stdout)
    for line in (
        "snapshot 3.54 billion 74 TB 56 TB",
        "a month 3.531 billion 47.5 TB 17.5 TB",
        "each object once 213.5 TB",
        "with all copies 1.281 PB",
        "nodes needed 12,810",
        "requests to web servers 1,062,000",
        "contents downloaded 480 MB",
        "downloads 46 kbit/s 8 kbit/s",
        "crawling: the above 53 kbit/s 15 kbit/s",
        "crawling, and filling 203 kbit/s 90 kbit/s",
        "an object cannot be read 0.0064 %",
    ):
        assert f"\n {line}\n" in squeezed, line
    assert "it is 0.0064 %" in squeezed  # the correction is said
    assert all(len(line) <= 80 for line in result.stdout.splitlines())


def test_today_is_the_default_and_says_that_it_assumes(plan):
    data = plan()
    assert data["preset"] == "today" and data["measured"] is None
    assert data["storage"]["disk"] == 20e12
    assert data["storage"]["nodes"] == data["storage"]["nodes_needed"] > 100
    assert any("assumptions" in note for note in data["notes"])


def test_nodes_ask_for_disks_and_disks_ask_for_nodes(plan):
    nodes = plan("--preset", "thesis", "--disk", "1 TB")
    assert nodes["inputs"]["nodes"]["from"] == "open"
    assert nodes["storage"]["nodes"] == 1281
    disks = plan("--preset", "thesis", "--nodes", "1281")
    assert disks["inputs"]["disk"]["from"] == "open"
    assert disks["storage"]["disk_needed"] == pytest.approx(1e12)
    both = plan("--preset", "thesis", "--nodes", "100", "--disk", "1 TB")
    assert both["storage"]["nodes_needed"] == 1281
    assert any("disks are too small" in note for note in both["notes"])


def test_values_are_read_with_their_units(plan):
    given = {
        "pages": ("2.5M", 2.5e6),
        "page-size": ("1.5 KB", 1500),
        "pages-changed": ("2.5%", 0.025),
        "duplicates": ("0.3", 0.3),
        "period": ("36 h", 1.5),
        "line": ("20 Mbit/s", 20000),
        "replicas": ("3", 3),
    }
    inputs = plan(*(word for name, (text, _) in given.items() for word in (f"--{name}", text)))["inputs"]
    for name, (_, expected) in given.items():
        assert inputs[name] == {"value": pytest.approx(expected), "from": "given"}
    assert inputs["embeds"]["from"] == "preset"


@pytest.mark.parametrize(
    "arguments, reason",
    [
        (["--pages", "-5"], '--pages: "-5" is negative'),
        (["--disk", "-1 TB"], '--disk: "-1 TB" is negative'),
        (["--pages", "0"], '--pages: "0" is too small: at least 1'),
        (["--pages", "9" * 24], "is too large: at most 1e+15"),
        (["--pages", "9" * 400], "is not understood"),
        (["--pages", "many"], '--pages: "many" is not understood (12, 0.77, 5M, 2.5B)'),
        (["--pages", "nan"], "is not understood"),
        (["--pages", "1.2.3"], "is not understood"),
        (["--pages", ""], "is not understood"),
        (["--nodes", "0"], "--nodes: an archive needs at least some room"),
        (["--disk", "0"], "--disk: an archive needs at least some room"),
        (["--nodes", "2.5"], '"2.5" is not a whole number'),
        (["--disk", "5"], '"5" is not a number with a unit'),
        (["--disk", "99999999999999 TB"], "--disk: "),
        (["--uptime", "80"], "write 80% for a percentage"),
        (["--uptime", "120%"], "is too large"),
        (["--replicas", "0"], "is too small"),
        (["--replicas", "65"], "is too large: at most 64"),
        (["--line", "100"], "100 Mbit/s"),
        (["--period", "0"], "is too small"),
        (["--disk", "1 B", "--pages", "1000B"], "more than 1e+12 nodes"),
        (["--preset", "thesis-ligth"], "did you mean thesis-light?"),
        (["--replica", "3"], "did you mean --replicas?"),
        (["now"], 'unexpected argument "now"'),
    ],
)
def test_absurd_values_are_refused_with_the_reason(mnemon, arguments, reason):
    result = mnemon("plan", *arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert reason in result.stderr


def test_a_ring_of_three_is_told_that_it_cannot_hold_six_copies(plan):
    data = plan("--nodes", "3", "--pages", "1000")
    assert data["storage"]["copies"] == 3
    assert "3 nodes can hold 3 copies, not 6." in data["notes"]


# ---- one's own archive ----


def record(number, url, day, mime, body):
    block = f"HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\n\r\n".encode() + body
    head = (
        "WARC/1.1\r\nWARC-Type: response\r\n"
        f"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{number:012}>\r\n"
        f"WARC-Target-URI: {url}\r\nWARC-Date: 2026-01-{day:02}T00:00:00Z\r\n"
        f"Content-Type: application/http;msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def page(i, version):
    links = "".join(f'<a href="/{i}/{n}">{n}</a>' for n in range(4))
    return f"<title>{i} {version}</title>{links}".ljust(1000, ".").encode()


@pytest.fixture
def archive(mnemon, tmp_path):
    """
    Ten pages with four links, visited on two days a week apart: five of them changed. Ten images, of which five
    are copies of one. Of one URL only an error and a redirect.
    """
    captures = [(f"http://example.org/{i}", 1, "text/html", page(i, 0)) for i in range(10)]
    captures += [(f"http://example.org/{i}", 8, "text/html", page(i, int(i < 5))) for i in range(10)]
    captures += [(f"http://example.org/{i}.png", 1, "image/png", bytes([max(i, 5)]) * 500) for i in range(10)]
    records = [record(number, *capture) for number, capture in enumerate(captures)]
    records.append(record(100, "http://example.org/gone", 1, "text/html", b"gone").replace(b"200 OK", b"404 NO"))
    source = tmp_path / "own.warc"
    source.write_bytes(b"".join(records))
    data = tmp_path / "data"
    assert mnemon("import", "--quiet", "--data", str(data), str(source)).returncode == 0
    return data


def check_measured(data):
    measured = data["measured"]
    assert measured["captures"] == 30
    assert measured["contents"] == 25 and measured["duplicates"] == 5
    assert measured["pages"]["urls"] == measured["embeds"]["urls"] == 10
    assert measured["pages"]["distances"] == 10 and measured["pages"]["changes"] == 5
    assert measured["embeds"]["distances"] == 0
    inputs = data["inputs"]
    expected = {
        "pages": 10,
        "embeds": 1,
        "page-size": 1000,
        "embed-size": 500,
        "links": 4,
        "duplicates": 0.2,
        "pages-changed": 1 - (5.5 / 10.5) ** (1 / 7),
    }
    for name, figure in expected.items():
        assert inputs[name] == {"value": pytest.approx(figure), "from": "measured"}, name
    assert 0 < inputs["page-compressed"]["value"] < 1
    assert inputs["url-size"]["from"] == "measured"
    assert inputs["added"]["from"] == inputs["embeds-changed"]["from"] == "preset"


def test_an_archive_is_measured(plan, archive, monkeypatch):
    data = plan("--data", str(archive))
    assert data["measured"]["directory"] == str(archive)
    check_measured(data)
    monkeypatch.setenv("MNEMON_DATA", str(archive))
    check_measured(plan("--measured"))


def test_what_is_given_goes_before_what_is_measured(plan, archive):
    inputs = plan("--data", str(archive), "--pages", "1M", "--links", "7")["inputs"]
    assert inputs["pages"] == {"value": 1e6, "from": "given"}
    assert inputs["links"] == {"value": 7, "from": "given"}
    assert inputs["page-size"] == {"value": 1000, "from": "measured"}


def test_measured_figures_are_shown_to_people(mnemon, archive):
    result = mnemon("plan", "--data", str(archive))
    squeezed = re.sub(" +", " ", result.stdout)
    assert result.returncode == 0 and result.stderr == ""
    for line in ("URLs with contents 20", "captures of them 30", "captures per URL 1.5",
                 "unchanged since the one before 50 %", "contents it had from other URLs 20 %"):
        assert f"\n {line}\n" in squeezed, line
    assert "is not measured" in squeezed


def test_an_archive_is_measured_through_its_running_node(mnemon, plan, archive):
    program = mnemon("version").args[0]
    node = subprocess.Popen(
        [program, "serve", "--data", str(archive), "--http", "0"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert "http://" in node.stdout.readline()
        check_measured(plan("--data", str(archive)))
    finally:
        node.send_signal(signal.SIGTERM)
        node.wait(120)


def test_without_pages_nothing_can_be_measured(mnemon, tmp_path):
    none = mnemon("plan", "--data", str(tmp_path / "none"))
    assert none.returncode == 1 and "there is no archive" in none.stderr
    data = str(tmp_path / "data")
    assert mnemon("store", "put", "-", "--data", data, stdin="no page").returncode == 0
    empty = mnemon("plan", "--data", data)
    assert empty.returncode == 1 and "holds no pages" in empty.stderr
    assert empty.stdout == ""


def test_help_man_page_and_completion_know_it(mnemon):
    assert "\n  plan " in mnemon("--help").stdout
    page_text = mnemon("plan", "--help").stdout
    for option in ("--preset", "--nodes", "--disk", "--measured", "--replicas", "--rounding"):
        assert option in page_text
    assert "today, thesis, thesis-light" in re.sub(r"\s+", " ", page_text)
    assert "mnemon plan" in mnemon("help", "--man").stdout.replace("\\-", "-")
    assert '"plan --preset "*) words="today thesis thesis-light"' in mnemon("completion", "bash").stdout


def test_unchanged_visits_and_what_is_added_are_measured(mnemon, plan, tmp_path):
    """Ten pages that never change, visited every week; three that came later, one of them in the last week."""
    days = {number: (1, 8, 15, 22) for number in range(10)} | {10: (15, 22), 11: (15, 22), 12: (22,)}
    captures = [(f"http://example.org/{number}", day, "text/html", page(number, 0)) for number in days for day in days[number]]
    source = tmp_path / "own.warc"
    source.write_bytes(b"".join(record(number, *capture) for number, capture in enumerate(captures)))
    data = tmp_path / "data"
    assert mnemon("import", "--quiet", "--data", str(data), str(source)).returncode == 0
    told = plan("--data", str(data), "--nodes", "3", "--replicas", "3")
    assert told["measured"]["unchanged_visits"] == 32
    assert told["measured"]["added_urls"] == 3 and told["measured"]["added_days"] == 14, "the first round takes 8 of 22 days"
    assert told["inputs"]["added"] == {"value": pytest.approx(3 / 13 / 14), "from": "measured"}
    size = told["inputs"]["visit-size"]
    assert size["from"] == "measured" and size["value"] == pytest.approx(told["measured"]["unchanged_visits_size"] / 32)
    asked = ("--data", str(data), "--nodes", "3", "--replicas", "3", "--visit-size", "300 B")
    one, two = (plan(*asked, "--witnesses", number)["storage"] for number in "12")
    visits = told["table"]["snapshot"]["objects"] / told["inputs"]["period"]["value"]
    assert two["unchanged_visits_day"] - one["unchanged_visits_day"] == pytest.approx(visits)
    assert two["stored"] - one["stored"] == pytest.approx(12 * 30 * visits * 300)
    text = mnemon("plan", "--data", str(data), "--nodes", "3").stdout
    assert "of it, unchanged visits" in text and "(--added) is not measured" not in text
