"""Power failures in numbers: tells a story once, makes states that a failure may leave, starts the program on each.

powerrun.py [--states N] [--seed N] [STORY…] is the whole campaign (`make test-power`); tests take a sample. A state is
named by its story's steps and a seed (`desk 412 7`), so with the same recording (--keep DIR) it can be made again.
"""
import argparse
import concurrent.futures
import pathlib
import random
import shutil
import sys
import tempfile
import time

import powercut
import powerstories

HERE = pathlib.Path(__file__).resolve().parent


class Recording:
    """A story that was told, and the states that follow from it."""

    def __init__(self, name, scratch):
        self.name, self.scratch = name, pathlib.Path(scratch)
        self.root, self.others = self.scratch / "root", self.scratch / "root.others"
        trace, promises = self.scratch / "trace", self.scratch / "promises"
        if not trace.exists():
            self.scratch.mkdir(parents=True, exist_ok=True)
            powercut.record(HERE / "powerstories.py", trace, name, self.root, promises)
        self.story = powercut.Story(trace, self.root, promises)
        self.steps_count, self.promised_at = self.story.measure()
        self.told = powerstories.STORIES[name]()

    def choose(self, count, seed):
        """(point, seed): a third of them just after a promise."""
        rng = random.Random(seed)
        chosen = [(rng.choice(self.promised_at) if i % 3 == 0 and self.promised_at else rng.randrange(self.steps_count + 1),
                   rng.randrange(1 << 30)) for i in range(count)]
        return sorted(set(chosen))

    def states(self, chosen):
        """(point, seed, directory, promises), each made when it is asked for."""
        seeds = {}
        for point, seed in chosen:
            seeds.setdefault(point, []).append(seed)
        for point, disk, promises in self.story.play(seeds):
            for seed in seeds[point]:
                directory = self.scratch / f"state-{point}-{seed}"
                shutil.rmtree(directory, ignore_errors=True)
                disk.save(directory, seed, self.told.spared)
                yield point, seed, directory, promises

    def check(self, point, seed, directory, promises, keep=False):
        """None, or what is wrong."""
        try:
            self.told.check(directory, promises, self.others)
        except (AssertionError, OSError, KeyError, ValueError) as wrong:
            return f"{self.name} {point} {seed}: {type(wrong).__name__}: {wrong}"
        finally:
            if not keep:
                remove(directory)
        return None

    def run(self, chosen, keep=False):
        """What is wrong, of all states."""
        self.told.open(self.others)
        try:
            return self.run_all(chosen, self.told.workers, keep)
        finally:
            self.told.close()

    def run_all(self, chosen, workers, keep):
        wrong = []
        with concurrent.futures.ThreadPoolExecutor(max_workers=workers) as pool:
            waiting = set()
            for state in self.states(chosen):
                waiting.add(pool.submit(self.check, *state, keep))
                if len(waiting) >= 2 * workers:  # each is a directory
                    done, waiting = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
                    wrong += [future.result() for future in done]
            wrong += [future.result() for future in waiting]
        return [line for line in wrong if line]


def remove(directory):
    """Also what its owner may not change."""
    for path in [directory, *directory.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
    shutil.rmtree(directory, ignore_errors=True)
    directory.with_suffix(".log").unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stories", nargs="*", default=list(powerstories.STORIES))
    parser.add_argument("--states", type=int, default=200, help="of each story")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="keep recordings, and the states that are wrong, in this directory; use those that are there")
    parser.add_argument("--only", help="one state: POINT,SEED")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if pathlib.Path("/dev/shm").is_dir() else None) as scratch:
        for name in options.stories:
            began = time.monotonic()
            recording = Recording(name, pathlib.Path(options.keep or scratch) / name)
            told = time.monotonic()
            chosen = recording.choose(options.states, options.seed)
            if options.only:
                chosen = [tuple(map(int, options.only.split(",")))]
            wrong = recording.run(chosen, keep=bool(options.only))
            failed += len(wrong)
            print(f"{name}: {recording.steps_count} steps, {len(recording.promised_at)} promises, {len(chosen)} states, "
                  f"{len(wrong)} wrong ({told - began:.0f} s to record, {time.monotonic() - told:.0f} s to check)", flush=True)
            for line in wrong:
                print(line, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
