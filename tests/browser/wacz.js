// ReplayWeb.page, another reader of the same files, shows what was exported.
import { createReadStream, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";
import { config, eventually, times, withBrowser } from "./kit.js";

const viewer = path.resolve("node_modules/replaywebpage");
const host = `<!DOCTYPE html><title>viewer</title><script src="/ui.js"></script>
<replay-web-page source="/export.wacz" url="${config.url}" ts="${times.at(-1)}" replayBase="/replay/" embed="replayonly"></replay-web-page>`;

/* The viewer, its service worker and the file, as a site would have them. */
async function answer(request, response) {
  const name = new URL(request.url, "http://x").pathname;
  const headers = { "Access-Control-Allow-Origin": "*", "Service-Worker-Allowed": "/" };
  if (name === "/export.wacz") {
    const { size } = statSync(config.file);
    const [, from, to] = /bytes=(\d*)-(\d*)/.exec(request.headers.range ?? "") ?? [];
    const start = from ? Number(from) : to ? size - Number(to) : 0;
    const end = from && to ? Math.min(Number(to), size - 1) : size - 1;
    response.writeHead(request.headers.range ? 206 : 200, {
      ...headers, "Content-Type": "application/wacz", "Accept-Ranges": "bytes", "Content-Length": end - start + 1,
      ...(request.headers.range && { "Content-Range": `bytes ${start}-${end}/${size}` }),
    });
    createReadStream(config.file, { start, end }).pipe(response);
    return;
  }
  const file = { "/ui.js": "ui.js", "/replay/ui.js": "ui.js", "/replay/sw.js": "sw.js" }[name];
  const text = name === "/" ? host : file ? await readFile(path.join(viewer, file)) : null;
  response.writeHead(text === null ? 404 : 200, { ...headers, "Content-Type": file ? "text/javascript" : "text/html" });
  response.end(text ?? "");
}

const server = createServer(answer);
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
try {
  await withBrowser(async (browser) => {
    const page = await browser.newPage();
    const errors = [];
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    const holds = async () => {
      const texts = await Promise.all(page.frames().map((frame) => frame.textContent("body", { timeout: 500 }).catch(() => "")));
      return texts.some((text) => text?.includes(config.text));
    };
    await eventually(holds, () => `"${config.text}" is seen: ${page.frames().map((frame) => frame.url())} ${errors}`, 30000);
  });
} finally {
  server.closeAllConnections();
  server.close();
}
