// Opens the page of a model whose stream has signals in Chromium, on a desk and on a
// phone, and prints what it saw as one JSON object. TestPageOfSignalsInBrowser runs it and
// compares. The variables are those of page.js.
"use strict";
const {chromium} = require("playwright-core");
const {PAGE_URL: url, PAGE_BROWSER: executablePath, PAGE_SHOTS: shots} = process.env;

async function look(browser, name, options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const seen = {problems: []};
  page.on("console", m => { if (["error", "warning"].includes(m.type())) seen.problems.push(m.text()); });
  page.on("pageerror", e => seen.problems.push(String(e)));
  await page.goto(url);
  await page.waitForFunction(() => document.querySelector("#asked svg") && document.querySelector("#courses svg") && document.querySelector("#fills li"));
  const labels = id => page.evaluate(id => [...document.querySelectorAll(`#${id} svg`)].map(e => e.getAttribute("aria-label")), id);
  seen.asked = await labels("asked");
  seen.courses = await labels("courses");
  seen.fills = await page.locator("#fills li").allTextContents();
  seen.points = await page.evaluate(() => document.querySelector("#asked path").getAttribute("d").split(/[ML]/).length - 1);
  seen.ticks = await page.evaluate(() => [...document.querySelector("#asked svg").querySelectorAll("text")].map(t => t.textContent));
  seen.filled = await page.evaluate(() => { const bar = document.querySelector("#fills .bar"); return bar.offsetWidth / bar.parentElement.offsetWidth; });
  seen.offer = await page.locator("#offer").textContent();
  seen.over = await page.locator("#over").textContent();
  seen.nameless = await page.evaluate(() => [...document.querySelectorAll("svg")].filter(e => !(e.getAttribute("aria-label") || e.getAttribute("aria-hidden"))).map(e => e.outerHTML.slice(0, 80)));
  seen.overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  seen.withoutDimension = await page.evaluate(() => [...document.querySelectorAll("#asked svg, #courses svg")].filter(e => e.getBoundingClientRect().width < 100 || e.querySelector("path").getAttribute("d").includes("NaN")).length);
  if (shots) await page.screenshot({path: `${shots}/signals-${name}.png`, fullPage: true});
  await context.close();
  return seen;
}

(async () => {
  const browser = await chromium.launch({executablePath, headless: true, args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]});
  try {
    const desk = await look(browser, "light", {viewport: {width: 1280, height: 1390}, colorScheme: "light"});
    const phone = await look(browser, "dark", {viewport: {width: 360, height: 800}, deviceScaleFactor: 1.5, isMobile: true, hasTouch: true, colorScheme: "dark"});
    console.log(JSON.stringify({desk, phone}));
  } finally {
    await browser.close();
  }
})().catch(e => { console.error(e); process.exit(1); });
