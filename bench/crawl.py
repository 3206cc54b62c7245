#!/usr/bin/env python3
"""crawl.py MNEMON SITE [--pages N] [--only TOOL…] - crawl one generated site with mnemon and with what people use instead.

SITE is the program of bench/site.c. The site lies behind nginx on 20 loopback addresses. Each tool fetches all of it,
without pauses; mnemon a second time for the visit of an unchanged site. The fast tools do so in turns, several rounds, and
their medians count: one run of six seconds says little. Rates are URLs a second, ratios are mnemon's rate against the
tool's.
"""
import argparse
import json
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HOSTS = 20
ADDRESS = "127.0.1."
MIME = "types { text/html html; image/jpeg jpg; }"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.1.1", 0))
        return listener.getsockname()[1]


def start_nginx(root, site, port):
    # A worker whose file cache takes all its descriptors refuses requests and accepts no connection any more.
    descriptors = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 200000)
    servers = "".join(
        f"server {{ listen {ADDRESS}{host + 1}:{port}; root {site}/{host}; }}\n" for host in range(HOSTS)
    )
    config = f"""
daemon off; pid {root}/nginx.pid; error_log {root}/nginx.error warn; worker_processes 2;
worker_rlimit_nofile {descriptors};
events {{ worker_connections {min(4096, descriptors // 4)}; }}
http {{
    {MIME} access_log off; sendfile on; keepalive_requests 1000000; keepalive_timeout 300;
    open_file_cache max={descriptors // 2};
    client_body_temp_path {root}/nginx-body; proxy_temp_path {root}/nginx-proxy; fastcgi_temp_path {root}/nginx-fcgi;
    uwsgi_temp_path {root}/nginx-uwsgi; scgi_temp_path {root}/nginx-scgi;
    {servers}
}}
"""
    path = os.path.join(root, "nginx.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write(config)
    process = subprocess.Popen(["nginx", "-c", path], stderr=subprocess.DEVNULL)
    for _ in range(100):
        try:
            socket.create_connection((f"{ADDRESS}1", port), 1).close()
            return process
        except OSError:
            time.sleep(0.05)
    raise SystemExit("nginx does not answer")


def run(command, directory):
    """Seconds, peak memory in MB and output of a command."""
    os.makedirs(directory, exist_ok=True)
    started = time.monotonic()
    with open(os.path.join(directory, "output"), "w+", encoding="utf-8", errors="replace") as output:
        process = subprocess.Popen(command, cwd=directory, stdout=output, stderr=subprocess.DEVNULL)
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        seconds = time.monotonic() - started
        output.seek(0)
        return seconds, usage.ru_maxrss / 1024, output.read()


def size_of(directory):
    total = 0
    for path, _, names in os.walk(directory):
        total += sum(os.lstat(os.path.join(path, name)).st_size for name in names)
    return total / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mnemon")
    parser.add_argument("site")
    parser.add_argument("--pages", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=["mnemon", "wget", "wget2", "httrack"])
    options = parser.parse_args()
    options.mnemon = os.path.abspath(options.mnemon)
    missing = [tool for tool in ["nginx"] + options.only if tool != "mnemon" and not shutil.which(tool)]
    if missing:
        raise SystemExit(f"not installed: {' '.join(missing)}")
    root = tempfile.mkdtemp(prefix="mnemon-crawl-")
    os.chmod(root, 0o755)
    nginx = None
    try:
        port = free_port()
        site = os.path.join(root, "site")
        subprocess.run([options.site, site, str(HOSTS), str(options.pages), ADDRESS, str(port)], check=True)
        urls = sum(len(names) for _, _, names in os.walk(site))
        site_size = size_of(site)
        print(f"site: {urls} files, {site_size:.0f} MB, {HOSTS} hosts", flush=True)
        nginx = start_nginx(root, site, port)
        measure(options, root, port, urls, site_size)
    finally:
        if nginx is not None:
            nginx.terminate()
            nginx.wait()
        shutil.rmtree(root, ignore_errors=True)


def measure(options, root, port, urls, site_size):
    seed = f"http://{ADDRESS}1:{port}/d0/p0.html"
    domains = ",".join(f"{ADDRESS}{host + 1}" for host in range(HOSTS))
    archive = os.path.join(root, "archive")
    crawl = [options.mnemon, "archive", seed, "--data", archive, "--scope", "any", "--allow-private",
             "--delay", "0", "--json", "--quiet"]
    commands = {
        "mnemon": crawl,
        "wget": ["wget", "--quiet", "--recursive", "--level=inf", "--span-hosts", f"--domains={domains}",
                 "--execute=robots=off", "--warc-file=site", "--warc-cdx", "--delete-after", "--no-directories", seed],
        "wget2": ["wget2", "--quiet", "--recursive", "--level=0", "--span-hosts", f"--domains={domains}",
                  "--robots=off", "--max-threads=20", seed],
        "httrack": ["httrack", seed, "--path", os.path.join(root, "httrack"), "--quiet", "--ext-depth=10",
                    "--sockets=20", "--disable-security-limits", "--max-rate=0", "--connection-per-second=0",
                    "--robots=0", f"+{ADDRESS}*"],
    }
    def once(tool):
        directory = archive if tool == "mnemon" else os.path.join(root, tool)
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        subprocess.run(["sync"], check=False)
        seconds, memory, output = run(commands[tool], directory if tool != "mnemon" else root)
        return seconds, memory, output, size_of(directory)

    runs = {tool: [] for tool in options.only}
    fast = [tool for tool in options.only if tool in ("mnemon", "wget2")]
    for _ in range(options.rounds):
        for tool in fast:
            runs[tool].append(once(tool))
            if tool == "mnemon":
                check(json.loads(runs[tool][-1][2]), "200", urls)
    for tool in options.only:
        if tool not in fast:
            runs[tool].append(once(tool))
    rates = {tool: urls / statistics.median(each[0] for each in made) for tool, made in runs.items()}
    for tool, made in runs.items():
        ratio = rates["mnemon"] / rates[tool] if "mnemon" in rates else 0
        print(f"{tool:10} {rates[tool]:8.0f} URLs/s  {min(each[0] for each in made):6.2f} to "
              f"{max(each[0] for each in made):6.2f} s  {made[-1][3]:6.0f} MB on disk  "
              f"{max(each[1] for each in made):5.0f} MB memory  {ratio:6.2f}", flush=True)
    if "mnemon" in options.only:
        report(runs["mnemon"][-1][2], crawl, root, urls, site_size, rates["mnemon"])


def check(summary, status, urls):
    """A server in trouble is not what is to be measured: its errors are fast, and its silence is slow."""
    good = summary["statuses"].get(status, 0)
    if good < urls or summary["failed"] > 0:
        print(f"           {good} of {urls} files, by status {summary['statuses']}, failed {summary['failed']}: "
              "the figures are worth nothing", file=sys.stderr)
        sys.exit(1)


def report(output, crawl, root, urls, site_size, first_rate):
    summary = json.loads(output)
    print(f"           stored {summary['stored']}, failed {summary['failed']}, duplicates {summary['duplicates']}")
    seconds, _, output = run(crawl, root)
    summary = json.loads(output)
    check(summary, "304", urls)
    received = summary["received_bytes"] / 1e6
    print(f"{'again':10} {urls / seconds:8.0f} URLs/s  {seconds:7.2f} s  {received:6.1f} MB received, "
          f"{100 * received / site_size:.1f} % of the site; not modified {summary['not_modified']}; "
          f"vs the first visit (target 1x) {urls / seconds / first_rate:.2f}", flush=True)


if __name__ == "__main__":
    main()
