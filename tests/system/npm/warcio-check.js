// warcio-check.js FILE - read a WARC file with npm's warcio and verify every digest in it.
//
// warcio parses and undoes the chunks; the digests are computed here, because its parser does not check any. Prints
// one JSON object: how many records of each type, and a list of what was wrong.
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { AsyncIterReader, WARCParser } from "warcio";

const file = process.argv[2];
const report = { types: {}, digests: 0, errors: [] };

function check(record, name, bytes) {
  const stated = record.warcHeader(name);
  const computed = "sha256:" + createHash("sha256").update(bytes).digest("hex");
  report.digests++;
  if (stated !== computed) {
    report.errors.push(`${record.warcHeader("WARC-Record-ID")}: ${name} is ${stated}, computed ${computed}`);
  }
}

// warcio warns on the console where a record does not end as it should.
console.warn = (text) => report.errors.push(text);

for await (const record of new WARCParser(createReadStream(file), { parseHttp: false })) {
  report.types[record.warcType] = (report.types[record.warcType] ?? 0) + 1;
  const block = await record.readFully(false);
  if (block.length !== record.warcContentLength) {
    report.errors.push(`${block.length} bytes instead of ${record.warcContentLength}`);
  }
  check(record, "WARC-Block-Digest", block);
  for (const name of ["WARC-Record-ID", "WARC-Date", "Content-Type"]) {
    if (!record.warcHeader(name)) {
      report.errors.push(`a ${record.warcType} record without ${name}`);
    }
  }
  if (record.warcType === "revisit" && !(record.warcRefersToTargetURI && record.warcRefersToDate)) {
    report.errors.push("a revisit that does not say of what");
  }
}

for await (const record of new WARCParser(createReadStream(file))) {
  const stated = record.warcPayloadDigest;
  if (record.warcType === "revisit" || !stated) {
    continue;
  }
  let payload = await record.readFully(false);
  if (record.httpHeaders?.headers.get("Transfer-Encoding") === "chunked") {
    payload = await new AsyncIterReader([payload], null, true).readFully();
  }
  check(record, "WARC-Payload-Digest", payload);
}

console.log(JSON.stringify(report));
