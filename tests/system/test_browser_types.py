"""Captures whose Content-Type is a trick, opened in a real browser: none may run in the archive's own origin."""
import json
import re
import subprocess
import urllib.request

import pytest

from test_browser import npm, program, run_script  # noqa: F401 (fixtures)

TIME = "20260102030405"
DATE = "2026-01-02T03:04:05Z"
# What would show that it ran with the archive's origin: only that one has this storage, and can read /jobs.
RUN = (
    "try { localStorage.setItem('owned', document.URL) } catch (e) {} window.ran = self.origin;"
    "fetch('/jobs').then((r) => r.text()).then((t) => { if (t) window.read = t }).catch(() => {})"
)
FORM = (
    '<form method="post" action="/jobs"><input name="urls" value="http://127.0.0.1:1/"/><input name="scope" value="page"/>'
    '<button id="go">Go on</button></form>'
)
HTML = f'<!DOCTYPE html><base href="/"><meta name="referrer" content="unsafe-url"><script>{RUN}</script>{FORM}'.encode()
XHTML = f'<html xmlns="http://www.w3.org/1999/xhtml"><head><script><![CDATA[{RUN}]]></script></head><body>{FORM}</body></html>'.encode()
SVG = f'<svg xmlns="http://www.w3.org/2000/svg" onload="{RUN}"><script><![CDATA[{RUN}]]></script></svg>'.encode()
XSLT = (
    b'<?xml version="1.0"?><?xml-stylesheet type="text/xsl" href="#sheet"?><!DOCTYPE x [<!ATTLIST xsl:stylesheet id ID #REQUIRED>]>'
    b'<x><xsl:stylesheet id="sheet" version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:template match="/">'
    b'<html><script>' + RUN.replace("&", "&amp;").replace(">", "&gt;").encode() + b"</script></html></xsl:template></xsl:stylesheet></x>"
)
MIXED = b"--b\r\nContent-Type: text/html\r\n\r\n" + HTML + b"\r\n--b--\r\n"
UTF7 = b"+ADw-script+AD4-" + RUN.encode() + b"+ADw-/script+AD4-" + HTML
GIF = b"GIF89a/*" + HTML  # the first bytes of an image, and a page if it is taken for one

HTML_TYPES = [
    # several types in one value: browsers take the last that they understand
    b"image/png;,text/html", b"image/png, text/html", b"image/png,text/html", b"image/png;x,text/html", b"image/png,*/*,text/html",
    b"image/png\t,\ttext/html", b"image/png;charset=x,text/html;charset=utf-8", b"image/png;a=b;,text/html", b"application/pdf;,text/html",
    b"font/woff2;,text/html", b"video/mp4, text/html", b"audio/mpeg;=,text/html", b"image/gif;\",text/html", b"image/gif;a=\",\",text/html",
    b"image/gif;a=\"\\\",text/html", b"image/png; x=\"a\"b\",text/html", b"text/html,", b",text/html", b"text/html,image/png", b"text/html;,*/*",
    b"image/png ,text/html", b"image/png;charset=\"utf-8,text/html", b"image/png,text/html;x=\"",
    # what is no type at all: browsers guess
    b"", b" ", b"/", b"image", b"image/", b"/png", b"*/*", b"*", b"image/*,text/html", b"text", b"image/p ng", b"image/png/", b"image\\png",
    b"\xc3\xa4/\xc3\xb6", b"image/\xffpng", b"image/png\xa0", b"\xa0image/png", b"image/png\x0b", b"image/png\x0ctext/html", b"im\tage/png",
    b"text/html;charset=utf-7", b"text/html ;charset=utf-7", b"TEXT/HTML", b"text/html\t", b"\ttext/html", b"text/html;charset='utf-7'",
    b"unknown/unknown", b"application/unknown", b"application/octet-stream", b"text/plain", b"text/plain; charset=ISO-8859-1",
    b"image/png;" + b"a" * 300 + b",text/html", b"image/" + b"p" * 300, b"image/" + b"p" * 300 + b",text/html", b"(image)/png,text/html",
    b"image/vnd.xml", b"image/x;text/html", b"text/css", b"text/javascript", b"application/json", b"text/x-server-parsed-html",
    b"message/rfc822", b"multipart/related;boundary=b", b"text/x-component", b"text/vtt", b"application/x-shockwave-flash",
    b"image/png\r\nContent-Type: text/html", b"text/html\r\nContent-Type: image/png", b"image/png;\r\nContent-Type: ,text/html",
    b"image/png;x=\"\r\nContent-Type: text/html", b"image/png;\r\n text/html", b"image/png,\r\n text/html",
]
CASES = (
    [(value, HTML) for value in HTML_TYPES]
    + [(value, GIF) for value in (b"image/gif", b"", b"*/*", b"image/gif,text/html", b"text/html", b"text/plain")]
    + [(value, XHTML) for value in (
        b"application/xhtml+xml", b"text/xml", b"application/xml", b"image/x+xml", b"image/png;,text/xml", b"video/a+xml",
        b"application/rdf+xml", b"application/pdf+xml", b"font/xml", b"application/mathml+xml", b"text/xsl",
    )]
    + [(value, SVG) for value in (b"image/svg+xml", b"image/svg+xml,", b"image/svg", b"image/png,image/svg+xml", b"IMAGE/SVG+XML;x=y", b"image/svg-xml")]
    + [(value, XSLT) for value in (b"text/xml", b"application/xml", b"text/xsl", b"application/xslt+xml", b"image/a+xml")]
    + [(value, MIXED) for value in (b"multipart/x-mixed-replace;boundary=b", b"image/png,multipart/x-mixed-replace;boundary=b", b"multipart/mixed;boundary=b")]
    + [(value, UTF7) for value in (b"text/html;charset=utf-7", b"text/plain;charset=utf-7", b"text/html;charset=\"unicode-1-1-utf-7\"")]
)
NO_TYPE = len(CASES)  # and one without the field
FORMS = ["", "id_", "im_", "if_", "js_", "mp_", "cs_", "oe_", "fr_", "esm_", "wkr_", "xx_"]


# What browsers guess for the archived page, and may not for ours: body, type, form -> what is sent instead.
PNG = bytes.fromhex("89504e470d0a1a0a")
GUESSED = [
    (b"run({})", b"application/json", "js_", "text/javascript"),
    (b"run({})", b"text/html; charset=utf-8", "js_", "text/javascript; charset=utf-8"),
    (b"run({})", b"", "js_", "text/javascript"),
    (b"run({})", b"image/png", "js_", "image/png"),  # browsers refuse such scripts
    (b"run({})", b"application/json", "mp_", "application/json"),
    (b"a { color: red }", b"", "cs_", "text/css"),
    (b"a { color: red }", b"text/plain", "cs_", "text/plain"),  # likewise
    (PNG + b"...", b"text/html", "im_", "image/png"),
    (PNG + b"...", b"image/jpeg", "im_", "image/jpeg"),
    (PNG + b"...", b"", "id_", "image/png"),
    (b"plain words", b"bogus", "mp_", "text/plain"),
    (b"\0\1\2\3", b"bogus", "mp_", "application/octet-stream"),
    (b"%PDF-1.4", b"", "mp_", "application/pdf"),
    (b"<html><p>x", b"", "id_", "text/html"),
    (b"<html><p>x", b"unknown/unknown", "mp_", "text/html"),
    (b"<p>x", b"text/html;charset=koi8-r", "id_", "text/html; charset=koi8-r"),
    (b"<p>x", b"Text/HTML;charset=utf-7;x=y", "id_", "text/html"),
]


def url_of(number):
    return f"http://types.example/{number}"


def response(number, head, body):
    block = b"HTTP/1.1 200 OK\r\n" + head + b"\r\n" + body
    return (
        f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{number:012}>\r\n"
        f"WARC-Date: {DATE}\r\nWARC-Target-URI: {url_of(number)}\r\nContent-Type: application/http;msgtype=response\r\n"
        f"Content-Length: {len(block)}\r\n\r\n"
    ).encode() + block + b"\r\n\r\n"


@pytest.fixture(scope="module")
def node(program, tmp_path_factory):  # noqa: F811
    """An archive of all tricks: its origin and its token."""
    directory = tmp_path_factory.mktemp("types")
    warc = directory / "types.warc"
    records = [response(i, b"Content-Type: " + value + b"\r\n", body) for i, (value, body) in enumerate(CASES)]
    guessed = [response(NO_TYPE + 1 + i, b"Content-Type: " + one[1] + b"\r\n", one[0]) for i, one in enumerate(GUESSED)]
    warc.write_bytes(b"".join([*records, response(NO_TYPE, b"", HTML), *guessed]))
    data = directory / "data"
    subprocess.run([program, "import", "--quiet", "--data", data, warc], check=True, timeout=120)
    process = subprocess.Popen([program, "serve", "--data", data, "--http", "0", "--allow-private"], stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    yield re.search(r"http://\S+", line)[0], (data / "token").read_text().strip()
    process.terminate()
    process.wait(120)


def head_of(origin, path, **headers):
    request = urllib.request.Request(origin + path, headers=headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.headers


TYPE = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+(; ?charset=[A-Za-z0-9_:.()-]+)?$")


def test_every_answer_has_one_type_and_a_policy(node):
    """Whatever the server said, what is sent has one meaning, is not guessed about, and cannot reach out."""
    for number in range(NO_TYPE + 1):
        for form in FORMS[1:]:
            headers = head_of(node[0], f"/web/{TIME}{form}/{url_of(number)}")
            case = (CASES[number][0] if number < NO_TYPE else None, form, headers["Content-Type"])
            assert TYPE.match(headers["Content-Type"] or ""), case
            assert headers.get_all("Content-Type") == [headers["Content-Type"]], case
            assert headers["X-Content-Type-Options"] == "nosniff", case
            assert headers["Connection-Allowlist"].startswith("(response-origin);"), case
            policy = headers["Content-Security-Policy"]
            is_pdf = headers["Content-Type"] == "application/pdf"
            assert is_pdf or policy.split(";")[0].split(" ")[0] == "sandbox", case
            assert "allow-same-origin" not in policy, case
            assert "form-action" in policy and "base-uri" in policy, case


def test_types_are_guessed_here_and_not_in_the_browser(node):
    for i, (body, value, form, expected) in enumerate(GUESSED):
        headers = head_of(node[0], f"/web/{TIME}{form}/{url_of(NO_TYPE + 1 + i)}")
        assert headers["Content-Type"] == expected, (body, value, form)
        assert (headers["X-Archive-Orig-Content-Type"] or "") == value.decode()


def pages():
    """Each trick raw and in one more form, by turns; some in all forms."""
    thorough = {b"image/png;,text/html", b"text/html", b"image/svg+xml", b"application/xhtml+xml", b"*/*", b"image/png,*/*,text/html"}
    for i in range(NO_TYPE + 1):
        value = CASES[i][0] if i < NO_TYPE else None
        forms = FORMS if value in thorough else {"id_", FORMS[i % len(FORMS)]}
        yield from ({"name": repr(value), "url": url_of(i), "form": form} for form in forms)


def test_no_type_lets_a_capture_run_as_the_archive(npm, node):  # noqa: F811
    origin, token = node
    todo = list(pages())
    config = {"archive": origin, "token": token, "part": "types", "times": [TIME], "sites": {}, "pages": todo}
    report = json.loads(run_script(npm, "hostile.js", timeout=600, **config))
    jobs = urllib.request.Request(origin + "/api/v1/jobs", headers={"Authorization": "Bearer " + token})
    with urllib.request.urlopen(jobs, timeout=60) as answer:
        names = [job["name"] for job in json.load(answer)["jobs"]]
    assert (report["owned"], names) == ([], [])
    assert report["opened"] == len(todo)
