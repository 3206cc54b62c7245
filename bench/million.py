#!/usr/bin/env python3
"""million.py MNEMON ENDLESS [--pages N] - crawl a made-up site of a million URLs: do rate and memory stay flat?

ENDLESS is the program of bench/endless.c, which makes pages when they are asked for. The rate of the first and of the
last tenth of the URLs are compared, and the processor time of both (which does not depend on what else the machine
does). Memory is the crawler's own (anonymous: mapped files are left out, the kernel may drop them), on average over
each tenth, for it goes up and down by 30 MB as newest entries gather and are written, once in about 100,000 URLs. The
set of known URLs may take 16 bytes for each; all else must be as large in the last tenth as in the second.
Ends with status 1 where pages are missing, the two rates differ by more than a fifth, or memory grew by more.
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
KNOWN_SIZE = 16  # bytes of memory that a known URL may take
GROWTH_MAX = 1.2  # of all other memory


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


def memory_of_tenths(samples):
    """Memory in each tenth of the requests, on average, in MB."""
    total = samples[-1][1]
    tenths = [[mb for _, count, mb, _ in samples if tenth * total < 10 * count <= (tenth + 1) * total]
              for tenth in range(10)]
    if not all(tenths):
        raise SystemExit("a tenth has no sample: too few to compare")
    return [sum(tenth) / len(tenth) for tenth in tenths]


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
    memory = memory_of_tenths(samples)
    growth = (memory[9] - 8 * tenth * KNOWN_SIZE / (1 << 20)) / memory[1]
    known = max(summary["known"], 1)
    processor_us = (usage.ru_utime + usage.ru_stime) / known * 1e6
    print(f"{summary['stored']} of {options.pages} stored in {summary['seconds']:.0f} s, failed {summary['failed']}, "
          f"{processor_us:.0f} us of processor time a URL")
    print(f"first tenth {first:.0f} URLs/s, last tenth {last:.0f} URLs/s, ratio (target {RATIO_MIN} to "
          f"{1 / RATIO_MIN}) {ratio:.2f}")
    print(f"processor time a URL {first_us:.0f} us in the first tenth, {last_us:.0f} us in the last, "
          f"{first_us / last_us:.2f}")
    print(f"memory of the tenths {' '.join(f'{mb:.0f}' for mb in memory)} MB, at most "
          f"{max(mb for _, _, mb, _ in samples):.0f} MB, with mapped files {usage.ru_maxrss / 1024:.0f} MB")
    print(f"the last tenth's without {KNOWN_SIZE} bytes for each URL that became known, against the second's "
          f"(target at most {GROWTH_MAX}) {growth:.2f}")
    print(f"on disk {size_of(root) / 1e6:.0f} MB, the frontier {size_of(os.path.join(root, 'jobs')) / known:.0f} bytes "
          "a URL")
    is_whole = summary["stored"] >= options.pages and summary["failed"] == 0
    is_flat = RATIO_MIN <= ratio <= 1 / RATIO_MIN and growth <= GROWTH_MAX
    return 0 if is_whole and is_flat else 1


if __name__ == "__main__":
    main()
