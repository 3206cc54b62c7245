#!/usr/bin/env python3
"""million.py MNEMON ENDLESS [--pages N] - crawl a made-up site of a million URLs: do rate and memory stay flat?

ENDLESS is the program of bench/endless.c, which makes pages when they are asked for. The rate of the first and of the
last tenth of the URLs are compared, the processor time of both (which does not depend on what else the machine does),
and the crawler's own memory (without what the kernel may drop) at both times.
Ends with status 1 where pages are missing or the two rates differ by more than a fifth.
"""
import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

ADDRESS = "127.0.3."
HOSTS = 20
DISK_PER_PAGE = 4000  # bytes, with room for what compactions write twice
RATIO_MIN = 0.8


def free_port():
    with socket.socket() as listener:
        listener.bind((ADDRESS + "1", 0))
        return listener.getsockname()[1]


def memory_of(pid):
    """Anonymous memory in MB."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["RssAnon"].split()[0]) / 1024


def processor_of(pid):
    """Seconds of processor time so far."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for(server, port):
    for _ in range(200):
        if server.poll() is not None:
            raise SystemExit("the server has ended")
        try:
            socket.create_connection((f"{ADDRESS}{HOSTS}", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit("the server does not answer")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mnemon")
    parser.add_argument("endless")
    parser.add_argument("--pages", type=int, default=1000000)
    options = parser.parse_args()
    root = tempfile.mkdtemp(prefix="mnemon-million-")
    server = None
    try:
        if shutil.disk_usage(root).free < options.pages * DISK_PER_PAGE:
            raise SystemExit(f"less than {options.pages * DISK_PER_PAGE / 1e9:.1f} GB are free in {root}")
        port = free_port()
        server = subprocess.Popen([options.endless, ADDRESS, str(HOSTS), str(port), str(options.pages)],
                                  stdout=subprocess.PIPE, text=True)
        wait_for(server, port)
        status = measure(options, root, server, port)
    finally:
        if server is not None:
            server.kill()
            server.wait()
        shutil.rmtree(root, ignore_errors=True)
    sys.exit(status)


def measure(options, root, server, port):
    samples = [(time.monotonic(), 0, 0.0, 0.0)]
    with open(os.path.join(root, "summary"), "w+", encoding="utf-8") as output:
        crawl = subprocess.Popen([options.mnemon, "archive", f"http://{ADDRESS}1:{port}/p/0.html", "--data", root,
                                  "--scope", "any", "--allow-private", "--delay", "0", "--json", "--quiet"],
                                 stdout=output)

        def watch():
            for line in server.stdout:
                try:
                    samples.append((time.monotonic(), int(line.split()[1]), memory_of(crawl.pid),
                                    processor_of(crawl.pid)))
                except (OSError, KeyError):
                    return

        threading.Thread(target=watch, daemon=True).start()
        _, status, usage = os.wait4(crawl.pid, 0)
        crawl.returncode = os.waitstatus_to_exitcode(status)
        if crawl.returncode != 0:
            raise SystemExit(f"the crawl ended with status {crawl.returncode}")
        output.seek(0)
        summary = json.load(output)
    return report(options, list(samples), summary, usage, root)


def value_at(samples, count, column):
    """The time (column 0), the processor time (3) when so many requests had been answered, between two samples."""
    for one, next in zip(samples, samples[1:]):
        if one[1] <= count <= next[1] and next[1] > one[1]:
            return one[column] + (next[column] - one[column]) * (count - one[1]) / (next[1] - one[1])
    return samples[-1][column]


def spent(samples, start, end, column):
    return value_at(samples, end, column) - value_at(samples, start, column)


def size_of(directory):
    return sum(os.lstat(os.path.join(path, name)).st_size for path, _, names in os.walk(directory) for name in names)


def report(options, samples, summary, usage, root):
    total = samples[-1][1]
    tenth = total // 10
    if tenth == 0 or len(samples) < 20:
        raise SystemExit(f"{total} requests in {len(samples)} samples: too few to compare")
    first = tenth / spent(samples, 1, tenth, 0)
    last = tenth / spent(samples, total - tenth, total, 0)
    first_us, last_us = (spent(samples, *span, 3) / tenth * 1e6 for span in ((1, tenth), (total - tenth, total)))
    ratio = last / first
    memory = [mb for _, count, mb, _ in samples if count > tenth]
    known = max(summary["known"], 1)
    processor_us = (usage.ru_utime + usage.ru_stime) / known * 1e6
    print(f"{summary['stored']} of {options.pages} stored in {summary['seconds']:.0f} s, failed {summary['failed']}, "
          f"{processor_us:.0f} us of processor time a URL")
    print(f"first tenth {first:.0f} URLs/s, last tenth {last:.0f} URLs/s, ratio (target {RATIO_MIN} to "
          f"{1 / RATIO_MIN}) {ratio:.2f}")
    print(f"processor time a URL {first_us:.0f} us in the first tenth, {last_us:.0f} us in the last, "
          f"{first_us / last_us:.2f}")
    print(f"memory after the first tenth {memory[0]:.0f} MB, at most {max(memory):.0f} MB, at the end "
          f"{memory[-1]:.0f} MB; with mapped files at most {usage.ru_maxrss / 1024:.0f} MB")
    print(f"on disk {size_of(root) / 1e6:.0f} MB, the frontier {size_of(os.path.join(root, 'jobs')) / known:.0f} bytes "
          "a URL")
    is_whole = summary["stored"] >= options.pages and summary["failed"] == 0
    return 0 if is_whole and RATIO_MIN <= ratio <= 1 / RATIO_MIN else 1


if __name__ == "__main__":
    main()
