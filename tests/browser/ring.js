// One node of a ring, in a browser.
//
//     archive   the node
//     part      page: a page with its style and its image is read; dashboard: what that says of the ring
//     url       of the page
import assert from "node:assert/strict";
import { archive, config, eventually, outside, replayed, watched, withBrowser } from "./kit.js";

async function readPage(page, log) {
  await page.goto(`${archive}/web/2030/${config.url}`);
  const frame = await replayed(page);
  assert.equal(await frame.textContent("h1"), "Kept by others");
  assert.equal(await frame.$eval("h1", (heading) => getComputedStyle(heading).color), "rgb(1, 2, 3)", "the style applies");
  const hasImage = () => frame.$eval("img", (image) => image.complete && image.naturalWidth === 1);
  await eventually(hasImage, () => "the image is there");
  assert.deepEqual([log.failures, log.bad, log.errors, outside(log)], [[], [], [], []]);
}

async function readDashboard(page, log) {
  await page.goto(`${archive}/dashboard`);
  await page.waitForSelector("#ring-figure svg circle.own", { state: "attached" });
  const facts = await page.textContent("#ring-together .facts");
  assert.match(facts, /captures? here, 3 copies of each wanted/);
  assert.equal(await page.locator("#ring-together tbody tr").count() > 1, true, "arcs and a decree");
  // The section is read again and again: what is not of now goes.
  await page.evaluate(() => document.querySelector("#ring-together .facts").append("old"));
  await eventually(async () => !(await page.textContent("#ring-together .facts")).endsWith("old"), () => "a newer section");
  assert.deepEqual(log.errors, []);
}

await withBrowser(async (browser) => {
  const { context, log } = await watched(browser);
  const page = await context.newPage();
  await { page: readPage, dashboard: readDashboard }[config.part](page, log);
});
