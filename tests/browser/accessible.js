// Every page of the archive's own is held to axe's rules, light and dark.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { config, withBrowser } from "./kit.js";

const axe = await readFile("node_modules/axe-core/axe.min.js", "utf8");

/* Serious violations on one page, as lines; null where the page is not there. */
async function check(page, name, url, options) {
  const response = await page.goto(url);
  if (response.status() === 404 && name !== "missing") {
    return null;
  }
  await page.evaluate(axe);
  const { violations } = await page.evaluate((more) => axe.run({ exclude: ["#replay"] }, more), { resultTypes: ["violations"], ...options });
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${name}: ${id}: ${nodes.map((node) => node.html).join(" ").slice(0, 300)}`);
}

await withBrowser(async (browser) => {
  const report = { absent: new Set(), violations: [] };
  const rules = { light: {}, dark: { runOnly: ["color-contrast"] } }; // nothing else is different
  const looks = Object.entries(rules).map(async ([colorScheme, options]) => {
    const context = await browser.newContext({ colorScheme, bypassCSP: true });
    const page = await context.newPage();
    for (const [name, url] of Object.entries(config.pages)) {
      const lines = await check(page, name, url, options);
      if (lines === null) {
        report.absent.add(name);
      } else {
        report.violations.push(...lines.map((line) => `${colorScheme} ${line}`));
      }
    }
  });
  await Promise.all(looks);
  assert.deepEqual(report.violations, []);
  assert.deepEqual([...report.absent], [], "pages that are not there");
});
