// Runs the program of the page without a browser, and prints what it does as one JSON
// object. TestPageProgram runs it and compares.
"use strict";
const fs = require("fs"), vm = require("vm");
const texts = {}, followed = [], rates = [];
const element = id => ({addEventListener() {}, append() {}, replaceChildren() {}, get textContent() { return texts[id]; }, set textContent(t) { texts[id] = t; }});
let source, now = 0, date;
class EventSource {
  constructor() { this.on = {}; source = this; }
  addEventListener(kind, f) { this.on[kind] = f; }
  close() {}
}
const page = vm.createContext({
  document: {getElementById: element, createElement: element}, location: {hash: ""}, performance: {now: () => now}, EventSource,
  fetch: async () => ({headers: {get: () => date}, json: async () => ({started: "1", models: [{model: "a"}, {model: "b"}]})}),
  addEventListener() {}, setInterval() {}, setTimeout() {},
});
const run = text => vm.runInContext(text, page);
run(fs.readFileSync("page.js", "utf8"));
run("showNode = showModel = () => {}");

(async () => {
  for (const hash of ["", "#b", "#main", "#%"]) {
    page.location.hash = hash;
    await run("begin()");
    followed.push(run("last"));
  }
  for (const predictions of [100, 200, 5, 15]) { // with a restart in between
    run(`model = {model: "b", predictions: ${predictions}}; measure()`);
    rates.push(texts.rate);
    now += 1000;
  }
  run("skipped.add(7)");
  source.on.node({data: `{"started": "1"}`});
  const before = run("skipped.size");
  source.on.node({data: `{"started": "2"}`});
  const unjudged = ["member", "follower"].map(role => run(`unjudged({fleet: {role: "${role}"}})`).split(/[ :]/)[0]);
  const ages = [];
  for (const [clock, before] of [[undefined, 60], [0, 60], [3600, 60], [-3600, 60], [1, 60], [undefined, -60]]) { // seconds ahead; of a start
    date = clock === undefined ? null : new Date(Date.now() + clock * 1e3).toUTCString();
    await run("begin()");
    ages.push(run(`Math.round(ago(Date.now() + ${(Math.abs(clock) > 2 ? clock : 0) - before} * 1e3) / 10)`) * 10);
  }
  console.log(JSON.stringify({followed, rates, skipped: [before, run("skipped.size")], unjudged, ages}));
})();
