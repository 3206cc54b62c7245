// A browser whose way to the web is a proxy, while the site goes down.
//
//     proxy   host:port
//     site    http://host:port of the site
import assert from "node:assert/strict";
import { config, eventually, watched, withBrowser } from "./kit.js";

async function check(page, title, color) {
  assert.equal(await page.textContent("h1"), title);
  assert.equal(await page.$eval("h1", (heading) => getComputedStyle(heading).color), color, "the style applies");
  await eventually(() => page.$eval("img", (image) => image.complete && image.naturalWidth === 1), () => "the image is there");
}

await withBrowser(async (browser) => {
  const { context, log } = await watched(browser, { proxy: { server: `http://${config.proxy}`, bypass: "<-loopback>" } });
  const page = await context.newPage();
  const live = await page.goto(`${config.site}/`);
  assert.equal(live.headers()["x-mnemon-source"], undefined);
  await check(page, "First", "rgb(1, 2, 3)");

  await page.evaluate(() => fetch("/end").then((answer) => answer.text()));
  const answered = page.waitForResponse(`${config.site}/two`);
  await page.click("text=onward");
  const answer = await answered;
  await page.waitForLoadState("load");
  assert.match(answer.headers()["x-mnemon-source"], /^crowd 127\./);
  assert.ok(Date.parse(answer.headers()["memento-datetime"]) > 0);
  assert.equal(page.url(), `${config.site}/two`, "the browser believes that it is there");
  await check(page, "Second", "rgb(4, 5, 6)");
  assert.deepEqual([log.failures, log.errors.filter((text) => !text.includes("favicon"))], [[], []]);

  await page.click("text=nowhere");
  await page.waitForLoadState("load");
  assert.match(await page.textContent("body"), /The server: .*The crowd: .*The archive: /);
});
