"""What a power failure may leave of a directory: calls of real processes, recorded by strace, played on a model of a disk.

record() runs a story (a Python script) under strace. Whatever the story and the programs that it starts do to the
files below one root becomes a list of steps, in the order of the calls. Disk plays steps: what was synced is durable;
everything else is pending. Disk.states() makes directories as they may be found after the failure:

- data that was not synced is missing, there, or there in part: whole blocks of 4 KiB, or sectors of 512 bytes, each the
  old one, the new one or, behind the old end, zeros. A file may be as long as it was, as it became, or in between;
- a name that was made, changed or removed is durable when its directory was synced, and until then may be there or not,
  each by itself; or (as journals do it) all up to some moment. A rename happened or not, never by half;
- fsync() and fdatasync() make durable what was complete when they were called, and only once they have returned.

A file's fsync() does not make its name durable here, although most file systems do so for new files.
"""
import os
import pathlib
import random
import re
import subprocess
import sys

PAGE = 4096
SECTOR = 512
CALLS = ("open,openat,creat,rename,renameat,renameat2,mkdir,mkdirat,unlink,unlinkat,rmdir,link,linkat,symlink,symlinkat,"
         "write,pwrite64,writev,pwritev,pwritev2,lseek,ftruncate,truncate,fallocate,fsync,fdatasync,sync,syncfs,sendto,"
         "sendmsg,sendfile,copy_file_range,utimensat,fchmod,chmod,fchmodat,exit_group,mmap,clone,clone3,fork,vfork,dup2,"
         "dup3,dup")
ZEROS = bytes(PAGE)


class Unknown(Exception):
    """The trace has something that the model does not: better none than a wrong one."""


# ---- the trace ----


def record(script, trace, *arguments, environment=None):
    """Run the story. -D: strace is nobody's child, so the story's own exit status is the one that comes back."""
    command = ["strace", "-D", "-f", "--seccomp-bpf", "-y", "-xx", "-s", "100000000", "-o", str(trace), "-e",
               f"trace={CALLS}", "-e", "signal=none", sys.executable, str(script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(environment or {})})
    assert done.returncode == 0, f"{script} {arguments}:\n{done.stdout}{done.stderr}"


def unhex(text):
    return bytes.fromhex(text.replace("\\x", ""))


class Call:
    __slots__ = ("process", "name", "arguments", "result", "result_path")

    def __init__(self, process, name, text, result):
        self.process, self.name = process, name
        self.arguments = split(text)
        number, _, rest = result.strip().partition("<")
        self.result = int(number.split()[0], 0) if number.strip() not in ("?", "") else 0
        self.result_path = os.fsdecode(unhex(rest.split(">")[0])) if rest.startswith("\\x") else None

    def fd(self, i=0):
        """(number, path): of an argument such as 5<\\x2f…>."""
        number, _, rest = self.arguments[i].partition("<")
        path = os.fsdecode(unhex(rest.rstrip(">").split(">")[0])) if rest.startswith("\\x") else rest.rstrip(">")
        return (-100 if number.startswith("AT_FDCWD") else int(number)), path

    def string(self, i):
        return unhex(self.arguments[i].strip('"'))

    def path(self, i, at=None):
        """The absolute path of an argument, below the directory of another one; programs here name their files so."""
        path = os.fsdecode(self.string(i))
        base = self.fd(at)[1] if at is not None else "/"
        return os.path.normpath(os.path.join(base, path))

    def vector(self, i):
        return b"".join(unhex(part) for part in re.findall(r'iov_base="([^"]*)"', self.arguments[i]))


def split(text):
    """Arguments; commas within brackets do not count. Strings are all hexadecimal."""
    if not any(bracket in text for bracket in "[{("):
        return [part.strip() for part in text.split(",")]
    parts, depth, start = [], 0, 0
    for match in re.finditer(r"[\[\]{}(),]", text):
        sign = match[0]
        depth += (sign in "[{(") - (sign in "]})")
        if sign == "," and depth == 0:
            parts.append(text[start:match.start()].strip())
            start = match.end()
    return [*parts, text[start:].strip()]


LINE = re.compile(r"(\d+) +(\w+)\((.*)\) += (.*)$", re.DOTALL)
CALL_BEGUN = re.compile(r"(\d+) +(\w+)\((.*?),? ?<unfinished \.\.\.>$", re.DOTALL)
CALL_RESUMED = re.compile(r"(\d+) +<\.\.\. (\w+) resumed>(.*)\) += (.*)$", re.DOTALL)


def read_calls(trace):
    """("begin" or "end", Call) in order. A call that no other one cut in two has both at once."""
    lines = pathlib.Path(trace).read_text().splitlines()
    owners = {}  # thread: process
    for line in lines:
        match = re.match(r"(\d+) +(?:<\.\.\. )?clone3?(?:\(| resumed>).* = (\d+)", line)
        if match and "CLONE_THREAD" in line:
            owners[match[2]] = match[1]
    begun = {}  # thread: name, arguments so far
    for line in lines:  # threads whose clone3() was cut in two: the flags are in the first part
        if match := re.match(r"(\d+) +(clone3?)\(.*<unfinished", line):
            begun[match[1]] = line
        elif match := re.match(r"(\d+) +<\.\.\. clone3? resumed>.* = (\d+)", line):
            if "CLONE_THREAD" in begun.get(match[1], ""):
                owners[match[2]] = match[1]

    def process_of(thread):
        while thread in owners:
            thread = owners[thread]
        return thread

    begun = {}
    for line in lines:
        if "+++ " in line or "--- " in line:
            continue
        if match := CALL_RESUMED.match(line):
            thread, name, rest, result = match.groups()
            first = begun.pop(thread, None)
            if first is None:
                continue
            before, call = first
            joined = ", ".join(part for part in (before, rest.strip(" ,")) if part)
            whole = Call(process_of(thread), name, joined, result)
            call.arguments, call.result, call.result_path = whole.arguments, whole.result, whole.result_path
            yield "end", call
        elif match := CALL_BEGUN.match(line):
            thread, name, before = match.groups()
            call = Call(process_of(thread), name, before, "?")
            begun[thread] = (before, call)
            yield "begin", call
        elif match := LINE.match(line):
            thread, name, text, result = match.groups()
            if result.startswith("?") and name != "exit_group":
                continue
            call = Call(process_of(thread), name, text, result)
            yield "begin", call
            yield "end", call


# ---- the disk ----


class Content:
    """Bytes in pages; what was never written is zero."""

    def __init__(self, pages=None, size=0):
        self.pages, self.size = pages or {}, size

    def copy(self):
        return Content(dict(self.pages), self.size)

    def page(self, i):
        return self.pages.get(i, ZEROS)

    def write(self, offset, data):
        at = 0
        while at < len(data):
            i, start = divmod(offset + at, PAGE)
            part = data[at:at + PAGE - start]
            old = self.page(i)
            self.pages[i] = old[:start] + part + old[start + len(part):] if len(part) < PAGE else part
            at += len(part)
        self.size = max(self.size, offset + len(data))

    def truncate(self, size):
        if size < self.size:
            last, start = divmod(size, PAGE)
            self.pages = {i: page for i, page in self.pages.items() if i <= last}
            if last in self.pages:
                self.pages[last] = self.pages[last][:start] + bytes(PAGE - start)
        self.size = size

    def save(self, path):
        with open(path, "wb") as file:
            file.truncate(self.size)
            for i, page in sorted(self.pages.items()):
                if i * PAGE < self.size:
                    file.seek(i * PAGE)
                    file.write(page[:self.size - i * PAGE])


class Inode:
    """durable: as the last fsync() left it. pending: functions that change a Content or Facts, in order."""

    def __init__(self, kind, mode, target=None):
        self.kind, self.mode, self.target = kind, mode, target
        self.now = Content() if kind == "file" else {}
        self.durable = Content() if kind == "file" else {}
        self.pending = []  # files: (what, offset or size, data); directories: Change
        self.facts, self.durable_facts = {}, {}  # mode, time

    def settle(self, count):
        for change in self.pending[:count]:
            if self.kind == "file":
                apply_to_file(self.durable, change)
            else:
                change.is_durable = True
                for directory in change.directories:
                    if change in directory.pending:
                        change.apply(directory, directory.durable)
                        directory.pending.remove(change)
        if self.kind == "file":
            self.pending = self.pending[count:]
        self.durable_facts = dict(self.facts)


def apply_to_file(content, change):
    what, offset, data = change
    if what == "write":
        content.write(offset, data)
    elif what == "truncate":
        content.truncate(offset)
    else:
        content.size = max(content.size, offset)


class Change:
    """Of names: removed is a list of (directory, name), made of (directory, name, inode)."""

    def __init__(self, number, removed=(), made=()):
        self.number, self.removed, self.made = number, list(removed), list(made)
        self.directories = {id(d): d for d, *_ in (*self.removed, *self.made)}.values()
        self.is_durable = False

    def apply(self, directory, entries):
        for at, name, inode in self.removed:
            if at is directory and entries.get(name) is inode:
                del entries[name]
        for at, name, inode in self.made:
            if at is directory:
                entries[name] = inode


class Open:
    def __init__(self, inode, is_append):
        self.inode, self.offset, self.is_append = inode, 0, is_append


class Disk:
    """The directory `root`, which is empty when the story begins."""

    def __init__(self, root):
        self.root = str(root)
        self.top = Inode("directory", 0o700)
        self.tables = {}  # process: fd: Open
        self.synced = {}  # id of a call that syncs: [(inode, how many changes)]
        self.changes_count = 0
        self.steps_count = 0  # of what changed or synced anything

    # paths

    def find(self, path, follow=True):
        """The inode, or None if it is not below the root or not there."""
        if path != self.root and not path.startswith(self.root + "/"):
            return None
        inode = self.top
        parts = [part for part in path[len(self.root):].split("/") if part]
        for i, part in enumerate(parts):
            inode = inode.now.get(part) if inode.kind == "directory" else None
            if inode is None:
                return None
            if inode.kind == "link" and (follow or i + 1 < len(parts)):
                base = os.path.join(self.root, *parts[:i])
                return self.find(os.path.normpath(os.path.join(base, inode.target, *parts[i + 1:])), follow)
        return inode

    def parent(self, path):
        """(directory, name), or (None, …) outside. Links on the way are followed."""
        return (self.find(os.path.dirname(path)) if path.startswith(self.root + "/") else None), os.path.basename(path)

    def every(self):
        seen, waiting = {}, [self.top]
        while waiting:
            inode = waiting.pop()
            if id(inode) not in seen:
                seen[id(inode)] = inode
                if inode.kind == "directory":
                    waiting += [*inode.now.values(), *inode.durable.values()]
        return seen.values()

    # changes

    def change(self, removed=(), made=()):
        """Names, now; durable later."""
        self.changes_count += 1
        change = Change(self.changes_count, [(d, n, d.now[n]) for d, n in removed], made)
        for directory in change.directories:
            change.apply(directory, directory.now)
            directory.pending.append(change)
        self.steps_count += 1

    def alter(self, inode, what, offset, data=b""):
        apply_to_file(inode.now, (what, offset, data))
        inode.pending.append((what, offset, data))
        self.steps_count += 1

    def opened(self, call, i=0):
        """The open file of an argument; one that was inherited is found by its path."""
        number, path = call.fd(i)
        table = self.tables.setdefault(call.process, {})
        if path.endswith(" (deleted)"):
            return table.get(number) or Open(None, False)
        inode = self.find(path) if path.startswith("/") else None
        if number not in table or (inode is not None and table[number].inode is not inode):
            table[number] = Open(inode, True)
        if inode is None and not path.startswith(self.root):
            return Open(None, False)
        return table[number]

    def begin(self, call):
        if call.name in ("fsync", "fdatasync"):
            inode = self.opened(call).inode
            self.synced[id(call)] = [(inode, len(inode.pending))] if inode is not None else []
        elif call.name in ("sync", "syncfs"):
            self.synced[id(call)] = [(inode, len(inode.pending)) for inode in self.every()]

    def end(self, call):
        if call.result >= 0 and (method := getattr(self, "do_" + call.name, None)) is not None:
            method(call)

    # calls

    def do_fsync(self, call):
        for inode, count in self.synced.pop(id(call), ()):
            inode.settle(count)
            self.steps_count += 1

    do_fdatasync = do_sync = do_syncfs = do_fsync

    def open(self, call, path, flags, mode):
        inode = self.find(path)
        directory, name = self.parent(path)
        if "O_TMPFILE" in flags:
            inode = None
        elif inode is None and directory is not None and "O_CREAT" in flags:
            inode = Inode("file", int(mode or "0644", 8))
            self.change(made=[(directory, name, inode)])
        elif inode is not None and inode.kind == "file" and "O_TRUNC" in flags and inode.now.size > 0:
            self.alter(inode, "truncate", 0)
        self.tables.setdefault(call.process, {})[call.result] = Open(inode, "O_APPEND" in flags)
        if inode is not None and ("O_SYNC" in flags or "O_DSYNC" in flags or "O_DIRECT|" in flags):
            raise Unknown(f"{path} is opened with {flags}")

    def do_openat(self, call):
        self.open(call, call.path(1, at=0), call.arguments[2], call.arguments[3] if len(call.arguments) > 3 else None)

    def do_open(self, call):
        self.open(call, call.path(0), call.arguments[1], call.arguments[2] if len(call.arguments) > 2 else None)

    def do_dup2(self, call):
        self.tables.setdefault(call.process, {})[call.result] = self.opened(call)

    do_dup3 = do_dup = do_dup2

    def do_lseek(self, call):
        if (opened := self.opened(call)).inode is not None:
            opened.offset, opened.is_append = call.result, False

    def put(self, call, data, offset=None):
        opened = self.opened(call)
        if opened.inode is None or opened.inode.kind != "file" or not data:
            return
        data = data[:call.result]
        if offset is None:
            offset = opened.inode.now.size if opened.is_append else opened.offset
            opened.offset = offset + len(data)
        self.alter(opened.inode, "write", offset, data)

    def do_write(self, call):
        if call.result > 0 and self.opened(call).inode is not None:
            self.put(call, call.string(1))

    def do_writev(self, call):
        if call.result > 0 and self.opened(call).inode is not None:
            self.put(call, call.vector(1))

    def do_pwrite64(self, call):
        self.put(call, call.string(1), int(call.arguments[3], 0))

    def do_pwritev(self, call):
        self.put(call, call.vector(1), int(call.arguments[3], 0))

    do_pwritev2 = do_pwritev

    def do_sendfile(self, call):
        if self.opened(call).inode is not None:
            raise Unknown("sendfile() into a file")

    do_copy_file_range = lambda self, call: self.opened(call, 2).inode is not None and self.fail("copy_file_range()")

    def fail(self, what):
        raise Unknown(what)

    def do_mmap(self, call):
        if "MAP_SHARED" in call.arguments[3] and "PROT_WRITE" in call.arguments[2] and "<" in call.arguments[4]:
            path = call.fd(4)[1]
            if path.startswith(self.root) and not path.endswith(("-shm", "(deleted)")):
                raise Unknown(f"{path} is written through memory")

    def do_ftruncate(self, call):
        if (inode := self.opened(call).inode) is not None and inode.now.size != int(call.arguments[1], 0):
            self.alter(inode, "truncate", int(call.arguments[1], 0))

    def do_fallocate(self, call):
        if (inode := self.opened(call).inode) is not None and call.arguments[1] == "0":
            self.alter(inode, "extend", int(call.arguments[2], 0) + int(call.arguments[3], 0))
        elif inode is not None and "KEEP_SIZE" not in call.arguments[1]:
            raise Unknown(f"fallocate() with {call.arguments[1]}")

    def make(self, path, inode):
        directory, name = self.parent(path)
        if directory is not None:
            self.change(made=[(directory, name, inode)])

    def do_mkdir(self, call):
        if call.path(0) != self.root:
            self.make(call.path(0), Inode("directory", int(call.arguments[1], 8)))

    def do_mkdirat(self, call):
        self.make(call.path(1, at=0), Inode("directory", int(call.arguments[2], 8)))

    def do_symlink(self, call):
        self.make(call.path(1), Inode("link", 0o777, os.fsdecode(call.string(0))))

    def do_symlinkat(self, call):
        self.make(call.path(2, at=1), Inode("link", 0o777, os.fsdecode(call.string(0))))

    def do_linkat(self, call):
        if (inode := self.find(call.path(1, at=0), follow=False)) is not None:
            self.make(call.path(3, at=2), inode)

    def do_link(self, call):
        if (inode := self.find(call.path(0), follow=False)) is not None:
            self.make(call.path(1), inode)

    def remove(self, path):
        directory, name = self.parent(path)
        if directory is not None and name in directory.now:
            self.change(removed=[(directory, name)])

    def do_unlink(self, call):
        self.remove(call.path(0))

    do_rmdir = do_unlink

    def do_unlinkat(self, call):
        self.remove(call.path(1, at=0))

    def move(self, old, new):
        (from_, old_name), (to, new_name) = self.parent(old), self.parent(new)
        if from_ is None and to is None or old == new:
            return
        if from_ is None or to is None:
            raise Unknown(f"{old} is moved to {new}")
        self.change(removed=[(from_, old_name)], made=[(to, new_name, from_.now[old_name])])

    def do_rename(self, call):
        self.move(call.path(0), call.path(1))

    def do_renameat(self, call):
        self.move(call.path(1, at=0), call.path(3, at=2))

    do_renameat2 = do_renameat

    def do_fchmod(self, call):
        if (inode := self.opened(call).inode) is not None:
            inode.facts["mode"] = int(call.arguments[1], 8)

    def do_utimensat(self, call):
        is_fd = call.arguments[1] == "NULL"
        inode = self.opened(call).inode if is_fd else self.find(call.path(1, at=0), follow=False)
        match = re.search(r"UTIME_OMIT, \{tv_sec=(-?\d+), tv_nsec=(\d+)\}", call.arguments[2])
        if inode is not None and match:
            inode.facts["time"] = int(match[1]) * 10**9 + int(match[2])

    # what a failure leaves

    def save(self, target, seed, spared=()):
        """Make the directory `target` as the failure may have left it now. Equal seeds make equal ones. spared: names in
        the root that are on another machine, whose power does not fail; its processes only end."""
        target = pathlib.Path(target)
        Wreck(self, random.Random(seed)).save(self.top, target, spared)
        for name in spared:
            if name in self.top.now:
                wreck = Wreck(self, random.Random(seed))
                wreck.keep_all()
                wreck.save(self.top.now[name], target / name)


# How much of what is pending got there: names, data.
KINDS = (("none", "none"), ("all", "none"), ("some", "none"), ("up to", "some"), ("some", "some"), ("some", "some"),
         ("all", "all"), ("none", "all"), ("all", "zeros"))


class Wreck:
    """One choice of what got to the disk."""

    def __init__(self, disk, rng):
        self.rng = rng
        self.names, self.data = rng.choice(KINDS)
        self.pending = {change.number for inode in disk.every() if inode.kind == "directory" for change in inode.pending}
        numbers = sorted(self.pending)
        limit = rng.choice([0, *numbers])
        chance = rng.choice((0.1, 0.5, 0.9))
        self.kept = {number for number in numbers if {
            "none": False, "all": True, "up to": number <= limit, "some": rng.random() < chance}[self.names]}
        self.saved = {}  # inode: path, for hard links

    def keep_all(self):
        """As if the power had not failed."""
        self.data, self.kept = "all", set(self.pending)

    def save(self, directory, target, spared=()):
        target.mkdir(mode=0o700, parents=True)
        entries = dict(directory.durable)
        for change in directory.pending:
            if change.number in self.kept:
                change.apply(directory, entries)
        for name, inode in entries.items():
            path = target / name
            if name in spared:
                continue
            if inode.kind == "directory":
                if id(inode) not in self.saved:  # a move between directories, of which one half is durable
                    self.saved[id(inode)] = path
                    self.save(inode, path)
            elif inode.kind == "link":
                os.symlink(inode.target, path)
            elif id(inode) in self.saved:
                os.link(self.saved[id(inode)], path)
            else:
                self.saved[id(inode)] = path
                self.content_of(inode).save(path)
                os.chmod(path, inode.mode & ~0o022)
            self.set_facts(inode, path)
        return target

    def set_facts(self, inode, path):
        facts = inode.durable_facts if self.data == "none" or self.rng.random() < 0.5 else inode.facts
        if "mode" in facts and inode.kind != "link":
            os.chmod(path, facts["mode"])
        if "time" in facts:
            os.utime(path, ns=(facts["time"], facts["time"]), follow_symlinks=False)

    def content_of(self, inode):
        pending, rng = inode.pending, self.rng
        how = self.data
        if how == "some":
            how = rng.choice(("none", "all", "first", "pages", "pages", "sectors", "zeros"))
        if not pending or how == "none":
            return inode.durable
        if how == "all":
            return inode.now
        content = inode.durable.copy()
        if how == "first":
            for change in pending[:rng.randrange(len(pending) + 1)]:
                apply_to_file(content, change)
            return content
        return self.mixed(inode, content, how)

    def mixed(self, inode, content, how):
        """Each block by itself; those behind the old end may be zeros."""
        rng = self.rng
        sizes = [content.size, inode.now.size, *self.sizes_between(inode)]
        size = inode.now.size if how == "zeros" else rng.choice(sizes)
        touched = sorted({i for what, offset, data in inode.pending if what == "write"
                          for i in range(offset // PAGE, (offset + len(data) + PAGE - 1) // PAGE)})
        chance = rng.choice((0.2, 0.5, 0.8))
        content.truncate(max(size, content.size) if size < content.size and rng.random() < 0.5 else size)
        for i in touched:
            if how == "zeros" or rng.random() >= chance or i * PAGE >= size:
                continue
            old, new = content.page(i), inode.now.page(i)
            if how == "sectors":
                new = b"".join((new if rng.random() < chance else old)[at:at + SECTOR] for at in range(0, PAGE, SECTOR))
            content.pages[i] = new
        content.truncate(content.size)
        return content

    @staticmethod
    def sizes_between(inode):
        sizes, size = [], inode.durable.size
        for what, offset, data in inode.pending:
            size = max(size, offset + len(data)) if what == "write" else offset if what == "truncate" else max(size, offset)
            sizes.append(size)
        return sizes


# ---- from a story to states ----


class Story:
    """The calls of a trace, and when something was promised: acknowledgements are lines that the story writes to a file."""

    def __init__(self, trace, root, promises):
        self.root, self.promises_path = str(root), str(promises)
        self.calls = list(read_calls(trace))

    def measure(self):
        """How many steps there are, and after which of them something was promised."""
        disk, given_at, kept = Disk(self.root), self.find_promises(), set()
        self.ends = []  # of each step: the call that makes the next one
        for i, (moment, call) in enumerate(self.calls):
            if i in given_at:
                kept.add(disk.steps_count)
            getattr(disk, moment)(call)
            self.ends += [i] * (disk.steps_count - len(self.ends))
        self.ends.append(len(self.calls))
        return disk.steps_count, sorted(kept)

    def play(self, points):
        """(point, disk, promises) at each point: after so many steps and just before the next one, so with all promises that
        were given on the strength of these steps."""
        disk, promises, given_at = Disk(self.root), [], self.find_promises()
        waiting = sorted(set(points))
        for i, (moment, call) in enumerate([*self.calls, (None, None)]):
            promises += given_at.get(i, ())
            while waiting and self.ends[waiting[0]] <= i:
                yield waiting.pop(0), disk, list(promises)
            if call is not None:
                getattr(disk, moment)(call)

    def find_promises(self):
        given_at, last, ours = {}, 0, self.find_ours()
        for i, (moment, call) in enumerate(self.calls):
            if moment != "end":
                continue
            if call.name == "write" and call.fd()[1] == self.promises_path:
                for line in call.string(1).decode().splitlines():
                    given_at.setdefault(last + 1, []).append(line)
            elif call.process in ours and self.is_word(call):
                last = i
        return given_at

    def find_ours(self):
        """Processes that touch what lies below the root: who else speaks promises nothing."""
        at = '"' + "".join(f"\\x{byte:02x}" for byte in os.fsencode(self.root))
        return {call.process for _, call in self.calls if call.name in ("openat", "open") and call.arguments[1:2] and
                (call.arguments[1].startswith(at) or call.arguments[0].startswith(at))}

    @staticmethod
    def is_word(call):
        """Does somebody hear it? Datagrams go by sendto() and are no answers of this kind."""
        if call.name in ("sendmsg", "exit_group", "sendfile"):
            return True
        return call.name in ("write", "writev") and call.fd()[1].startswith(("pipe:", "socket:", "TCP:"))
