// A page that uses what pages use today replays wholly from the archive, and believes to be where it was.
import assert from "node:assert/strict";
import { capture, eventually, outside, replayed, sites, watched, withBrowser } from "./kit.js";

const { plain, other } = sites;
const app = plain + "/app/";
const host = plain.slice("http://".length);

const EXPECTED = {
  href: app, windowHref: app, documentHref: app, baseURI: app, isTop: true, referrer: "", member: "here", argument: "mine",
  parts: `http: ${host} /app/ ${plain} ${host.split(":")[0]} ${app}`,
  currentScript: app + "classic.js", writtenScript: true,
  modules: "dependency library tool far-tool", inlineModule: "library", metaUrl: app + "main.js",
  dynamicImport: "late", dynamicBare: "library", dynamicAbsolute: "late",
  worker: `part far data ${app}worker.js`, blobWorker: "far", moduleWorker: "dependency data /app/module-worker.js",
  fetch: "data", fetchHeaders: `${app} ${app}data.json`, fetchFar: "far data", xhr: `${plain}/news.html ${plain}/news.html`,
  image: app + "new-image.gif", setAttribute: `${other}/cdn/attribute.gif ${other}/cdn/attribute.gif`, srcset: app + "set.gif",
  adjacent: "loaded", contextual: "loaded", parser: "loaded", shadow: "loaded",
  scriptElement: "added", moduleElement: "late", styleElement: "3px", backgrounds: 4,
  message: `true ${plain} ${other} true`,
  pushed: app + "state?x=1#y", afterPush: app + "deep", replaced: "/app/",
  link: `${plain}/news.html?a=1#b ${host} /news.html ?a=1 #b ${plain} ${plain}/news.html?a=1#b`, linkChanged: `${plain}/other?a=1#b`,
  storage: "1 1 2 b true", cookie: "b=2", beacon: true, absent: "false undefined undefined", opened: true, socket: "closed 3",
};

await withBrowser(async (browser) => {
  const { context, log } = await watched(browser);
  const page = await context.newPage();
  await page.goto(capture(app));
  const frame = await replayed(page);
  await eventually(() => frame.evaluate(() => window.isFeaturesDone && window.isModuleDone), () => `the scripts ran:\n${log.errors.join("\n")}`);
  const results = await frame.evaluate(async () => {
    const late = new Promise((resolve) => setTimeout(resolve, 10000, "never came"));
    const pairs = Object.entries(results).map(async ([name, value]) => [name, await Promise.race([value, late])]);
    return Object.fromEntries(await Promise.all(pairs));
  });
  assert.deepEqual(results, EXPECTED, log.errors.join("\n"));

  await frame.evaluate(() => document.getElementById("lazy").scrollIntoView());
  for (const id of ["chosen", "picture", "written", "lazy"]) {
    await eventually(() => frame.$eval("#" + id, (image) => image.complete && image.naturalWidth > 0), () => `#${id} is shown`);
  }
  for (const name of ["app/bg-property.gif", "cdn/bg-text.gif", "app/bg-rule.gif", "app/bg-custom.gif", "app/font.woff2", "app/added.gif"]) {
    await eventually(() => log.requests.some((url) => url.endsWith(name)), () => `${name} is asked for`);
  }
  assert.deepEqual(outside(log), []);
  assert.deepEqual(log.failures, []);
  assert.deepEqual(log.bad, []);
  assert.deepEqual(log.errors, []);
  assert.equal(log.windows, 1);
});
