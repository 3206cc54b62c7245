// Two captures of one URL in one second: the calendar leads to each of them, and each address shows its own.
//
//     archive   the node
//     url       of the page
//     texts     what the two captures say, in any order
import assert from "node:assert/strict";
import { archive, config, eventually, outside, replayed, watched, withBrowser } from "./kit.js";

const ADDRESS = /\/web\/(\d{14}~[0-9a-f]{16})\//;

/* What the capture at the address of the page says, in its frame. */
async function read(page) {
  const frame = await replayed(page, config.url);
  const [, id] = ADDRESS.exec(page.url());
  assert.ok(frame.url().includes(id), `${frame.url()} is the capture of ${page.url()}`);
  return frame.textContent("h1");
}

await withBrowser(async (browser) => {
  const { context, log } = await watched(browser);
  const page = await context.newPage();
  const calendar = `${archive}/web/*/${config.url}`;
  await page.goto(calendar);
  const links = await page.$$eval("a[href*='~']", (anchors) => anchors.map((anchor) => anchor.href));
  const addresses = [...new Set(links.filter((link) => ADDRESS.test(link)))];
  assert.equal(addresses.length, 2, `the calendar has ${links}`);

  const seen = [];
  for (const address of addresses) { // as a reader does: by the links
    await page.goto(calendar);
    const path = new URL(address).pathname;
    await page.evaluate((link) => [...document.querySelectorAll("a")].find((anchor) => anchor.href === link).click(), address);
    await eventually(() => new URL(page.url()).pathname === path, () => `${page.url()} is not ${path}`);
    seen.push(await read(page));
  }
  assert.deepEqual([...seen].sort(), [...config.texts].sort());

  for (const [number, address] of addresses.entries()) { // as from a bookmark, in the other order and anew
    const other = await context.newPage();
    await other.goto(addresses[1 - number]);
    assert.equal(await read(other), seen[1 - number]);
    await other.goto(address);
    await other.reload();
    assert.equal(await read(other), seen[number]);
    await other.close();
  }
  assert.deepEqual([log.failures, log.errors, outside(log)], [[], [], []]);
});
