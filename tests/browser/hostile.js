// Pages that try to get out, or at what is not theirs. That the live web saw nothing is for the caller to check.
import assert from "node:assert/strict";
import { archive, capture, config, eventually, outside, replayed, sites, times, watched, withBrowser } from "./kit.js";

const SECRET = "the-archive's-secret";
const LEAVING = ["location", "rewritten", "refresh", "written", "form", "link", "base", "javascript", "data", "blob", "own", "save"];
const REFUSED = new RegExp(
  "^(?:nested read|svg|import|top doc|top storage|cookie store|databases|cache|frame element|service|shared|opener|font|paint|peer|" +
    "nested cookie|nested storage|nested save)"
);

async function withSecrets(browser) {
  const { context, log } = await watched(browser);
  await context.addCookies([{ name: "secret", value: SECRET, url: archive }]);
  const page = await context.newPage();
  await page.goto(archive + "/");
  await page.evaluate((secret) => localStorage.setItem("secret", secret), SECRET);
  return { context, log, page };
}

/* What the banner says must be what the address says. */
async function bannerIsTrue(page) {
  const [url, time] = await page.$eval("#banner", (banner) => [banner.dataset.url, banner.dataset.time]);
  assert.equal(decodeURI(page.url().split("#")[0]), `${archive}/web/${time}/${decodeURI(url)}`);
}

/* One page with all attacks that do not need a page of their own. */
async function inside({ context, page }) {
  await page.goto(capture(sites.hostile + "/"));
  const frame = await replayed(page);
  await eventually(() => frame.evaluate(() => window.isAttackDone), () => "the attacks ended");
  const seen = await frame.evaluate(() => window.seen);
  assert.equal(Object.keys(seen).length > 60, true, "the attacks ran");
  for (const [name, value] of Object.entries(seen)) {
    assert.ok(!value.includes(SECRET), `${name} saw the secret`);
    if (REFUSED.test(name)) {
      assert.match(value, /^refused/, name);
    }
    if (name.startsWith("read ")) { // what it saw is the archived site's own path, if anything
      const own = await (await context.request.get(archive + name.slice("read ".length))).text();
      assert.notEqual(value, own, name);
    }
  }
  assert.equal(seen["parent document"], "Attacks that stand in the page", "it believes to be the top");
  assert.equal(seen.window, "null");
  assert.equal(seen.cookie, "");
  await bannerIsTrue(page);
}

/* Pages that leave, all at once: the frame may fail or show what the archive has, but the archive stays around it. */
async function leaving({ context }) {
  const pages = await Promise.all(LEAVING.map(async (name) => {
    const one = await context.newPage();
    await one.goto(capture(`${sites.hostile}/leave-${name}.html`));
    return [name, one];
  }));
  await new Promise((resolve) => setTimeout(resolve, 2000)); // that nothing happens can only be waited for
  for (const [name, one] of pages) {
    assert.ok(one.url().startsWith(archive + "/web/"), `${name}: ${one.url()}`);
    const inner = (await (await one.$("iframe#replay"))?.contentFrame())?.url() ?? "";
    assert.ok(/^(?:chrome-error:|about:blank)/.test(inner) || inner.startsWith(archive + "/web/"), `${name}: the frame shows ${inner}`);
    if (["location", "data", "blob", "own"].includes(name)) {
      await eventually(async () => /cannot name/.test(await one.textContent("#notice")), () => `${name}: the notice warns`);
    }
    assert.ok(!(await one.content()).includes("I am a bank"));
  }
}

/* Windows, even when somebody clicks. */
async function windows({ context, log }) {
  log.windows = 0;
  const page = await context.newPage();
  await page.goto(capture(sites.hostile + "/open.html"));
  const frame = await replayed(page);
  await frame.click("#b");
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.equal(log.windows, 1, "the page's own");
  assert.ok(page.url().startsWith(archive + "/web/"));
}

/* Reports that lie lead to the archive's own word on that capture, or nowhere; never to another banner. */
async function fakes({ context }) {
  const page = await context.newPage();
  await page.goto(capture(sites.hostile + "/fake.html"));
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.ok(page.url().startsWith(archive + "/web/"), page.url());
  assert.notEqual(await page.title(), "Bank");
  if (await page.$("#banner")) {
    await bannerIsTrue(page);
  }
}

/* What is wrong with a capture that is a page of its own: its content as a document of the archive's, or a script of it that ran there. */
async function openType(page, url) {
  const isShown = await page.goto(url, { waitUntil: "domcontentloaded" }).then(() => true, (error) => {
    if (/Download is starting|ERR_ABORTED|ERR_INVALID_RESPONSE|ERR_HTTP_RESPONSE_CODE_FAILURE/.test(error.message)) {
      return false; // not shown at all
    }
    throw error;
  });
  if (!isShown) {
    return "";
  }
  const wrong = await page.evaluate((own) => {
    const isOfOthers = /html|xml/.test(document.contentType) && !document.getElementById("banner");
    const isOwn = self.origin === own && (isOfOthers || window.ran);
    return isOwn || window.read ? `${document.contentType} of ${self.origin}, ran: ${window.ran}, read: ${Boolean(window.read)}` : "";
  }, archive);
  const go = page.locator("#go");
  if (await go.count() > 0) {
    await go.click({ timeout: 3000 }).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 100)); // a form that is refused shows by nothing at all
  }
  return wrong;
}

/* Every capture of a tricky type as a page of its own, with an operator who is logged in and clicks on what it shows. */
async function types({ context }) {
  const owned = [];
  let opened = 0;
  const todo = [...config.pages];
  const login = await context.newPage();
  await login.goto(`${archive}/login?token=${encodeURIComponent(config.token)}`);
  async function work() {
    for (let one; (one = todo.pop()); opened++) {
      const page = await context.newPage(); // where it went after the click is no matter of the next
      const wrong = await openType(page, `${archive}/web/${times[0]}${one.form}/${one.url}`);
      if (wrong) {
        owned.push(`${one.form} ${one.name}: ${wrong}`);
      }
      await page.close();
    }
  }
  await Promise.all([work(), work(), work(), work()]);
  await login.goto(archive + "/");
  const stored = await login.evaluate(() => localStorage.getItem("owned"));
  console.log(JSON.stringify({ opened, owned: stored ? [...owned, `stored by ${stored}`] : owned }));
}

/* One way out of a page, with clicks on what it shows. */
async function escapeBy(context, one) {
  const page = await context.newPage();
  await page.goto(`${archive}/web/${times[0]}${one.form}/${one.url}`, { waitUntil: "load" }).catch(() => {});
  const inner = (await (await page.$("iframe#replay"))?.contentFrame()) ?? page.mainFrame();
  const end = Date.now() + 600; // that nothing happens can only be waited for
  while (Date.now() < end) {
    await inner.locator("#go").click({ timeout: 150 }).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await page.close();
}

/* Every way out that we could think of; whether the live web was reached is for the caller to count. */
async function escaping({ context, log }) {
  const todo = [...config.pages];
  async function work() {
    for (let one; (one = todo.pop()); ) {
      await escapeBy(context, one);
    }
  }
  await Promise.all([work(), work(), work(), work()]);
  const tried = log.requests.map((url) => /\/tried\?(\d+)$/.exec(url)?.[1]).filter(Boolean).map(Number);
  console.log(JSON.stringify({ tried }));
}

const PARTS = { inside: [inside], leaving: [leaving, windows, fakes], types: [types], escaping: [escaping] };

await withBrowser(async (browser) => {
  const session = await withSecrets(browser);
  for (const part of PARTS[config.part]) {
    await part(session);
  }
  if (config.part === "escaping") {
    return; // its caller counts connections, which is more
  }
  const { log } = session;
  const left = outside(log).filter((url) => !log.failures.some((failure) => failure.startsWith(url + " ")));
  assert.deepEqual(left, [], "requests that were not refused");
});
