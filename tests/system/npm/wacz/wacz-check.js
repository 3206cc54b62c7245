// wacz-check.js FILE - replay a WACZ file with npm's wabac, the engine of ReplayWeb.page, as a browser does: from a
// web server that answers ranges, with wabac's own ZIP reader, index and lookup of revisits.
//
// Standard input: one JSON object per line with url, timestamp, status and digest of a capture. Each is asked for;
// the SHA-256 of what comes must be the digest, unless wabac has undone a content encoding. Prints one JSON object:
// the pages, how many captures were replayed, how many of them compared, and a list of what was wrong.
import "fake-indexeddb/auto";
import { createHash } from "node:crypto";
import { fstatSync, openSync, readFileSync, readSync } from "node:fs";
import { createServer } from "node:http";

globalThis.self = globalThis;
const report = { pages: [], replayed: 0, compared: 0, errors: [] };
console.log = () => {};
console.warn = (...text) => report.errors.push(text.join(" "));
const { ArchiveRequest, WorkerLoader } = await import("@webrecorder/wabac/swlib");

const file = openSync(process.argv[2]);
const size = fstatSync(file).size;

function rangeOf(header) {
  const range = /^bytes=(\d*)-(\d*)$/.exec(header ?? "");
  if (!range) {
    return [0, size - 1];
  }
  if (range[1] === "") {
    return [Math.max(0, size - Number(range[2])), size - 1];
  }
  return [Number(range[1]), range[2] === "" ? size - 1 : Math.min(Number(range[2]), size - 1)];
}

const server = createServer((request, response) => {
  const [from, to] = rangeOf(request.headers.range);
  const bytes = Buffer.alloc(to - from + 1);
  readSync(file, bytes, 0, bytes.length, from);
  response.writeHead(request.headers.range ? 206 : 200, {
    "Content-Length": bytes.length,
    "Accept-Ranges": "bytes",
    "Content-Range": `bytes ${from}-${to}/${size}`,
  });
  response.end(request.method === "HEAD" ? undefined : bytes);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

const loader = new WorkerLoader({ addEventListener() {} });
const sourceUrl = `http://127.0.0.1:${server.address().port}/test.wacz`;
const { store } = await loader.addCollection({ name: "test", file: { sourceUrl } }, (percent, error) => {
  if (error) {
    report.errors.push(error);
  }
});
report.pages = (await store.getAllPages()).map(({ url, ts, title }) => ({ url, ts, title }));

async function replay(wanted) {
  const request = new ArchiveRequest(`${wanted.timestamp}mp_/${wanted.url}`, new Request("http://localhost/"));
  const response = await store.getResource(request, "", { waitUntil() {} }, { noRedirect: true });
  if (!response) {
    report.errors.push(`${wanted.url}: not found`);
    return;
  }
  report.replayed++;
  const isRight = wanted.status == null || Number(wanted.status) === response.status;
  const payload = (await response.getBuffer()) ?? new Uint8Array();
  if (!isRight) {
    report.errors.push(`${wanted.url}: status ${response.status}`);
  }
  if (!response.headers.has("content-encoding") && !wanted.isEncoded) {
    report.compared++;
    const digest = "sha256:" + createHash("sha256").update(payload).digest("hex");
    if (digest !== wanted.digest) {
      report.errors.push(`${wanted.timestamp} ${wanted.url}: ${payload.length} bytes with digest ${digest}`);
    }
  }
}

for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  await replay(JSON.parse(line));
}
process.stdout.write(JSON.stringify(report) + "\n", () => process.exit(0));
