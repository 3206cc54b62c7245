// A browser whose way to the web is a proxy, while the site goes down.
//
//     proxy   host:port
//     site    http://host:port of the site
//     dead    if it is there: http://host:port where nobody listens, of which the crowd has a planted page
import assert from "node:assert/strict";
import { config, eventually, watched, withBrowser } from "./kit.js";

async function check(page, title, color) {
  assert.equal(await page.textContent("h1"), title);
  assert.equal(await page.$eval("h1", (heading) => getComputedStyle(heading).color), color, "the style applies");
  await eventually(() => page.$eval("img", (image) => image.complete && image.naturalWidth === 1), () => "the image is there");
}

async function goesDown(browser) {
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
}

// What a planted page finds out is in its title, or reaches the living server as /stolen.
async function isPlanted(browser) {
  const { context } = await watched(browser, { proxy: { server: `http://${config.proxy}`, bypass: "<-loopback>" } });
  const page = await context.newPage();
  await page.goto(`${config.site}/`);
  assert.equal(await page.evaluate(() => document.cookie), "session=secret", "the living page may read it");

  const answer = await page.goto(`${config.dead}/planted`);
  assert.match(answer.headers()["x-mnemon-source"], /^crowd /);
  assert.match(await page.textContent("#mnemon-substitute"), /The server did not answer/);
  assert.equal(await page.textContent("p"), "Planted");
  assert.equal(await page.title(), "quiet", "none of its scripts ran");
  const read = await page.evaluate(() => { try { return document.cookie; } catch (error) { return error.name; } });
  assert.equal(read, "SecurityError", "even a script that ran would be nobody there");
  assert.equal(await page.evaluate(() => self.origin), "null");

  // A living page that names the dead port.
  await page.goto(`${config.site}/`);
  const loads = await page.evaluate(async (dead) => {
    const load = (name, attributes) => new Promise((resolve) => {
      const element = Object.assign(document.createElement(name), attributes);
      element.onload = () => resolve("loaded");
      element.onerror = () => resolve("failed");
      document.body.append(element);
    });
    return {
      script: await load("script", { src: `${dead}/planted.js` }),
      text: await load("script", { src: `${dead}/planted.txt` }),
      image: await load("img", { src: `${dead}/pixel.gif` }),
      frame: await load("iframe", { src: `${dead}/planted` }),
      title: document.title,
    };
  }, config.dead);
  assert.deepEqual(loads, { script: "failed", text: "failed", image: "loaded", frame: "loaded", title: "alive" });

  // The site itself goes down while its page is open.
  await page.evaluate(() => fetch("/end").then((ended) => ended.text()));
  const later = await page.evaluate(async () => {
    const registered = await navigator.serviceWorker.register("/worker.js").then(() => "registered", () => "refused");
    const worked = await new Promise((resolve) => {
      const worker = new Worker("/worker.js");
      worker.onmessage = () => resolve("ran");
      worker.onerror = () => resolve("failed");
    });
    const frame = document.createElement("iframe");
    frame.src = "/two";
    const loaded = new Promise((resolve) => { frame.onload = resolve; });
    document.body.append(frame);
    await loaded;
    return { registered, worked, inside: frame.contentDocument === null, title: document.title };
  });
  assert.deepEqual(later, { registered: "refused", worked: "failed", inside: true, title: "alive" });
}

await withBrowser(config.dead ? isPlanted : goesDown);
