// Pictures of all pages of the archive's own, for people to look at: light, dark, and on a phone.
import { config, withBrowser } from "./kit.js";

const LOOKS = {
  light: { colorScheme: "light", viewport: { width: 1200, height: 800 } },
  dark: { colorScheme: "dark", viewport: { width: 1200, height: 800 } },
  phone: { colorScheme: "light", viewport: { width: 390, height: 800 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true },
};

await withBrowser(async (browser) => {
  const wide = [];
  for (const [look, options] of Object.entries(LOOKS)) {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    for (const [name, url] of Object.entries(config.pages)) {
      await page.goto(url);
      await page.waitForLoadState("networkidle");
      await page.screenshot({ path: `${config.directory}/${name}-${look}.png` });
      if (await page.evaluate(() => document.documentElement.scrollWidth > screen.width + 1)) {
        wide.push(`${name}-${look}`);
      }
    }
    await context.close();
  }
  console.log(JSON.stringify({ wide }));
});
