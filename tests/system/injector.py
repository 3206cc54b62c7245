"""Runs mnemon with inject.c in front of the C library: which calls can fail, and what happens if one does."""
import errno
import mmap
import os
import pathlib
import re
import struct
import subprocess

FRAMES_MAX = 40
POINTS_MAX = 1 << 15
HEADER = struct.Struct("=QQIIIIII")  # base, target, nth, number, stays, fired, lost, filler
POINT = struct.Struct(f"=QQII24s24s{FRAMES_MAX}Q")  # hash, count, kind, frames_count, name, library, frames
TABLE_SIZE = HEADER.size + POINTS_MAX * POINT.size
KINDS = ["memory", "map", "open", "read", "write", "sync", "name", "size", "stat", "thread", "socket"]
SHORT = 1000  # instead of an errno: only half of the bytes
# What fails how: (errno, and does it stay so?)
FAULTS = {
    "memory": [(errno.ENOMEM, 0), (errno.ENOMEM, 1)],
    "map": [(errno.ENOMEM, 0)],
    "open": [(errno.EMFILE, 0), (errno.EMFILE, 1), (errno.EIO, 0)],
    "open-create": [(errno.ENOSPC, 0), (errno.EMFILE, 0)],
    "read": [(errno.EIO, 0), (errno.EIO, 1), (SHORT, 0)],
    "write": [(errno.ENOSPC, 0), (errno.ENOSPC, 1), (errno.EIO, 1), (errno.EDQUOT, 0), (SHORT, 0)],
    "sync": [(errno.EIO, 0), (errno.EIO, 1)],
    "name": [(errno.EIO, 0), (errno.ENOSPC, 0)],
    "size": [(errno.ENOSPC, 0), (errno.EIO, 0)],
    "stat": [(errno.EIO, 0)],
    "thread": [(errno.EAGAIN, 0), (errno.EAGAIN, 1)],
    "socket": [(errno.EMFILE, 0)],
}
STDIO = ("fwrite", "fread", "fflush", "fclose", "fgets", "readdir")  # have no short form


class Point:
    """A call and the chain of the program's functions that leads to it."""

    def __init__(self, fields):
        self.hash, self.count, kind, frames_count, name, library = fields[:6]
        self.kind = KINDS[kind]
        self.name = name.rstrip(b"\0").decode()
        self.library = library.rstrip(b"\0").decode()  # that called it; "": the program itself
        self.frames = fields[6 : 6 + frames_count]

    def faults(self):
        faults = FAULTS["open-create" if self.name == "open-create" else self.kind]
        return [fault for fault in faults if fault[0] != SHORT or self.name not in STDIO]


class Table:
    """The memory that is shared with the process: points that it passed, and the order for the one that fails."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        with open(self.path, "w+b") as file:
            file.truncate(TABLE_SIZE)
            self.memory = mmap.mmap(file.fileno(), TABLE_SIZE)

    def close(self):
        self.memory.close()
        self.path.unlink()

    def arm(self, point_hash, number, stays, nth=1):
        base = HEADER.unpack_from(self.memory)[0]
        HEADER.pack_into(self.memory, 0, base, 0, nth, number, stays, 0, 0, 0)
        HEADER.pack_into(self.memory, 0, base, point_hash, nth, number, stays, 0, 0, 0)

    def disarm(self):
        fired = self.fired()
        self.arm(0, 0, 0)
        return fired

    def fired(self):
        return HEADER.unpack_from(self.memory)[5]

    def stays(self):
        return HEADER.unpack_from(self.memory)[4] != 0

    def target(self):
        return HEADER.unpack_from(self.memory)[1]

    def points(self):
        assert HEADER.unpack_from(self.memory)[6] == 0, "the table is too small"
        found = []
        for at in range(HEADER.size, TABLE_SIZE, POINT.size):
            if self.memory[at : at + 8] != b"\0" * 8:
                found.append(Point(POINT.unpack_from(self.memory, at)))
        return found

    def environment(self, library):
        return {
            **os.environ,
            "LD_PRELOAD": os.environ.get("INJECT_BEFORE", "") + str(library),
            "INJECT_TABLE": str(self.path),
            "MALLOC_PERTURB_": "165",  # memory that was given back is not what it was
        }


class Names:
    """Functions and lines of a program, looked up once."""

    def __init__(self, program):
        self.program = program
        self.known = {}

    def look_up(self, points):
        wanted = sorted({frame for point in points for frame in point.frames} - set(self.known))
        if not wanted:
            return
        said = subprocess.run(
            ["addr2line", "-a", "-f", "-i", "-s", "-e", str(self.program)],
            input="".join(f"{frame - 1:#x}\n" for frame in wanted), capture_output=True, text=True, check=True,
        ).stdout
        for part in re.split("^(?=0x)", said, flags=re.MULTILINE)[1:]:
            address, *lines = part.splitlines()  # function and place, also of those that were inlined
            calls = [f"{lines[i]} ({lines[i + 1].split(' ')[0]})" for i in range(0, len(lines), 2)]
            self.known[int(address, 16) + 1] = " < ".join(calls)

    def chain(self, point, depth=12):
        self.look_up([point])
        return " < ".join(self.known[frame] for frame in point.frames[:depth]) or "a thread of a library"
