// An archive is browsed: calendar, version, link, second version.
import assert from "node:assert/strict";
import { archive, capture, eventually, outside, replayed, sites, times, watched, withBrowser } from "./kit.js";

const home = sites.plain + "/";

async function bannerOf(page) {
  return page.$eval("#banner", (banner) => [banner.dataset.url, banner.dataset.time]);
}

async function bannerShows(page, url, time) {
  const isShown = async () => {
    const [shownUrl, shownTime] = await bannerOf(page).catch(() => []);
    return shownUrl === url && (!time || shownTime === time);
  };
  await eventually(isShown, () => `the banner shows ${url}`);
}

await withBrowser(async (browser) => {
  const { context, log } = await watched(browser);
  const page = await context.newPage();

  // The calendar has both versions; the first leads to the page in its frame.
  await page.goto(`${archive}/web/*/${home}`);
  const link = page.locator(`a[href$="/web/${times[0]}/${home}"]`).first();
  await link.waitFor({ state: "attached" });
  assert.equal(await page.locator(`a[href$="/web/${times[1]}/${home}"]`).count() > 0, true, "the calendar has the second version");
  await page.goto(capture(home, times[0]));
  await bannerShows(page, home, times[0]);
  let frame = await replayed(page);
  assert.equal(await frame.textContent("#edition"), "First edition");
  assert.equal(await frame.$eval("h1", (heading) => getComputedStyle(heading).color), "rgb(1, 2, 3)", "the imported style applies");

  // A link is followed in the frame, and the banner with it.
  await frame.click("#news");
  await bannerShows(page, sites.plain + "/news.html");
  frame = await replayed(page, "/news.html");
  assert.equal(await frame.textContent("#where"), sites.plain + "/news.html");
  assert.match(page.url(), /\/web\/\d{14}\/http:.*\/news\.html$/);
  await page.goBack();
  await bannerShows(page, home, times[0]);

  // One that would open a window opens here, at its place.
  frame = await replayed(page);
  await frame.click("#blank");
  await bannerShows(page, sites.plain + "/news.html");
  assert.ok(page.url().endsWith("/news.html#second"), page.url());

  // A form with a target is answered here too.
  await page.goto(capture(home, times[0]));
  frame = await replayed(page);
  await frame.click("button");
  await bannerShows(page, sites.plain + "/find?q=word");

  // To the next version, by the banner.
  await page.goto(capture(home, times[0]));
  await replayed(page);
  await page.locator(`#banner a[href*="/web/${times[1]}/"]`).first().click();
  await bannerShows(page, home, times[1]);
  frame = await replayed(page);
  assert.equal(await frame.textContent("#edition"), "Second edition");
  await eventually(async () => /part/.test(await page.textContent("#parts")), () => "the parts are told");

  // What is not there is said by the archive itself.
  const missing = await page.goto(capture(sites.plain + "/never.html"));
  assert.equal(missing.status(), 404);

  assert.equal(log.windows, 1, "no window was opened");
  assert.deepEqual(outside(log), []);
});
