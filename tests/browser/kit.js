// kit.js - a browser, and what the scripts of these tests share. Each script gets one argument, JSON:
//
//     archive   http://host:port of the archive under test
//     sites     { plain, other, hostile, live }: origins of the archived sites
//     times     timestamps of the captures of plain's start page, oldest first
//     …         what the script says
//
// A script that ends without an error has passed.
import { chromium } from "playwright-core";

export const config = JSON.parse(process.argv[2] ?? "{}");
export const { archive, sites, times } = config;

const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

/* A browser asks for a page's icon last, and our page for what its parts are of when all are there. Both are given up if
 * the page is left before. */
const LEFT = /(?:\/static\/icon\.svg\?\w+|\/api\/v1\/parts\?\S+) net::ERR_ABORTED$/;

/* work(browser), in a browser of its own that is closed whatever happens. */
export async function withBrowser(work) {
  const browser = await chromium.launch({ executablePath: config.chromium, headless: true, args: FLAGS });
  try {
    await work(browser);
  } finally {
    await browser.close();
  }
}

/* A context whose requests, failures, console errors and windows are kept. */
export async function watched(browser, options = {}) {
  const context = await browser.newContext(options);
  const log = { requests: [], failures: [], bad: [], errors: [], windows: 0 };
  context.on("request", (request) => log.requests.push(request.url()));
  context.on("requestfailed", (request) => {
    const failure = `${request.url()} ${request.failure()?.errorText}`;
    LEFT.test(failure) || log.failures.push(failure);
  });
  context.on("response", (response) => response.status() >= 400 && log.bad.push(`${response.status()} ${response.url()}`));
  context.on("console", (message) => message.type() === "error" && log.errors.push(`${message.text()} (${message.location().url})`));
  context.on("weberror", (error) => log.errors.push(String(error.error())));
  context.on("page", () => log.windows++);
  return { context, log };
}

/* Requests that left the archive's host and port. */
export function outside(log) {
  return log.requests.filter((url) => /^(?:https?|wss?|ftp):/.test(url) && !url.startsWith(archive + "/"));
}

/* The address of a capture of a site's page. */
export function capture(url, time = times.at(-1)) {
  return `${archive}/web/${time}/${url}`;
}

/* The replayed page in the archive's page, once it is there and its address has ended in a way. */
export async function replayed(page, ending = "") {
  const handle = await page.waitForSelector("iframe#replay");
  const frame = await handle.contentFrame();
  await frame.waitForLoadState("load");
  await eventually(() => decodeURI(frame.url()).endsWith(ending), () => `${frame.url()} does not end in ${ending}`);
  return frame;
}

/* Until condition() holds; an error, with why() in it, if it never does. */
export async function eventually(condition, why = () => String(condition), timeout = 15000) {
  const end = Date.now() + timeout;
  while (!(await condition())) {
    if (Date.now() > end) {
      throw new Error(`in vain: ${why()}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
