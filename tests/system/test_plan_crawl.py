"""mnemon plan --measured after five crawls on five days: its figures beside what the site was like, and what is on the disk."""
import gzip
import json
import os
import pathlib
import random
import re
import subprocess
import time

import pytest

from waiting import PATIENCE_S
from webserver import Site

DAYS = 5  # as the thesis crawled MIT
DAY_S = 86400 + 600
PAGES, IMAGES = 60, 46  # on the first day; 0.77 images a page
CHANGED = 4  # of the pages, each day, beside the first page, which names all
WORDS = "archive web page library history link crawl copy node ring disk year paper note index place time word list text".split()


@pytest.fixture
def library(root):
    program = pathlib.Path(os.environ.get("MNEMON", str(root / "build" / "mnemon")))
    made = program.parent / "tests" / "system" / "libshiftclock.so"
    if not made.exists():
        pytest.skip(f"{made} is not built")
    return made


class Week:
    """A site that changes and grows from day to day, and what is true of it."""

    def __init__(self):
        self.site = Site(is_fast=True)
        self.source = random.Random(7)
        self.editions = {}  # path of a page: how often it has changed
        self.images = {}
        self.captures = self.unchanged = self.distances = self.changes = 0
        self.bodies = []  # of each page as it is new

    def links(self, path):
        """Of a page: to other pages, and its image."""
        if path == "/":
            return [*self.editions, *self.images]
        number = int(path[2:])
        return [f"/p{(number * 7 + i) % PAGES}" for i in range(35)] + [f"/i{number % IMAGES}"]

    def put_page(self, path):
        edition = self.editions.get(path, 0)
        text = " ".join(self.source.choice(WORDS) + str(self.source.randrange(90)) for _ in range(1500))
        links = "".join(f'<img src="{link}">' if link[1] == "i" else f'<a href="{link}">x</a>' for link in self.links(path))
        body = f"<title>{path} {edition}</title>{links}<p>{text}"
        self.bodies.append((path, body))
        if edition % 2 == 0:  # as most servers send them
            self.site.put(path, gzip.compress(body.encode(), mtime=0), headers={"Content-Encoding": "gzip"})
        else:
            self.site.put(path, body)

    def begin(self, day):
        old = {"/", *self.editions, *self.images} if day else set()
        new_pages = [f"/p{i}" for i in range(PAGES)] if day == 0 else [f"/p{PAGES + day}"]
        new_images = [f"/i{i}" for i in range(IMAGES)] if day == 0 else [f"/i{IMAGES + day}"]
        changed = self.source.sample(sorted(self.editions), CHANGED) if day else []
        for path in new_images:
            self.images[path] = True
            self.site.put(path, self.source.randbytes(8000), kind="image/png")
        for path in (*new_pages, *changed):
            self.editions[path] = self.editions.get(path, -1) + 1
        for path in (*new_pages, *changed, "/"):
            self.put_page(path)
        changes = CHANGED + 1 if day else 0
        self.captures += 1 + len(self.editions) + len(self.images)
        self.unchanged += len(old) - changes
        self.distances += len(old) - sum(path in self.images for path in old)
        self.changes += changes


def crawl(mnemon, library, week, data, begin_s):
    environment = dict(os.environ, LD_PRELOAD=str(library), MNEMON_CLOCK_SHIFT=str(int(begin_s - time.time())))
    program = mnemon("version").args[0]
    done = subprocess.run([program, "archive", "--data", data, "--allow-private", "--delay", "0", "--quiet", week.site.url("/")],
                          capture_output=True, text=True, timeout=PATIENCE_S, env=environment)
    assert done.returncode == 0, done.stderr


def test_table_3_1_of_a_real_crawl_is_true(mnemon, library, tmp_path):
    week, data = Week(), tmp_path / "data"
    noon_s = time.time() // 86400 * 86400 - (DAYS + 2) * 86400 + 43200
    try:
        for day in range(DAYS):
            week.begin(day)
            crawl(mnemon, library, week, data, noon_s + day * DAY_S)
    finally:
        week.site.close()
    asked = ("plan", "--data", str(data), "--nodes", "3", "--replicas", "3", "--period", "1 d")
    told = json.loads(mnemon(*asked, "--json").stdout)
    measured, inputs = told["measured"], {name: each["value"] for name, each in told["inputs"].items()}

    # What was counted, to the last one.
    pages, images = 1 + len(week.editions), len(week.images)
    assert measured["pages"]["urls"] == pages and measured["embeds"]["urls"] == images
    assert measured["captures"] == week.captures and measured["unchanged_visits"] == week.unchanged
    assert measured["pages"]["distances"] == week.distances and measured["pages"]["changes"] == week.changes
    assert measured["embeds"]["changes"] == 0 and measured["duplicates"] == 0
    assert measured["pages_read"] == measured["pages"]["sizes"] == measured["pages"]["read"] == len(week.bodies)
    assert measured["pages"]["received"] == measured["pages"]["size"]
    assert measured["pages"]["decoded"] == sum(len(body) for _, body in week.bodies)
    assert measured["witnessed"] == 0 and told["inputs"]["witnesses"]["from"] == "preset"

    # Table 3.1.
    links = sum(len(re.findall("href=|src=", body)) for _, body in week.bodies)
    paths = ["/", *week.editions, *week.images]
    for name, truth in {
        "page-size": sum(len(body) for _, body in week.bodies) / len(week.bodies),
        "embed-size": 8000,
        "links": links / len(week.bodies),
        "url-size": sum(len(week.site.url(path)) for path in paths) / len(paths),
        "pages-changed": week.changes / week.distances,
        "added": 2 / (pages + images),
    }.items():
        assert told["inputs"][name] == {"value": pytest.approx(truth, rel=0.05), "from": "measured"}, name
    assert 0.2 < inputs["page-compressed"] < 0.6 and inputs["embed-compressed"] > 1
    assert inputs["embeds-changed"] == 0
    text = re.sub(" +", " ", mnemon(*asked).stdout)
    assert f"\n URLs {pages + images} 1,399,701\n" in text and "\n size of another object 8 KB 32 KB\n" in text
    assert "\n length of a URL" in text and "not measured" not in text.split("Table 3.1")[1].split("\n\n")[0]

    # The disk: contents and visits, as it says, are what the volumes hold beside the two files of text that every host has.
    files = {part: sum(path.stat().st_size for path in (data / part).rglob("*") if path.is_file()) for part in ("volumes", "index")}
    records = measured["pages"]["stored"] + measured["embeds"]["stored"]
    assert records < files["volumes"]
    assert 0.9 * files["volumes"] < records + measured["unchanged_visits_size"] < files["volumes"] + files["index"]
    assert inputs["visit-size"] == pytest.approx(measured["unchanged_visits_size"] / week.unchanged)
    day = pages + images - CHANGED - 1 - 2  # of a later day: what was visited, and neither new nor changed
    assert told["storage"]["unchanged_visits_day"] == pytest.approx(day, rel=0.05)
