"""A large archive, and a node that comes to it with an empty disk: comparisons that end before all is found go on until all is there."""
import os

import pytest

from ringnodes import await_agreement, found, wait_for
from test_together import node  # noqa: F401 (a fixture by its name)

COUNT = 30_000  # more than three comparisons take, and than may wait
PATIENCE_S = 300
RECORD = (
    "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-{number:012}>\r\n"
    "WARC-Date: 2026-01-01T00:00:00Z\r\nWARC-Target-URI: http://example.org/p{number}\r\n"
    "Content-Type: application/http;msgtype=response\r\nContent-Length: {size}\r\n\r\n{http}\r\n\r\n"
)


def write(path):
    with path.open("w", newline="") as out:
        for number in range(COUNT):
            http = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\npage {number}"
            out.write(RECORD.format(number=number, size=len(http), http=http))


def keeping(each):
    return each.status().get("together", {}).get("keeping", {})


def is_whole(each):
    return all(arc["level"] == "whole" for arc in keeping(each)["arcs"])


@pytest.mark.skipif("MNEMON_TOGETHER" not in os.environ, reason="a longer one, with MNEMON_TOGETHER=12,5000,1")
def test_an_empty_node_is_filled_with_more_than_a_comparison_takes(node, tmp_path):
    first, second = node(2), node(3)
    write(tmp_path / "all.warc")
    assert first.run("import", tmp_path / "all.warc").returncode == 0
    found(first, "--open", "--replicas", "2")
    first.start()
    wait_for(lambda: keeping(first).get("keys") == COUNT, lambda: str(keeping(first)), PATIENCE_S)
    second.start("--join", first.place)
    await_agreement([first, second])
    wait_for(lambda: keeping(second).get("keys") == COUNT, lambda: str(keeping(second)), PATIENCE_S)
    assert keeping(second)["fetched"] == COUNT
    for each in (first, second):
        wait_for(lambda each=each: is_whole(each), lambda each=each: str(keeping(each)), PATIENCE_S)
