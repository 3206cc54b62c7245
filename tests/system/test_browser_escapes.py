"""Replayed pages that try to reach the live web, each with a listener of its own: not one connection may be opened."""
import json
import re
import selectors
import socket
import subprocess
import threading

import pytest

from escapes import FIELDS, MARKUP, PRELUDE, SCRIPTS
from test_browser import npm, program, run_script  # noqa: F401 (fixtures)
from test_browser_types import TIME, response, url_of


class Listeners:
    """One address and port for each way out, for TCP and UDP; which of them were reached."""

    def __init__(self, names):
        self.selector = selectors.DefaultSelector()
        self.addresses = {}
        self.reached = {}
        for number, name in enumerate(names):
            host = f"127.0.{7 + number // 250}.{1 + number % 250}"
            tcp = socket.create_server((host, 0))
            udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            udp.bind(tcp.getsockname())
            self.addresses[name] = "%s:%d" % tcp.getsockname()
            self.selector.register(tcp, selectors.EVENT_READ, name)
            self.selector.register(udp, selectors.EVENT_READ, name)
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        while True:
            for key, _ in self.selector.select():
                self.reached[key.data] = self.reached.get(key.data, 0) + 1
                if key.fileobj.type == socket.SOCK_STREAM:
                    key.fileobj.accept()[0].close()
                else:
                    key.fileobj.recv(2048)


def pages(addresses):
    """For each way the fields and the body of the page that tries it."""

    def fill(text, name):
        return text.replace("{L}", "http://" + addresses[name]).replace("{A}", addresses[name])

    for number, (name, script) in enumerate(SCRIPTS.items()):
        tried = f"new Image().src = '/tried?{number}';"  # the archive is asked for it: the script runs
        text = fill(PRELUDE, name) + "window.addEventListener('load', () => { " + tried + " setTimeout(() => { " + script + " }, 150) });"
        yield name, "", f'<!DOCTYPE html><html lang="en"><title>x</title><body><script>{text}</script></body></html>'
    for name, markup in MARKUP.items():
        yield name, "", f'<!DOCTYPE html><html lang="en"><title>x</title>{fill(markup, name)}'
    for name, fields in FIELDS.items():
        yield name, fill(fields, name) + "\r\n", f'<!DOCTYPE html><html lang="en"><title>x</title><img src="y.png"><a id="go" href="http://{addresses[name]}/x">x</a>'


@pytest.fixture(scope="module")
def node(program, tmp_path_factory):  # noqa: F811
    """An archive of all ways out: its origin, the numbers of the pages, and the listeners."""
    directory = tmp_path_factory.mktemp("escapes")
    names = [*SCRIPTS, *MARKUP, *FIELDS]
    listeners = Listeners(names)
    records = []
    for number, (_, fields, body) in enumerate(pages(listeners.addresses)):
        records.append(response(number, f"Content-Type: text/html; charset=utf-8\r\n{fields}".encode(), body.encode()))
    (directory / "escapes.warc").write_bytes(b"".join(records))
    data = directory / "data"
    subprocess.run([program, "import", "--quiet", "--data", data, directory / "escapes.warc"], check=True, timeout=120)
    process = subprocess.Popen([program, "serve", "--data", data, "--http", "0", "--allow-private"], stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    yield re.search(r"http://\S+", line)[0], {name: url_of(i) for i, name in enumerate(names)}, listeners
    process.terminate()
    process.wait(120)


def try_all(npm, node, form, names):  # noqa: F811
    origin, urls, listeners = node
    listeners.reached.clear()
    todo = [{"name": name, "url": urls[name], "form": form} for name in names]
    config = {"archive": origin, "part": "escaping", "times": [TIME], "sites": {}, "pages": todo}
    report = json.loads(run_script(npm, "hostile.js", timeout=600, is_whole=True, **config))
    return report["tried"], dict(listeners.reached)


def test_no_way_out_of_a_replayed_page_opens_a_connection(npm, node):  # noqa: F811
    tried, reached = try_all(npm, node, "", [*SCRIPTS, *MARKUP, *FIELDS])
    assert reached == {}
    assert [name for number, name in enumerate(SCRIPTS) if number not in tried] == [], "these scripts did not run"


def test_no_way_out_of_a_raw_page_opens_a_connection(npm, node):  # noqa: F811
    _, reached = try_all(npm, node, "id_", [*MARKUP, *FIELDS, "reflect get", "form", "svg link", "preconnect frame"])
    assert reached == {}
