"use strict";
const $ = id => document.getElementById(id);
const known = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e0a100", "#56b4e9", "#8b6fc0", "#8a8f98"];
const colour = k => known[k] || `hsl(${k * 47 % 360} 50% 52%)`;
const ns = "http://www.w3.org/2000/svg";

// make returns an element with attributes and children.
function make(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {})) if (v !== undefined) e.setAttribute(k, v);
  e.append(...children.filter(c => c !== undefined));
  return e;
}
function draw(tag, attributes, text) {
  const e = document.createElementNS(ns, tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  return e;
}
const set = (id, text) => { const e = $(id); if (e.textContent !== text) e.textContent = text; };
const digits = (v, n = 3) => v === null || v === undefined ? "–" : v.toFixed(n);
const whole = v => v.toLocaleString("en-US").replaceAll(",", "\u202f");
const percent = (v, n) => v === null || v === undefined ? "–" : `${(100 * v).toFixed(n ?? (v > 0 && v < .01 ? 1 : 0))} %`;
const clock = (t, seconds = true) => new Date(t).toLocaleTimeString([], {hour12: false, hour: "2-digit", minute: "2-digit", second: seconds ? "2-digit" : undefined});
const number = v => v === null ? "missing" : (Math.abs(v) >= 1e5 || v && Math.abs(v) < 1e-3 ? v.toExponential(1) : String(+v.toPrecision(3))).replace("-", "\u2212");
function bytes(v) {
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (v < 1024 || unit === "GiB") return `${unit === "B" ? v : v.toFixed(v < 10 ? 2 : 1)} ${unit}`;
    v /= 1024;
  }
}
function span(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 86400) return `${(seconds / 3600).toFixed(1)} h`;
  return `${(seconds / 86400).toFixed(1)} days`;
}

// ticks returns round numbers from 0 or lo to hi, about n of them.
function ticks(lo, hi, n) {
  const raw = (hi - lo) / n || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(f => f * power).find(s => s >= raw);
  const all = [];
  for (let v = Math.ceil(lo / step) * step; v <= hi + step / 1e6; v += step) all.push(+v.toPrecision(10));
  return all;
}

// moments returns about n round times from lo to hi, and a function that writes them.
function moments(lo, hi, n) {
  const s = 1e3, min = 60 * s, h = 60 * min, day = 24 * h;
  const steps = [s, 2 * s, 5 * s, 10 * s, 15 * s, 30 * s, min, 2 * min, 5 * min, 10 * min, 15 * min, 30 * min, h, 2 * h, 3 * h, 6 * h, 12 * h, day, 2 * day, 7 * day];
  const step = steps.find(t => t >= (hi - lo) / n) || 30 * day, zone = new Date(hi).getTimezoneOffset() * min;
  const at = [];
  for (let t = Math.ceil((lo - zone) / step) * step + zone; t <= hi; t += step) at.push(t);
  return {at, text: t => step >= day ? new Date(t).toLocaleDateString([], {day: "numeric", month: "short"}) : clock(t, step < min)};
}

// frame begins a plot with axes, as wide as its element, and returns the scales. An axis has
// range, ticks and text, which writes a tick; the x axis may have a name, and times below
// the ticks.
function frame(id, title, height, xAxis, yAxis) {
  const place = $(id), width = Math.max(place.clientWidth, 200);
  const left = 42, right = 10, top = 8, bottom = (xAxis.name ? 36 : 22) + (xAxis.time ? 14 : 0);
  const [x0, x1] = xAxis.range, [y0, y1] = yAxis.range;
  const x = v => left + (v - x0) / (x1 - x0 || 1) * (width - left - right);
  const y = v => height - bottom - (v - y0) / (y1 - y0 || 1) * (height - top - bottom);
  const svg = draw("svg", {viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": title});
  for (const t of yAxis.ticks) {
    svg.append(draw("line", {class: "grid", x1: left, x2: width - right, y1: y(t), y2: y(t)}),
      draw("text", {x: left - 6, y: y(t) + 4, "text-anchor": "end"}, yAxis.text(t)));
  }
  xAxis.ticks.forEach((t, i) => svg.append(draw("text", {x: x(t), y: height - bottom + 15, "text-anchor": i === xAxis.ticks.length - 1 && x(t) > width - 30 ? "end" : "middle"}, xAxis.text(t))));
  if (xAxis.time) {
    let free = 0;
    xAxis.ticks.forEach(t => {
      const text = xAxis.time(t), half = 3.2 * text.length, at = Math.min(Math.max(x(t), left + half - 10), width - half);
      if (at - half < free) return;
      svg.append(draw("text", {x: at, y: height - bottom + 29, "text-anchor": "middle"}, text));
      free = at + half + 6;
    });
  }
  if (xAxis.name) svg.append(draw("text", {x: (left + width - right) / 2, y: height - 3, "text-anchor": "middle"}, xAxis.name));
  return {svg, x, y, show: () => place.replaceChildren(svg)};
}

// showCourses plots the signals of a sample over its window, each with axes of its own.
function showCourses(id, course) {
  const place = $(id), text = JSON.stringify(course || null) + innerWidth;
  if (place.dataset.shown === text) return;
  place.dataset.shown = text;
  if (!course) return place.replaceChildren();
  place.replaceChildren(...course.signals.map((_, j) => make("figure", {}, make("figcaption", {}, course.signals[j].signal), make("div", {id: `${id}-${j}`}))));
  const seconds = (new Date(course.to) - new Date(course.from)) / 1e3 || 0;
  const [unit, name] = seconds >= 7200 ? [3600, "h"] : seconds >= 120 ? [60, "min"] : [1, "s"], length = seconds / unit;
  course.signals.forEach(({signal, values}, j) => {
    const there = values.filter(v => v !== null), lo = Math.min(...there), hi = Math.max(...there), room = (hi - lo) * .06 || Math.abs(hi) * .06 || 1;
    const title = there.length ? `${signal}: from ${number(lo)} to ${number(hi)} over ${number(length)} ${name}` : `${signal}: no value`;
    const range = there.length ? [lo - room, hi + room] : [0, 1], end = length || values.length - 1;
    const f = frame(`${id}-${j}`, title, 104, {range: [0, end], ticks: ticks(0, end, 4), text: v => length ? `${v} ${name}` : v}, {range, ticks: ticks(...range, 3), text: number});
    let path = "";
    values.forEach((v, i) => { if (v !== null) path += `${path ? "L" : "M"}${f.x(i / (values.length - 1 || 1) * end).toFixed(1)} ${f.y(v).toFixed(1)}`; });
    f.svg.append(draw("path", {class: "first signal", d: path}));
    f.show();
  });
}

// showWindows shows how far the next window of each device is, and the signals of the
// newest sample.
function showWindows(m) {
  const all = m.windows ? m.windows.devices.toSorted((a, b) => (a.stream + a.device).localeCompare(b.stream + b.device, undefined, {numeric: true})) : [];
  $("fills").replaceChildren(...all.map(w => {
    const bar = make("div", {class: "bar"}), of = /^\d+$/.test(w.length) ? `${whole(w.rows)} of ${whole(+w.length)} rows` : `${percent(w.part)} of ${w.length}, ${whole(w.rows)} rows`;
    bar.style.width = `${100 * w.part}%`;
    return make("li", {}, make("span", {class: "name", title: w.stream}, `${w.device || w.stream}: next window ${of}${ago(w.ts) > 60 ? `, last row ${span(ago(w.ts))} ago` : ""}`), make("div", {}, bar));
  }));
  const s = m.samples.find(s => s.signals), course = s && s.signals;
  $("signals").hidden = !course;
  if (!course) return;
  set("over", `over the window of sample ${s.id || "#" + s.seq}${s.label ? `, ${s.label}` : s.class ? `, predicted ${s.class}` : ""}`);
  showCourses("courses", course);
}

// showFleet shows the members of the model's fleet, and what they are worth here.
function showFleet(m) {
  const f = m.fleet;
  $("fleet").hidden = !f;
  if (!f) return;
  const states = {
    alone: "No other device is known yet.", gathering: "Other devices are known; what they know is not in the answers yet.",
    newcomer: "The other devices answer, until this one has learnt enough itself.", member: "The answers join what this device and the others have learnt.",
    isolated: "The broker is away: the latest sum of the other devices goes on.", follower: "This device only follows: the others answer.",
  };
  const reasonTexts = {
    trust: "own labels contradict it", forest: "own labels contradict its forest", others: "the other members contradict it", features: "other features",
    shape: "no horizon in common", precision: "claims more than its labels can teach", numbers: "cannot be added", classes: "too many classes",
    size: "too large", format: "damaged, or of another version", name: "of another name than its topic", members: "not in fleet.members", room: "no room", queue: "came too fast",
  };
  const taken = f.members.filter(o => o.taken).length;
  set("fleet-of", `${f.concept}: ${whole(f.members.length)} other${f.members.length === 1 ? "" : "s"}`);
  set("fleet-state", states[f.state] || f.state);
  set("fleet-worth", !taken || f.role === "follower" ? "" : `The fleet has ${percent(f.weight)} of the weight in the answers. It begins ahead; then counts how well it and the own labels alone predict this device's labels.`);
  set("fleet-own", f.role === "follower" ? "" : f.stopped ? `Nothing is published any more: ${f.stopped}.` : !f.sequence ? "This device has published nothing since its start." :
    `Published: ${whole(f.n)} labels in ${bytes(f.bytes)}, ${span(f.age_s)} ago${f.kept ? "" : f.cleared ? "; it was removed from the broker" : f.lost ? "; it did not come back from the broker, so that the others may not have it" : "; it has not come back from the broker yet"}.`
    + (f.basis ? ` Common basis ${whole(f.basis.number)}, of ${f.basis.author}${f.basis.averaged > 1 ? `; ${whole(f.basis.averaged)} members average it` : ""}.` : "")
    + (f.basis_refused ? ` The ${f.basis_refused}.` : ""));
  set("fleet-alike", (f.spellings || []).map(all => `${all.join(" and ")} are spelt almost alike, and count as different classes: let all devices send one spelling, or give them a label_map.`).join(" "));
  const refused = Object.entries(f.refused).map(([why, n]) => `${reasonTexts[why] || why} (${whole(n)})`);
  set("fleet-refused", refused.length ? `Refused since the start: ${refused.join(", ")}.` : "");
  $("fleet-table").hidden = !f.members.length;
  $("members").replaceChildren(...f.members.map(o => make("tr", {},
    make("th", {scope: "row", class: "name", title: `version ${o.epoch}.${o.sequence}, ${bytes(o.bytes)}: ${o.classes.join(", ")}`}, o.name),
    make("td", {class: "number"}, whole(o.n)), make("td", {class: "number"}, `${span(o.age_s)} ago`),
    make("td", {class: "number"}, o.trust === null ? "–" : `${o.trust < 0 ? "\u2212" : "+"}${Math.abs(o.trust).toFixed(1)}`),
    make("td", {class: "number"}, o.taken ? percent(o.share) : "–"),
    make("td", {class: o.taken ? "right" : o.refused ? "wrong" : "soft"}, o.taken ? "✓ yes" : o.stale ? "silent for too long" : o.refused ? `✗ ${reasonTexts[o.refused] || o.refused}` : "not yet", o.unread ? `; newest message: ${reasonTexts[o.unread] || o.unread}` : ""))));
}

function plotCourse(id, name, course, first, second, yText) {
  const values = course.flatMap(p => [p[first], p[second]]);
  const hi = Math.max(...values, .01) * 1.08, n = course.map(p => p.n), last = course.at(-1);
  const title = last ? `${name} over ${whole(last.n)} samples: ${yText(last[first])} over the last samples, ${yText(last[second])} over all` : `${name}: nothing judged yet`;
  const lo = course.length > 1 ? n[0] : 0, end = course.length ? n.at(-1) : 100;
  const when = course.map(p => +new Date(p.ts)), close = when.at(-1) - when[0] < 6e5;
  const time = v => {
    const i = Math.max(1, n.findIndex(m => m >= v)), part = (v - n[i - 1]) / (n[i] - n[i - 1]);
    return clock(when[i - 1] + part * (when[i] - when[i - 1]), close);
  };
  const most = Math.max(3, Math.floor($(id).clientWidth / 90));
  const count = v => v >= 1e6 ? `${v / 1e6}M` : v >= 1e4 ? `${v / 1e3}k` : v;
  const f = frame(id, title, 194,
    {range: [lo, end], ticks: ticks(lo, end, most), text: count, name: "judged samples, and the time", time: course.length > 1 ? time : undefined},
    {range: [0, hi], ticks: ticks(0, hi, 4), text: yText});
  const line = (key, style) => f.svg.append(draw("path", {class: style, d: course.map((p, i) => `${i ? "L" : "M"}${f.x(p.n).toFixed(1)} ${f.y(p[key]).toFixed(1)}`).join("")}));
  if (course.length > 1) { line(second, "second"); line(first, "first"); }
  if (course.length === 1) f.svg.append(draw("circle", {class: "dot", cx: f.x(n[0]), cy: f.y(course[0][first]), r: 4}));
  f.show();
}

function plotReliability(bins, ece) {
  const used = bins.filter(b => b.n), total = used.reduce((s, b) => s + b.n, 0);
  const unit = {range: [0, 1], ticks: [0, .2, .4, .6, .8, 1], text: v => v};
  const f = frame("reliability", `Reliability diagram of ${whole(total)} samples; calibration error ${digits(ece)}. The table below has its figures.`, 280, {...unit, name: "probability of the predicted class"}, unit);
  f.svg.append(draw("line", {class: "ideal", x1: f.x(0), y1: f.y(0), x2: f.x(1), y2: f.y(1)}));
  for (const b of used) {
    const x = f.x(b.confidence);
    f.svg.append(draw("line", {class: "gap", x1: x, x2: x, y1: f.y(b.confidence), y2: f.y(b.accuracy)}),
      draw("circle", {class: "dot", cx: x, cy: f.y(b.accuracy), r: (3 + 11 * Math.sqrt(b.n / total)).toFixed(1)}));
  }
  f.show();
  $("bins").replaceChildren(...used.map(b => row([percent(b.confidence), percent(b.accuracy), whole(b.n)], "number")));
}

const row = (cells, style) => make("tr", {}, ...cells.map(c => make("td", {class: style}, c)));

let model, node, last, offered, offeredAt = 0, source, rateOf, names = [], choices = "", skipped = new Set();

const hueOf = c => model.classes.includes(c) ? colour(model.classes.indexOf(c)) : "var(--line)";
const follows = m => m?.fleet?.role === "follower";
const unjudged = m => follows(m) ? "Not known here: a follower gets no labels. The pages of the members have their scores." : "Nothing yet: a sample is judged when its label arrives.";
const nameOf = c => c || "no class known yet";
let ahead = 0; // milliseconds of the node's clock before that of the browser
const nodeTime = () => Date.now() + ahead;
const ago = t => Math.max(0, nodeTime() - new Date(t)) / 1e3;

// dot returns a mark in the colour of a class.
function dot(c) {
  const mark = make("i");
  mark.style.background = hueOf(c);
  return mark;
}

// showPresent shows the class of each device, its time and probability, and the
// classes before.
function showPresent() {
  const {others, at_least, from} = model.present, alone = model.present.devices.length === 1;
  const devices = model.present.devices.toSorted((a, b) => a.device.localeCompare(b.device, undefined, {numeric: true})); // no row jumps
  $("nothing").hidden = devices.length > 0;
  const lo = +new Date(from), hi = Math.max(nodeTime(), lo + 1e3);
  $("axis").className = alone ? "alone-axis" : "";
  $("devices").className = devices.length > 8 ? "many" : "";
  if (devices.length > 8) $("devices").tabIndex = 0; // so that a keyboard can scroll it
  else $("devices").removeAttribute("tabindex");
  $("devices").replaceChildren(...devices.map(d => {
    const sure = d.class ? `${percent(d.confidence)} sure` : "";
    const since = !d.class ? follows(model) ? "A member of the fleet has to publish first." : "Label a first sample below to add a class." : ago(d.since) < 2 ? "just now" : `for ${span(ago(d.since))}, since ${clock(d.since)}`;
    const quiet = ago(d.ts) > 60 ? `last sample ${span(ago(d.ts))} ago` : "";
    const lately = d.timeline.length && Object.keys(d.timeline.at(-1).shares).length > 1 ? `lately ${inWords(d.timeline.at(-1).shares)}` : "";
    const caveats = [d.abstain ? "the model abstains" : "", d.class && d.novelty > .9 ? "unlike anything learnt" : ""].filter(Boolean);
    const words = make("p", {class: "words soft"}, [sure, since, lately, quiet].filter(Boolean).join(" · "));
    if (caveats.length) words.append(" · ", make("span", {class: "odd"}, caveats.join(", ")));
    const head = make("div", {}, make("p", {class: d.class ? "class" : "class none"}, dot(d.class), make("span", {}, nameOf(d.class))), words);
    if (d.device || !alone) head.prepend(make("h3", {}, d.device || "without a device"));
    const row = make("article", {class: alone ? "device alone" : "device"}, head, make("div"));
    return row;
  }));
  devices.forEach((d, i) => $("devices").children[i].lastChild.append(lane(d, lo, hi, alone ? 44 : 22)));
  const place = $("axis"), width = Math.max(place.clientWidth, 200);
  const {at, text} = moments(lo, hi, Math.max(2, Math.floor(width / 100)));
  const axis = draw("svg", {viewBox: `0 0 ${width} 18`, height: 18, "aria-hidden": "true"});
  for (const t of at) {
    const x = (t - lo) / (hi - lo) * width, half = 3.2 * text(t).length;
    axis.append(draw("line", {class: "grid", x1: x, x2: x, y1: 0, y2: 4}));
    if (x > half && x < width - half) axis.append(draw("text", {x, y: 15, "text-anchor": "middle"}, text(t)));
  }
  place.replaceChildren(...(devices.length ? [axis] : []));
  set("others", others ? `And ${at_least ? "at least " : ""}${whole(others)} other device${others > 1 ? "s" : ""}, silent for longer.` : "");
  $("classes").replaceChildren(...model.classes.map(c => make("li", {}, dot(c), c)));
  $("timeline").replaceChildren(...devices.flatMap(d => d.timeline.slice(-30).reverse().map(b => row([d.device || "–", clock(b.ts), inWords(b.shares)]))).slice(0, 200));
}

const shares = s => Object.entries(s).sort((a, b) => model.classes.indexOf(a[0]) - model.classes.indexOf(b[0]));
const inWords = s => shares(s).sort((a, b) => b[1] - a[1]).map(([c, v]) => v === 1 ? nameOf(c) : `${nameOf(c)} ${percent(v)}`).join(", ");

// lane draws the timeline of a device. The shares of several classes within a piece
// stand above each other.
function lane(d, lo, hi, height) {
  const last = d.timeline.slice(-3).map(b => `from ${clock(b.ts)} ${inWords(b.shares)}`).join("; ");
  const svg = draw("svg", {viewBox: `0 0 1000 ${height}`, height, preserveAspectRatio: "none", role: "img", class: "lane", "aria-label": `Classes${d.device ? ` of ${d.device}` : ""}: ${last}`});
  const x = t => Math.max(0, (new Date(t) - lo) / (hi - lo) * 1000);
  d.timeline.forEach((b, i) => {
    const from = x(b.ts), to = i + 1 < d.timeline.length ? x(d.timeline[i + 1].ts) : 1000;
    let y = 0;
    for (const [c, v] of shares(b.shares)) {
      const part = draw("rect", {x: from.toFixed(1), width: Math.max(0, to - from + .4).toFixed(1), y: (y * height).toFixed(2), height: (v * height).toFixed(2)});
      part.style.fill = hueOf(c);
      part.append(draw("title", {}, `${clock(b.ts)}: ${inWords(b.shares)}`));
      svg.append(part);
      y += v;
    }
  });
  return svg;
}

function showSamples(m) {
  const index = new Map(m.classes.map((c, k) => [c, k]));
  $("samples").replaceChildren(...m.samples.slice(0, 10).map(s => {
    const probs = Object.entries(s.probs).sort((a, b) => index.get(a[0]) - index.get(b[0]));
    const bar = make("div", {class: "probs", role: "img", "aria-label": probs.map(([c, p]) => `${c} ${percent(p)}`).join(", ") || "no class known"});
    for (const [c, p] of probs) {
      const part = make("span", {title: `${c} ${percent(p)}`});
      part.style.width = `${100 * p}%`;
      part.style.background = colour(index.get(c));
      bar.append(part);
    }
    const right = s.label === s.class;
    const label = s.label ? make("span", {class: right ? "right" : "wrong"}, `${right ? "✓" : "✗"} ${s.label}`) : make("span", {class: "soft"}, "–");
    return make("tr", {},
      make("td", {class: "spare soft"}, clock(s.ts)),
      make("td", {class: "name", title: s.id}, s.id || `#${s.seq}`, s.device ? make("span", {class: "soft"}, ` ${s.device}`) : ""),
      make("td", {}, bar),
      make("td", {}, make("span", {class: "name", title: s.class || ""}, s.class || "–"), s.class ? ` ${percent(s.confidence)}` : ""),
      make("td", {class: "number spare"}, digits(s.novelty, 2)),
      make("td", {class: "name", title: s.label || ""}, label));
  }));
}

function showConfusion(m) {
  if (!m.confusion) return $("confusion").replaceChildren(make("caption", {class: "none"}, m.n ? "Too many classes to show." : "Nothing judged yet."));
  const head = make("tr", {}, make("td"), ...m.classes.map(c => make("th", {scope: "col", class: "number name", title: c}, c)));
  $("confusion").replaceChildren(make("thead", {}, head), make("tbody", {}, ...m.confusion.map((cells, k) => {
    const sum = cells.reduce((a, b) => a + b, 0);
    return make("tr", {}, make("th", {scope: "row", class: "name", title: m.classes[k]}, m.classes[k]), ...cells.map((v, j) => {
      const cell = make("td", {title: sum ? `${percent(v / sum)} of label ${m.classes[k]}` : undefined}, whole(v));
      cell.style.background = `color-mix(in srgb, var(${j === k ? "--one" : "--two"}) ${Math.round(sum ? 55 * v / sum : 0)}%, var(--faint))`;
      return cell;
    }));
  })));
}

function showRelevance(m) {
  const top = m.relevance.length ? m.relevance[0].relevance : 0, shown = m.relevance.slice(0, 40);
  set("relevance-note", m.features > shown.length && shown.length ? `${shown.length} of ${m.features}` : "");
  if (!shown.length) return $("relevance").replaceChildren(row(["Not known before the model is built."]));
  $("relevance").replaceChildren(...shown.map(r => {
    const bar = make("div", {class: "bar"});
    bar.style.width = `${top ? 100 * r.relevance / top : 0}%`;
    return make("tr", {}, make("th", {scope: "row", class: "name", title: r.feature}, r.feature), make("td", {class: "stretch"}, bar), make("td", {class: "number"}, r.relevance.toPrecision(2)));
  }));
}

// measure computes the rate of predictions, which falls to 0 without new ones.
function measure() {
  const now = performance.now(), m = model;
  if (!rateOf || rateOf.model !== m.model || m.predictions < rateOf.predictions) { // the last: after a restart
    rateOf = {model: m.model, predictions: m.predictions, at: now};
    set("rate", "–");
  } else if (now > rateOf.at + 500) {
    const rate = (m.predictions - rateOf.predictions) / (now - rateOf.at) * 1e3;
    rateOf = {model: m.model, predictions: m.predictions, at: now, rate: rateOf.rate === undefined ? rate : rateOf.rate + .4 * (rate - rateOf.rate)};
    set("rate", digits(rateOf.rate, rateOf.rate < 9.95 ? 1 : 0));
  }
}

// showBaselines compares the model with rules that use no features.
function showBaselines(w) {
  const names = {class_prior: "the class frequencies", last_label: "“same as last label”"};
  const all = Object.entries(w.baselines).map(([k, b]) => ({name: names[k], error: b.error, loss: b.log_loss}));
  const figures = all.map(b => `${b.name} ${percent(b.error, 1)} and ${digits(b.loss)}`).join(", ");
  if (w.beats_baselines === null) return set("baselines", "");
  const better = all.filter(b => w.error >= b.error || w.log_loss >= b.loss).map(b => b.name);
  set("baselines", `${w.beats_baselines ? "Beats the baselines" : `Does not beat ${better.join(" or ")}`} over the last ${whole(w.n)}: ${percent(w.error, 1)} wrong with log loss ${digits(w.log_loss)}, against ${figures}.`);
}

// showWarnings shows drift, coverage and abstention.
function showWarnings(m) {
  const drift = {warning: "The stream may be changing.", drift: "The stream has changed: predictions may be worse for a while."}[m.drift];
  const s = m.window_scores.sets, a = m.window_scores.abstention;
  set("warnings", [drift, s && `Prediction sets hold the label in ${percent(s.coverage)}, with ${digits(s.size, 2)} classes on average.`,
    a && `Abstains from ${percent(1 - a.kept)}; ${percent(a.error, 1)} of the others are wrong.`].filter(Boolean).join(" "));
}

function showModel() {
  const m = model;
  $("main").classList.toggle("early", !m.n || follows(m));
  set("unjudged", unjudged(m));
  set("n", whole(m.n));
  set("error", percent(m.error, 1)); set("window-error", percent(m.window.error, 1));
  set("loss", digits(m.log_loss)); set("window-loss", digits(m.window.log_loss));
  showBaselines(m.window_scores); showWarnings(m);
  set("ece", percent(m.ece, 1)); set("pending", whole(m.pending));
  for (const e of document.querySelectorAll(".window")) e.textContent = m.window.n || 500;
  set("stage", follows(m) ? "" : !m.learning ? "learning is switched off" : m.recovery !== undefined ? `recovering: ${whole(m.recovery)} records to learn` : !m.built ? "too few samples for a model yet" : m.warmed_up ? "" : "warming up");
  measure();
  showPresent();
  showWindows(m); showFleet(m);
  $("teach").parentNode.hidden = follows(m);
  plotCourse("error-plot", "Wrong", m.course, "window_error", "error", v => percent(v, v && v < .1 ? 1 : 0));
  plotCourse("loss-plot", "Log loss", m.course, "window_log_loss", "log_loss", v => String(+v.toPrecision(3)));
  $("course").replaceChildren(...m.course.filter((_, i) => i % Math.ceil(m.course.length / 25) === 0).reverse().map(p => row([clock(p.ts), whole(p.n), percent(p.window_error, 1), percent(p.error, 1), digits(p.window_log_loss), digits(p.log_loss)])));
  plotReliability(m.reliability, m.ece);
  showSamples(m); showConfusion(m); showRelevance(m); showOffer();
}

function showNode() {
  const v = node;
  set("node", `· ${v.node}`);
  document.title = `edge · ${v.node}`;
  const pill = (ok, good, bad) => make("li", {class: ok ? "good" : "bad"}, ok ? good : bad);
  const pills = [pill(v.connected, "connected", "not connected")];
  if (v.connected) pills.push(pill(v.subscribed, "subscribed", v.refused.length ? `refused: ${v.refused.join(", ")}` : "not subscribed"));
  pills.push(pill(v.store && !v.degraded, "state durable", v.degraded ? "journal fails" : "state file not readable"));
  $("pills").replaceChildren(...pills);
  if (names.join() !== v.models.map(m => m.model).join()) {
    names = v.models.map(m => m.model);
    $("models").replaceChildren(...names.map(n => make("option", {value: n}, n)));
    $("pick").hidden = names.length < 2;
  }
  if (last) $("models").value = last;
  const up = ago(v.started), facts = [];
  if (v.store) {
    facts.push(["State file", bytes(v.store.bytes)], ["Free in the file", bytes(v.store.free_bytes)], ["Written since the start", bytes(v.store.written_bytes)]);
    if (up > 60) facts.push(["At this rate, a day", bytes(v.store.written_bytes / up * 86400)]);
    facts.push(["Commits", whole(v.store.transactions)]);
  }
  if (model) facts.push(["Checkpoint", model.state_bytes ? bytes(model.state_bytes) : "none yet"], ["Samples in the model", whole(model.version)], ["Steps, rolled back", `${whole(model.steps)}, ${whole(model.rollbacks)}`]);
  facts.push(["Messages", whole(v.received)], ["Refused", whole(Object.values(v.rejected).reduce((a, b) => a + b, 0))], ["Dropped", whole(v.dropped)],
    ["Last message", v.last_message ? `${span(ago(v.last_message))} ago` : "none yet"], ["Running for", span(up)]);
  $("facts").replaceChildren(...facts.flatMap(([k, t]) => [make("dt", {}, k), make("dd", {}, t)]));
  $("events").replaceChildren(...(v.events.length ? v.events.map(e => make("li", {}, make("time", {datetime: e.ts}, clock(e.ts)), make("span", {}, make("b", {}, e.event.replaceAll("_", " ")), [e.model, e.detail].filter(Boolean).map(t => ` · ${t}`).join("")))) : [make("li", {class: "none"}, make("span", {class: "none"}, "None since the start."))]));
  set("build", `edge ${v.version}${v.commit ? `, ${v.commit.slice(0, 12)}` : ""}`);
  $("teach").hidden = !v.control;
  $("closed").hidden = v.control;
}

const keptFor = 45e3; // milliseconds before a newer sample replaces the offered one
const title = s => `Sample ${s.id || "#" + s.seq}${s.device ? ` of ${s.device}` : ""}, ${clock(s.ts)}`;
const reasons = {margin: "two classes are close", entropy: "several classes are close", bald: "its label would be informative", random: "chosen at random"};

// choose selects the offered sample: one that the model queries, or else the newest
// without a label. While the form is in use the sample stays until it is answered.
function choose() {
  const waiting = [...model.queries.open, ...model.samples.filter(s => s.waits)].filter(s => !skipped.has(s.seq));
  const now = Date.now(), held = $("teach").matches(":hover, :focus-within");
  if (offered) {
    const same = model.samples.find(s => s.seq === offered.seq), newer = model.samples.length && model.samples[0].seq !== offered.seq;
    const gone = skipped.has(offered.seq) || same && same.label || !offered.id && newer && !held;
    if (!gone && (held || now - offeredAt < keptFor || !waiting.length)) return;
  }
  offered = waiting[0];
  offeredAt = now;
}

function showOffer() {
  if ($("teach").hidden || !model) return;
  choose();
  if (!model.learning) offered = undefined;
  const s = offered, more = model.queries.open.filter(q => !skipped.has(q.seq) && (!s || q.seq !== s.seq)).length;
  const guess = s && (s.class ? `The model predicts ${s.class}, ${percent(s.confidence)} sure.` : "The model knows no class yet.");
  const asks = s && s.reason && s.class ? ` It asks: ${reasons[s.reason] || s.reason}.` : "";
  set("offer", follows(model) ? "A follower takes no labels; the members do." : !model.learning ? "Learning is switched off." : s ? `${title(s)}. ${guess}${asks}${more ? ` ${whole(more)} more to answer.` : ""}` : "No sample waits for a label.");
  $("offer").className = s ? "" : "none";
  showValues(s && s.values || []);
  showCourses("asked", s && s.signals);
  if (choices !== model.classes.join("\n")) {
    choices = model.classes.join("\n");
    $("choices").replaceChildren(...model.classes.map(c => {
      const b = make("button", {type: "button"}, dot(c), c);
      b.addEventListener("click", () => answer(c));
      return b;
    }));
  }
  const full = model.classes.length >= model.new_classes.max;
  $("new").hidden = !model.new_classes.open || full;
  for (const b of document.querySelectorAll("#choices button, #new button, #skip")) b.disabled = !s;
}

// showValues shows the values of a sample with their usual range: the mean and two
// standard deviations on either side.
function showValues(values) {
  const text = JSON.stringify(values);
  if ($("values").dataset.shown === text) return;
  $("values").dataset.shown = text;
  if (!values.length) return $("values").replaceChildren();
  const note = make("p", {class: "soft"}, values[0].low === null ? "Its values:" : `Its values${model.features > values.length ? `, the ${values.length} of ${model.features} that are furthest from usual` : ""}; the band is the usual range:`);
  $("values").replaceChildren(note, make("ul", {class: values[0].low === null ? "values plain" : "values"}, ...values.map(v => {
    const known = v.value !== null, z = known ? (v.value - (v.low + v.high) / 2) / ((v.high - v.low) / 4 || 1) : 0;
    const x = 50 + 12.5 * Math.min(Math.max(z, -3.7), 3.7), far = Math.abs(z) > 2;
    if (v.low === null) return make("li", {}, make("span", {class: "name", title: v.feature}, v.feature), make("b", {}, number(v.value)));
    const svg = draw("svg", {viewBox: "0 0 100 16", "aria-hidden": "true"});
    svg.append(draw("line", {class: "rail", x1: 0, x2: 100, y1: 8, y2: 8}));
    svg.append(draw("rect", {class: "usual", x: 25, width: 50, y: 3, height: 10, rx: 3}));
    if (known) svg.append(draw("circle", {class: far ? "value far" : "value", cx: x, cy: 8, r: 5}));
    const value = make("b", {class: far ? "odd" : "", title: far ? z > 0 ? "above the usual range" : "below the usual range" : undefined}, `${far ? z > 0 ? "↑ " : "↓ " : ""}${number(v.value)}`);
    return make("li", {}, make("span", {class: "name", title: v.feature}, v.feature), svg, value, make("small", {}, `${number(v.low)} to ${number(v.high)}`));
  })));
}

// answer sends a label for the offered sample.
async function answer(label) {
  const s = offered;
  if (!s) return false;
  for (const b of $("teach").querySelectorAll("button")) b.disabled = true;
  let text, good = false;
  try {
    const r = await fetch(`api/v1/models/${encodeURIComponent(last)}/label`, {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({id: s.id, device: s.device || "", seq: s.seq, label})});
    const a = await r.json();
    good = r.ok;
    const unknown = !model.classes.includes(label), wait = unknown && model.new_classes.confirm > 1 ? ` ${label} becomes a class once ${model.new_classes.confirm} samples have this label.` : "";
    text = good ? `Learnt: ${s.id || "#" + s.seq} is ${label}.${wait}` : `Not learnt: ${a.error}.`;
  } catch (e) {
    text = `Not learnt: ${e.message}.`;
  }
  set("answered", text);
  if (good || model.classes.includes(label)) skipped.add(s.seq); // another name may be accepted for a new class
  showOffer();
  return good;
}

// refusal returns the reason why a name cannot be that of a class, "" if it can.
function refusal(name) {
  const size = new TextEncoder().encode(name).length, most = model.new_classes.bytes;
  if (!name) return "Type the name of the class first.";
  if (size > most) return `The name takes ${size} bytes; at most ${most} are allowed.`;
  return /[\u0000-\u001f\u007f]/.test(name) ? "The name contains a character that cannot be printed." : "";
}

$("new").addEventListener("submit", async e => {
  e.preventDefault();
  const name = $("name").value.trim(), why = refusal(name);
  if (why) return set("answered", why);
  if (await answer(name)) $("name").value = "";
});
$("skip").addEventListener("click", () => {
  if (offered) skipped.add(offered.seq);
  set("answered", "");
  showOffer();
});

function follow(name) {
  if (source) source.close();
  model = rateOf = offered = undefined;
  skipped = new Set();
  last = name;
  source = new EventSource(`api/v1/events?model=${encodeURIComponent(name)}`);
  source.addEventListener("node", e => {
    const v = JSON.parse(e.data);
    if (v.started !== node.started) { // samples are numbered anew
      offered = undefined;
      skipped = new Set();
    }
    node = v; showNode(); set("connection", "");
  });
  source.addEventListener("model", e => {
    model = JSON.parse(e.data);
    showModel();
  });
  source.addEventListener("error", () => {
    set("connection", "The connection to edge is lost; reconnecting.");
    $("pills").replaceChildren(make("li", {class: "bad"}, "no answer from edge"));
    if (source.readyState === EventSource.CLOSED) setTimeout(begin, 5000);
  });
}

async function begin() {
  try {
    const answer = await fetch("api/v1/models"), by = Date.parse(answer.headers.get("Date")) - Date.now(); // in whole seconds
    ahead = Math.abs(by) > 2e3 ? by : 0;
    node = await answer.json();
    const wanted = [location.hash.slice(1), last, node.models[0].model]; // the link to the figures sets the hash as well
    follow(wanted.find(n => node.models.some(m => m.model === n)));
    showNode();
  } catch {
    $("pills").replaceChildren(make("li", {class: "bad"}, "no answer from edge"));
    setTimeout(begin, 5000);
  }
}
$("models").addEventListener("change", e => { location.hash = e.target.value; });
addEventListener("hashchange", begin);
addEventListener("resize", () => { if (model) showModel(); });
setInterval(() => { // ages and rates change without events
  if (!node || !source || source.readyState !== EventSource.OPEN) return;
  showNode();
  if (!model) return;
  measure();
  showPresent();
}, 3000);
begin();
