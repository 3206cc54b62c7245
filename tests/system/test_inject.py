"""A few of the failures of tools/inject: those that once ended in a crash, a hang or a lie. `make test-inject` has all."""
import os
import pathlib

import pytest

import injected_node
import injections
import injector

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = pathlib.Path(os.environ.get("MNEMON", ROOT / "build" / "mnemon"))
LIBRARY = PROGRAM.parent / "tests" / "system" / "libinject.so"

# What is in the chain of functions, or the kind of call; which failure. Each once was: died, hung, "complete", "in use" …
IMPORT = [
    ("volume_take_item", "calloc", "ENOMEM"),
    ("print_json", "realloc", "ENOMEM"),
    ("warc_read_line", "realloc", "ENOMEM"),
    ("start_threads", "pthread_create", "EAGAIN"),
    ("commit_group", "fdatasync", "EIO from then on"),
    ("volume_publish_segment", "open", "EMFILE"),
]
ARCHIVE = [
    ("campaign_add_seeds", "calloc", "ENOMEM"),
    ("robots_parse", "malloc", "ENOMEM"),
    ("on_ready", "calloc", "ENOMEM"),
]
SERVE = [
    ("landlock_allow", "open", "EIO"),
    ("places_add_written", "malloc", "ENOMEM"),
    ("identity_read_file", "pread", "short"),
    ("find_asked", "realloc", "ENOMEM"),
]


@pytest.fixture(scope="module")
def runner():
    if not LIBRARY.exists() or "MNEMON_SANITIZED" in os.environ:
        pytest.skip("the injector is not built")
    return injections.Runner(PROGRAM, LIBRARY)


def chosen(cases, names, wanted):
    """The first case, by its chain, for each that is wanted."""
    names.look_up([case.point for case in cases])
    found = []
    for function, call, fault in wanted:
        fitting = [
            case for case in cases
            if case.point.name == call and case.nth == 1 and f" {fault}," in str(case)
            and function in names.chain(case.point, injector.FRAMES_MAX)
        ]  # fmt: skip
        assert fitting, f"no point {call} below {function}"
        found.append(min(fitting, key=lambda case: names.chain(case.point, injector.FRAMES_MAX)))
    return found


def run_all(scenario, wanted, scratch):
    names = injector.Names(PROGRAM)
    points = injections.find_points(scenario, scratch, runs=1)
    assert len(points) > 250, "the injector does not see the program"
    for i, case in enumerate(chosen(injections.cases_of(points), names, wanted)):
        fault, fired, _ = injections.try_case(scenario, case, scratch / f"case{i}")
        assert fault is None, f"{case}\n{names.chain(case.point)}\n{fault}"
        assert fired > 0, case


def test_an_import_survives_what_fails(runner, tmp_path):
    scenario = injections.ImportTiny(runner, tmp_path / "scenario")
    run_all(scenario, IMPORT, tmp_path)


def test_a_crawl_survives_what_fails(runner, tmp_path):
    scenario = injections.Archive(runner, tmp_path / "scenario")
    try:
        run_all(scenario, ARCHIVE, tmp_path)
    finally:
        scenario.close()


def test_a_node_survives_what_fails(runner, tmp_path):
    scenario = injected_node.Serve(runner, tmp_path / "scenario")
    try:
        run_all(scenario, SERVE, tmp_path)
    finally:
        scenario.close()
