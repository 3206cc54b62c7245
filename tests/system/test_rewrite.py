"""Scripts that were rewritten parse and do the same as before, and XML stays well-formed."""
import json
import os
import pathlib
import shutil
import subprocess
import xml.etree.ElementTree

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("MNEMON", ROOT / "build" / "mnemon")).parent
URL = "http://h.example/d/page"
FILES_MAX = 4000
BYTES_MAX = 1 << 20  # per file


def rewrite(kind, *files, text=None):
    program = BUILD / "tests" / "system" / "rewritefile"
    for start in range(0, max(len(files), 1), 500):
        result = subprocess.run([program, kind, URL, *files[start:start + 500]], input=text, capture_output=True, timeout=60)
        assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture
def node():
    if shutil.which("node") is None:
        pytest.skip("skipped: node is not installed")

    def run(mode, directory):
        result = subprocess.run(
            ["node", "--experimental-vm-modules", "--no-warnings", pathlib.Path(__file__).parent / "rewrite-check.mjs", mode, directory],
            capture_output=True, text=True, timeout=150,
        )
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    return run


def rewrite_all(directory):
    rewrite("classic", *sorted(directory.glob("*.js")))
    rewrite("module", *sorted(directory.glob("*.mjs")))


def scripts_of_others():
    """Those of npm itself, and of the packages that other tests have installed."""
    roots = list(BUILD.glob("npm*/node_modules"))
    if shutil.which("npm") is not None:
        result = subprocess.run(["npm", "root", "-g"], capture_output=True, text=True, timeout=60)
        roots.append(pathlib.Path(result.stdout.strip()))
    files = [file for root in roots for file in sorted(root.rglob("*")) if file.suffix in (".js", ".mjs", ".cjs")]
    return [file for file in files if file.is_file() and file.stat().st_size <= BYTES_MAX][:FILES_MAX]


def test_scripts_of_packages_parse_as_before(node, tmp_path):
    for number, file in enumerate(scripts_of_others()):
        shutil.copyfile(file, tmp_path / f"{number}.js")
        shutil.copyfile(file, tmp_path / f"{number}.mjs")
    rewrite_all(tmp_path)
    report = node("parse", tmp_path)
    assert report["broken"] == []
    if report["parsed"] == 0:
        pytest.skip("skipped: no packages are installed")
    assert report["changed"] > 0


# Each gives a value; both must give the same.
CLASSIC = [
    "location.href",
    "'' + location + window.location + self['location']",
    "var o = {location: 1, a: {location: 2}}; [o.location, o.a.location, o?.location, 'location' in o]",
    "var location2 = {location}; location2.location.href",
    "(function (location) { return {location, l: location} })(5)",
    "(({location}) => location)({location: 6})",
    "(({location = 7}) => location)({})",
    "(function () { const {location, ...rest} = {location: 8}; return location })()",
    "(function () { const {location: {href}} = window; return href })()",
    "(function () { var {location: l = 1, a} = {a: 2}; return [l, a] })()",
    "class A { location = 1; static location = 2; m() { return this.location + A.location } } new A().m()",
    "class A { #location = 3; get location() { return this.#location } set location(a) { this.#location = a } }"
    " var a = new A(); a.location = 4; a.location",
    "class A { location() { return 1 } } class B extends A { location() { return super.location() + 1 } } new B().location()",
    "class A { get location() { return 1 } } class B extends A { get location() { return super.location + 1 } } new B().location",
    "var n = 0; location: for (;;) { for (;;) { if (n++ > 2) break location; continue location } } n",
    "var a = 8, location1 = 2, g = 1; a / location1 / g",
    "var a = {b: 6}, g = 1; [a.b / 2 / g, (6) / 2 / g, [6][0] / 2, /location/g.test('location'), /[/]location/.source]",
    "if (true) /location/.test('location')",
    "function f() { return /location/.source } f()",
    "var x = 1; x++\n/1/1",
    "`location ${location.href} ${`${{location}.location.href} }`} location`",
    "'it\\'s location' + \"\\\"location\" + 'a\\\nlocation'",
    "var a = true ? location.href : 1, b = false ? 1 : location.href; [a, b]",
    "switch (location.href) { case location.href: var r = {location: 1}.location; break; default: {r = 2} } r",
    "var o = {get location() { return 1 }, set location(a) {}, async *b() {}, class() { return location.href }}; [o.location, o.class()]",
    "var o = {location() { return 1 }}; o.location()",
    "[top.location, window.top.location, top !== self, self != top, window.parent.document]",
    "(function (top) { return top.location })({location: 1})",
    "(function () { var parent = {document: 2}, self = this; return parent.document })()",
    "var o = {top: 1, parent: 2}, top1 = o.top; [o.top, o.parent, {top, parent: 1}.parent]",
    "var self2 = {parent: 3, top: 4}; self2.parent + self2.top",
    "(function () { var self = {parent: 3, top: 4}; self.top = 5; return self.parent + self.top })()",
    "a = 5\n/* location */ // location\n<!-- location\n--> location\n;a",
    "var n = 3; while (n --> 1) {} n",
    "function location3() { return location } location3().href",
    "(function () { function location() { return 9 } return location() + [location].length })()",
    "var \\u006cocation1 = 3; location1",
    "var re = /\\/location[\\]/]/; re.source",
    "#!x location".replace("#!x", "//"),
    "typeof location + typeof location.href",
    "location.href = 'x'; location.href",
    "location = {href: 'y'}; location.href",
    "var {a = location.href} = {}; a",
    "((a, {location}) => a + location)(1, {location: 2})",
    "var o = {}; o.location = 1; o.location += 2; o.location++; [o.location, Object.keys(o)]",
    "var o = {a: 1, location: 2}; delete o.a; JSON.stringify(o)",
    "eval('1') + new Function('return 2')()",
    "[...'ab', ...[location.href]]",
    "a = b => {return {location: b}}; a(1).location",
    "a = async location => location; 1",
    "0x1e+1 + 1e+1 + .5 + 1_0 + 0b1",
    "try { throw {location: 1} } catch ({location}) { location }",
    "label: { location.href; break label } 5",
    "if (1) { location.href } else { location.href }",
    "var f = function () { return 1 } / 2 / 3; f",
    "({}).location === undefined",
]

MODULES = [
    "import {location} from 'a'; export const x = location",
    "import location from 'a'; export const x = location",
    "import {location as l, default as location} from 'a'; export const x = [l, location]",
    "import * as ns from 'a'; export const x = ns.default",
    "export const location = 1; export const y = location",
    "export function location() { return 1 } export const y = location()",
    "const location = 2; export {location, location as b}",
    "const a = 3; export {a as location}",
    "export {location} from 'a'",
    "export {location as default} from 'a'; export {default as location} from 'b'",
    "export * from 'a'",
    "export default {location: location.href, a: {location}.location.href}",
    "export default class { location = 1 }; result = location.href",
    "import './a'; import 'b'; export let x = location.href\nexport {x as y}",
    "result = [1].map((location) => ({location})); export {}",
]


def test_hard_scripts_do_the_same(node, tmp_path):
    for number, text in enumerate(CLASSIC):
        (tmp_path / f"{number:03}.js").write_text(text)
    for number, text in enumerate(MODULES):
        (tmp_path / f"{number:03}.mjs").write_text(text)
    rewrite_all(tmp_path)
    for name, before, after in node("run", tmp_path):
        assert not before.startswith("failed"), (tmp_path / name).read_text() + before
        assert after == before, (tmp_path / f"{name}.out").read_text()


@pytest.mark.parametrize("text", [
    "<svg xmlns='http://www.w3.org/2000/svg'><script>a &lt; b &amp;&amp; location ]]&gt; c</script></svg>",
    "<svg><script><![CDATA[ a < location ]]]]><![CDATA[> ]]></script></svg>",
    "<svg><script>x[y[0]]<![CDATA[> location]]>, x[y[0]]&gt;1</script></svg>",
    "<svg><style>/*<![CDATA[*/ a { b: url('c?d&e') } /*]]>*/</style><style>a{b:url(c?d&amp;e)}</style></svg>",
    "<rss><link>http://o/?a&amp;b=&lt;</link><link><![CDATA[/x?a&b]]></link></rss>",
    "<a href='x?a&amp;b=&lt;c&quot;&apos;' onclick='a &lt; location &amp;&amp; \"&apos;\"' style=\"a:url('b')\"/>",
    "<?xml version='1.0'?><?xml-stylesheet href='a?b&amp;c'?><a xmlns:x='http://x/' x:href='b&amp;c'/>",
])
def test_xml_stays_well_formed(text):
    before = xml.etree.ElementTree.fromstring(text)
    out = rewrite("xml", text=text.encode()).decode()
    after = xml.etree.ElementTree.fromstring(out)
    assert out != text
    assert [element.tag for element in after.iter()] == [element.tag for element in before.iter()]


def test_scripts_in_xml_mean_the_same():
    text = "<svg><script>x ]]<![CDATA[> a < b]]>]]&gt; '&amp;'</script></svg>"
    after = xml.etree.ElementTree.fromstring(rewrite("xml", text=text.encode()).decode())
    assert after[0].text == "x ]]> a < b]]> '&'"
