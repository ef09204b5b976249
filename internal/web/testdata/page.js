// Runs the program of the page without a browser, and prints what it does as one JSON
// object. TestPageProgram runs it and compares.
"use strict";
const fs = require("fs"), vm = require("vm");
const texts = {}, followed = [], rates = [];
const element = id => ({addEventListener() {}, append() {}, replaceChildren() {}, get textContent() { return texts[id]; }, set textContent(t) { texts[id] = t; }});
let source, now = 0;
class EventSource {
  constructor() { this.on = {}; source = this; }
  addEventListener(kind, f) { this.on[kind] = f; }
  close() {}
}
const page = vm.createContext({
  document: {getElementById: element, createElement: element}, location: {hash: ""}, performance: {now: () => now}, EventSource,
  fetch: async () => ({json: async () => ({started: "1", models: [{model: "a"}, {model: "b"}]})}),
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
  console.log(JSON.stringify({followed, rates, skipped: [before, run("skipped.size")], unjudged}));
})();
