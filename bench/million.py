#!/usr/bin/env python3
"""million.py MNEMON ENDLESS [--pages N] - crawl a made-up site of a million URLs: do rate and memory stay flat?

ENDLESS is the program of bench/endless.c, which makes pages when they are asked for. The rate of the first and of the
last tenth of the URLs are compared, and the crawler's own memory (without what the kernel may drop) at both times.
"""
import argparse
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time

ADDRESS = "127.0.3."
HOSTS = 20


def free_port():
    with socket.socket() as listener:
        listener.bind((ADDRESS + "1", 0))
        return listener.getsockname()[1]


def memory_of(pid):
    """Anonymous memory in MB."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["RssAnon"].split()[0]) / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mnemon")
    parser.add_argument("endless")
    parser.add_argument("--pages", type=int, default=1000000)
    options = parser.parse_args()
    root = tempfile.mkdtemp(prefix="mnemon-million-")
    port = free_port()
    server = subprocess.Popen([options.endless, ADDRESS, str(HOSTS), str(port), str(options.pages)],
                              stdout=subprocess.PIPE, text=True)
    samples = [(time.monotonic(), 0, 0.0)]
    try:
        crawl = subprocess.Popen([options.mnemon, "archive", f"http://{ADDRESS}1:{port}/p/0.html", "--data", root,
                                  "--scope", "any", "--allow-private", "--delay", "0", "--json", "--quiet"],
                                 stdout=subprocess.PIPE, text=True)

        def watch():
            for line in server.stdout:
                try:
                    samples.append((time.monotonic(), int(line.split()[1]), memory_of(crawl.pid)))
                except (OSError, KeyError):
                    return

        threading.Thread(target=watch, daemon=True).start()
        summary = json.loads(crawl.communicate()[0])
        report(options, samples, summary, root)
    finally:
        server.kill()
        shutil.rmtree(root, ignore_errors=True)


def time_at(samples, count):
    """When so many requests had been answered, between two samples."""
    for (t0, n0, _), (t1, n1, _) in zip(samples, samples[1:]):
        if n0 <= count <= n1 and n1 > n0:
            return t0 + (t1 - t0) * (count - n0) / (n1 - n0)
    return samples[-1][0]


def report(options, samples, summary, root):
    total = samples[-1][1]
    tenth = total // 10
    first = tenth / (time_at(samples, tenth) - samples[0][0])
    last = tenth / (time_at(samples, total) - time_at(samples, total - tenth))
    memory = [mb for _, count, mb in samples if count > tenth]
    size = sum(os.lstat(os.path.join(path, name)).st_size for path, _, names in os.walk(root) for name in names)
    print(f"{summary['stored']} of {options.pages} stored in {summary['seconds']:.0f} s, failed {summary['failed']}, "
          f"{size / 1e6:.0f} MB on disk")
    print(f"first tenth {first:.0f} URLs/s, last tenth {last:.0f} URLs/s, ratio {last / first:.2f}")
    print(f"memory after the first tenth {memory[0]:.0f} MB, at most {max(memory):.0f} MB, at the end {memory[-1]:.0f} MB")


if __name__ == "__main__":
    main()
