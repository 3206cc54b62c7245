"""The checks of the tree can fail: each is shown something wrong."""
import re
import shutil
import subprocess

import pytest


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60)


def copy_sources(root, path):
    """A copy of what check-layers looks at."""
    shutil.copytree(root / "src", path / "src")
    (path / "docs").mkdir()
    shutil.copy(root / "docs" / "architecture.md", path / "docs")
    return path


@pytest.fixture
def tree(root, tmp_path):
    return copy_sources(root, tmp_path)


def test_layers_pass_on_the_tree(root, tree):
    result = run(root / "tools" / "check-layers", tree)
    assert result.returncode == 0, result.stderr


FORBIDDEN = [
    ("src/base/bad.c", '#include "web/url/url.h"\n', "base/ may not include web/"),
    ("src/web/url/bad.h", '#include "sim/world/sim.h"\n', "web/ may not include sim/"),
    ("src/web/url/bad.c", '#include "url.h"\n', 'write "folder/file.h"'),
    ("src/web/url/bad.c", '#include "web/../base/buf.h"\n', 'write "folder/file.h"'),
    ("src/protocol/ring/bad.c", "#include <time.h>\n", "protocol/ is pure and may not include <time.h>"),
    ("src/protocol/ring/bad.c", '#include "net/identity.h"\n', "protocol/ may not include net/"),
    ("src/attic/bad.c", "\n", "attic/ has no row"),
    ("src/store/attic/bad.c", "\n", "store/attic/ has no row"),
    ("src/store/index/bad.c", '#include "store/volume/volume.h"\n', "store/index/ may not include store/volume/"),
    ("src/node/proxy/bad.c", '#include "node/node.h"\n', "node/proxy/ may not include node/node.h"),
    ("src/node/bad.c", "    thread_start(&thread, name, run, node);\n", "thread_start belongs to run/"),
    ("src/store/index/bad.c", "    pthread_create(&thread, NULL, run, NULL);\n", "pthread_create belongs to run/"),
    ("src/net/bad.h", "    pthread_cond_t changed;\n", "pthread_cond_t belongs to run/"),
    ("src/http/server/bad.c", "    thread_start(&thread, name, run, node);\n", "thread_start belongs to run/"),
]


@pytest.fixture(scope="module")
def complaints(root, tmp_path_factory):
    """What check-layers says of a tree in which all of that is wrong: the lines of each file, by its number."""
    tree = copy_sources(root, tmp_path_factory.mktemp("forbidden"))
    for number, (path, text, _) in enumerate(FORBIDDEN):
        file = (tree / path).with_stem(f"bad{number}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    result = run(root / "tools" / "check-layers", tree)
    assert result.returncode == 1
    return result.stderr


@pytest.mark.parametrize("number", range(len(FORBIDDEN)))
def test_layers_fail_on_a_forbidden_include(complaints, number):
    path, _, complaint = FORBIDDEN[number]
    assert [line for line in complaints.splitlines() if complaint in line and re.search(rf"bad{number}\b|has no row", line)], complaints


def test_rooms_include_only_rooms_above_them(root, tree):
    document = tree / "docs" / "architecture.md"
    row = next(line for line in document.read_text().splitlines() if line.startswith("| `store/index/`"))
    document.write_text(document.read_text().replace(row, row.replace("| document, kv |", "| document, kv, volume |")))
    result = run(root / "tools" / "check-layers", tree)
    assert result.returncode == 1
    assert "store/index/ may only include rooms above it, not volume" in result.stderr


def test_files_include_each_other_in_no_circle(root, tree):
    header = tree / "src" / "web" / "html" / "links_rules.h"
    header.write_text(header.read_text().replace("#include <stddef.h>", '#include "web/html/links.h"'))
    result = run(root / "tools" / "check-layers", tree)
    assert result.returncode == 1
    assert "web/html/links -> web/html/links_rules -> web/html/links: these include each other" in result.stderr


def test_static_functions_have_names_of_their_own(root, tree):
    for number in range(6):
        (tree / "src" / "base" / f"bad{number}.c").write_text("static bool do_it(int a,\n                  int b) {\n")
    result = run(root / "tools" / "check-layers", tree)
    assert result.returncode == 1
    assert "6 static functions are called do_it" in result.stderr


def test_layers_follow_the_table_of_the_document(root, tree):
    document = tree / "docs" / "architecture.md"
    row = next(line for line in document.read_text().splitlines() if line.startswith("| `web/`"))
    document.write_text(document.read_text().replace(row, row.replace("| base |", "| – |")))
    result = run(root / "tools" / "check-layers", tree)
    assert result.returncode == 1
    assert "web/ may not include base/" in result.stderr


def users_of_rocksdb(tree):
    return sorted(str(file.relative_to(tree)) for file in (tree / "src").rglob("*.[ch]") if "rocksdb" in file.read_text())


@pytest.mark.parametrize("line", ["#include <regex.h>", "    regcomp(&regex, text, REG_EXTENDED);", "    if (regexec(&regex, url, 0, NULL, 0) == 0) {"])
def test_expressions_without_a_bound_are_recognised(line):
    assert re.search(UNBOUNDED, line)


UNBOUNDED = r"<regex\.h>|\breg(comp|exec)\s*\("


def test_expressions_of_strangers_have_a_bound(root):
    """glibc's keep memory for each text and take as long as they like; PCRE2 is bounded by its one wrapper."""
    sources = [path for folder in ("src", "tests") for path in (root / folder).rglob("*.[ch]")]
    unbounded = [str(path) for path in sources if re.search(UNBOUNDED, path.read_text(errors="replace"))]
    assert not unbounded
    users = [path.relative_to(root).as_posix() for path in sources if "<pcre2.h>" in path.read_text(errors="replace")]
    assert users == ["src/base/regex.c"]


def test_one_module_knows_rocksdb(tree):
    kv = ["src/store/kv/kv.c", "src/store/kv/kv_rocksdb.c", "src/store/kv/kv_rocksdb.h"]
    assert users_of_rocksdb(tree) == kv
    (tree / "src" / "store" / "bad.c").write_text("#include <rocksdb/c.h>\n")
    assert users_of_rocksdb(tree) == ["src/store/bad.c", *kv]


@pytest.fixture
def documents(root, tmp_path):
    """A copy of what check-links looks at."""
    for folder in ("src", "tests", "tools", "bench", "demo", "docs", "include", "web"):
        shutil.copytree(root / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "npm"))
    for path in root.glob("*.md"):
        shutil.copy(path, tmp_path)
    return tmp_path


def test_links_lead_somewhere(root, documents):
    result = run(root / "tools" / "check-links", documents)
    assert result.returncode == 0, result.stderr


def test_links_fail_on_what_is_not_there(root, documents):
    wrong = [
        ("docs/bad.md", "See [the plan](plans.md).", "plans.md: there is no such file"),
        ("docs/bad.md", "[Why](api.md#why)", "api.md#why: there is no such heading"),
        ("docs/bad.md", "Its code is `src/base/attic.c`.", "src/base/attic.c: there is no such path"),
        ("docs/bad.md", "Its code is `src/attic/*.c`.", "src/attic/*.c: there is no such path"),
        ("docs/bad.md", "Its code is in base/attic.h.", "base/attic.h: there is no such path"),
        ("src/base/bad.h", "/* docs/attic.md */", "docs/attic.md: there is no such document"),
    ]
    expected = []
    for path in ("docs/bad.md", "src/base/bad.h"):
        lines = [(text, complaint) for where, text, complaint in wrong if where == path]
        (documents / path).write_text("".join(f"{text}\n" for text, _ in lines))
        expected += [f"{path}:{number}: {complaint}" for number, (_, complaint) in enumerate(lines, 1)]
    result = run(root / "tools" / "check-links", documents)
    assert result.returncode == 1
    assert sorted(result.stderr.splitlines()) == sorted(expected)


def test_links_pass_on_code_and_on_other_hosts(root, documents):
    (documents / "docs" / "good.md").write_text("[a](https://example.org/b.md)\n\n```\n[c](d.md) src/e.c\n```\n")
    result = run(root / "tools" / "check-links", documents)
    assert result.returncode == 0, result.stderr


PURE = """
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include "base/prng.h"
#include "base/map.h"
struct p { struct prng prng; struct map map; void *memory; };
void p_init(struct p *p);
void p_step(struct p *p);
void p_init(struct p *p) {
    prng_init(&p->prng, 1);
    map_init(&p->map, 8, 8, 16, 1);
    if (map_reserve(&p->map, 16) != ERR_OK) abort_not();
    p->memory = malloc(10);
}
%s
void p_step(struct p *p) {
    uint64_t key = prng_u64(&p->prng);
    map_put(&p->map, bytes_of(&key, sizeof key));
    %s
}
"""


@pytest.mark.parametrize(
    "before, inside, chain",
    [
        ("", "", None),
        ("static uint64_t now(void) { return (uint64_t)time(0); }", "p->prng.state[0] ^= now();", "p_step -> time"),
        ("", "p->memory = malloc(20);", "p_step -> malloc"),
        ("", "p->prng.state[0] ^= (uint64_t)rand();", "p_step -> rand"),
        ("", "if (map_reserve(&p->map, 8) != ERR_OK) return;", "p_step -> map_reserve -> calloc"),
        ("static uint64_t calls;", "p->prng.state[0] ^= ++calls;", "writable static data: calls"),
        (
            "typedef int (*function)(void); static const function table[] = {rand};",
            "p->prng.state[0] ^= (uint64_t)table[p->prng.state[1] & 0]();",
            "-> rand",
        ),
    ],
)
def test_purity_fails_on_the_outside_world(root, tmp_path, before, inside, chain):
    source = (PURE % (before, inside)).replace("abort_not()", "return")
    (tmp_path / "p.c").write_text(source)
    # -O0 keeps every call as it is written: what is checked is the check, not the optimiser
    flags = ("-O0", "-D_GNU_SOURCE", "-ffunction-sections", "-fdata-sections", f"-I{root / 'src'}")
    assert run("cc", *flags, "-c", tmp_path / "p.c", "-o", tmp_path / "p.o").returncode == 0
    assert run("ar", "rc", tmp_path / "libp.a", tmp_path / "p.o").returncode == 0
    base = root / "build" / "src" / "base" / "libbase.a"
    result = run(root / "tools" / "check-purity", tmp_path / "libp.a", "--with", base)
    if chain is None:
        assert result.returncode == 0, result.stderr
        assert "2 functions" in result.stdout
        return
    assert result.returncode == 1, result.stdout
    assert chain.split(" -> ")[-1] in result.stderr
    if chain.startswith("p_step"):
        last = chain.removeprefix("p_step").strip()
        assert any(line.endswith(last) and "p_step" in line for line in result.stderr.splitlines()), result.stderr


def test_the_formatter_check_fails_on_unformatted_code(root, tmp_path):
    shutil.copy(root / ".clang-format", tmp_path)
    (tmp_path / "bad.c").write_text("int  main( void ){return 0;}\n")
    assert run("clang-format", "--dry-run", "-Werror", tmp_path / "bad.c").returncode != 0


# ---- one JSON writer ----

# What looks like the member of a JSON object in a string of C.
PRINTED_JSON = re.compile(r'[{,"] ?\\"[A-Za-z_]+\\": ?')

# Sentences for people that show an example.
JSON_FOR_PEOPLE = {"node/crawl/job_wish.c", "store/access/access_line.c"}

# They read files, requests and what other processes answer.
JSON_READERS = {
    "cli/ask.h", "cli/job.c", "cli/ring_status.c", "node/crawl/job_files.c", "node/crawl/job_wish.c",
    "node/crawl/save_requests.c", "node/mirror/collection_setup.c", "node/mirror/mirrored_archives.c",
    "node/node_file.c", "store/access/access_line.c", "store/remote/remote_call.c", "warc/request_key.c",
    "warc/wacz_reader.c",
}


def sources(root, pattern):
    return {path.relative_to(root / "src").as_posix() for path in (root / "src").rglob("*.[ch]")
            if re.search(pattern, path.read_text())}


@pytest.mark.parametrize("line", [r'buf_put_string(out, "{\"name\":");', r'buf_put_format(out, ",\"a\":%d", a);',
                                  r'"\"count\": %u"'])
def test_printed_json_is_recognised(line):
    assert PRINTED_JSON.search(line)


def test_json_is_written_by_base_json_alone(root):
    assert sources(root, PRINTED_JSON) == JSON_FOR_PEOPLE


def test_json_is_parsed_only_where_it_comes_from_outside(root):
    assert sources(root, "#include <jansson.h>") == JSON_READERS


def test_releases_are_commits_with_their_version(root):
    """CHANGELOG.md names them, so that a test can build one."""
    releases = re.findall(r"^## ([\d.]+) \([\d-]+, commit (\w+)\)$", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert releases
    for version, commit in releases:
        build = run("git", "-C", root, "show", f"{commit}:meson.build")
        assert build.returncode == 0, f"release {version} is commit {commit}, which is not in the history"
        assert f"version: '{version}'" in build.stdout


def test_the_picture_of_rooms_is_that_of_the_document(root):
    assert run(root / "tools" / "draw-rooms").stdout == (root / "docs" / "rooms.svg").read_text()


def test_the_document_names_all_threads(root):
    """As loops, pools, tasks and the two exceptions start them."""
    text = "".join(path.read_text() for path in (root / "src").rglob("*.c") if path.parent.name != "run")
    starts = re.findall(r'\b(?:loop_start|task_start|thread_start)\([^"()]*"([\w-]+)"', text)
    pools = re.findall(r'\.name = "([\w-]+)",\s*\.threads_max', text)
    rows = re.findall(r"^\| `([\w-]+)` \| (?:loop|pool|task|own) \|", (root / "docs" / "architecture.md").read_text(), re.MULTILINE)
    assert sorted(starts + pools) == sorted(rows)
