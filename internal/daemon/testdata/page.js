// Opens the page in Chromium as a person would, on a desk and on a phone, and
// prints what it saw as one JSON object. TestPageInBrowser runs it and compares.
//
//   PAGE_URL      where the page is
//   PAGE_BROWSER  the browser's executable
//   PAGE_SHOTS    a folder for screenshots; none without it
//   PAGE_LABEL    the button to press
"use strict";
const {chromium} = require("playwright-core");
const {PAGE_URL: url, PAGE_BROWSER: executablePath, PAGE_SHOTS: shots, PAGE_LABEL: label} = process.env;

async function look(browser, name, options, act) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const seen = {requests: [], problems: []};
  page.on("request", r => seen.requests.push(r.url()));
  page.on("console", m => { if (["error", "warning"].includes(m.type())) seen.problems.push(m.text()); });
  page.on("pageerror", e => seen.problems.push(String(e)));
  await page.goto(url);
  await page.waitForFunction(() => document.querySelectorAll("#samples tr").length > 5 && document.querySelectorAll("#relevance tr").length > 5 && document.querySelectorAll("#confusion tbody tr").length > 1 && document.querySelectorAll("#facts dt").length > 8);
  seen.text = await page.evaluate(() => Object.fromEntries([...document.querySelectorAll("dd[id]")].map(e => [e.id, e.textContent])));
  seen.confusion = await page.evaluate(() => [...document.querySelectorAll("#confusion tbody tr")].map(r => [...r.querySelectorAll("td")].map(c => c.textContent)));
  seen.samples = await page.evaluate(() => [...document.querySelectorAll("#samples tr")].map(r => [...r.cells].map(c => c.textContent)));
  seen.present = await page.locator("#devices").textContent();
  seen.axis = await page.locator("#axis").textContent();
  seen.fleet = await page.locator("#fleet").textContent();
  seen.members = await page.evaluate(() => [...document.querySelectorAll("#members tr")].map(r => [...r.cells].map(c => c.textContent)));
  seen.bands = await page.locator("#devices rect").count();
  seen.values = await page.locator("#values li").allTextContents();
  seen.events = await page.evaluate(() => document.getElementById("events").textContent);
  seen.facts = await page.evaluate(() => Object.fromEntries([...document.querySelectorAll("#facts dt")].map(e => [e.textContent, e.nextSibling.textContent])));
  // What a screen reader and a keyboard need.
  seen.nameless = await page.evaluate(() => [...document.querySelectorAll("svg, button, select, input, [role=region], [role=img]")]
    .filter(e => !(e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.getAttribute("aria-hidden") || e.labels && e.labels.length || e.textContent.trim())).map(e => e.outerHTML.slice(0, 80)));
  seen.landmarks = await page.evaluate(() => ["header", "nav", "main", "footer"].filter(t => document.querySelector(t)));
  seen.scrolled = await page.evaluate(() => ["confusion", "samples"].filter(id => { const place = document.getElementById(id).closest(".scroll"); return place.scrollWidth > place.clientWidth; }));
  seen.overflow = await page.evaluate(() => {
    const models = document.getElementById("models"), of = models.options[0], name = of.textContent;
    models.parentNode.hidden = false; // as with a second model, of the longest name
    of.textContent = "m".repeat(64);
    const width = document.documentElement.scrollWidth - document.documentElement.clientWidth; // innerWidth of a phone grows with what is too wide
    models.parentNode.hidden = true;
    of.textContent = name;
    return width;
  });
  if (act) await act(page, seen);
  if (shots) await page.screenshot({path: `${shots}/page-${name}.png`, fullPage: options.fullPage});
  await context.close();
  return seen;
}

(async () => {
  const browser = await chromium.launch({executablePath, headless: true, args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]});
  try {
    const desk = await look(browser, "light", {viewport: {width: 1280, height: 1390}, colorScheme: "light"}, async (page, seen) => {
      // By keyboard alone: to the button, then Enter.
      const button = page.getByRole("button", {name: label, exact: true});
      for (let i = 0; i < 50 && !await button.evaluate(b => b === document.activeElement); i++) await page.keyboard.press("Tab");
      seen.offer = await page.locator("#offer").textContent();
      await page.keyboard.press("Enter");
      await page.waitForFunction(() => document.getElementById("answered").textContent);
      seen.told = await page.locator("#answered").textContent();
      // A new class, by keyboard alone: what cannot be a name is refused at once.
      seen.newTold = [];
      const name = page.getByLabel("New class");
      for (let i = 0; i < 50 && !await name.evaluate(e => e === document.activeElement); i++) await page.keyboard.press("Tab");
      for (const text of ["", "x".repeat(300), "cracked"]) {
        const before = await page.locator("#answered").textContent();
        await page.keyboard.press("Control+A");
        await page.keyboard.insertText(text);
        await page.keyboard.press("Enter");
        await page.waitForFunction(was => document.getElementById("answered").textContent !== was, before);
        seen.newTold.push(await page.locator("#answered").textContent());
      }
      await page.evaluate(() => document.activeElement.blur());
      await page.mouse.move(0, 0);
    });
    const phone = await look(browser, "dark", {viewport: {width: 360, height: 800}, deviceScaleFactor: 1.5, isMobile: true, hasTouch: true, colorScheme: "dark"});
    console.log(JSON.stringify({desk, phone}));
  } finally {
    await browser.close();
  }
})().catch(e => { console.error(e); process.exit(1); });
