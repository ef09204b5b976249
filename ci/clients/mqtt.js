// Publishes signals with MQTT.js and checks the predictions.
//
//	node mqtt.js rows VERSION       three axes in batches, with protocol 3.1.1 (4) or 5
//	node mqtt.js telegraf           what Telegraf reads and passes on
//	node mqtt.js replay MODEL FILE  what Telegraf passed on once
//	node mqtt.js read MODEL FILE    predictions that another client wrote to a file
'use strict';
const assert = require('node:assert');
const fs = require('node:fs');
const { setTimeout: sleep } = require('node:timers/promises');

// connect returns a client of the broker with a protocol version.
async function connect(protocolVersion) {
  const mqtt = require('mqtt');
  return mqtt.connectAsync('mqtt://127.0.0.1', { protocolVersion, clientId: `mqttjs-${protocolVersion}-${process.pid}` });
}

// collect subscribes to the predictions of a model, and returns their list, which grows.
async function collect(client, topic) {
  const predictions = [];
  client.on('message', (_, payload) => predictions.push(JSON.parse(payload)));
  const granted = await client.subscribeAsync(topic, { qos: 1 });
  assert.strictEqual(granted[0].qos, 1, `the subscription to ${topic}`);
  return predictions;
}

// until waits for a condition, at most 20 seconds.
async function until(condition, what) {
  for (let i = 0; !condition(); i++) {
    assert(i < 400, `waited in vain for ${what}`);
    await sleep(50);
  }
}

// judge fails unless most of the predictions have the expected class.
function judge(name, pairs, least) {
  const right = pairs.filter(([want, got]) => want === got).length;
  console.log(`${name}: ${right} of ${pairs.length} predictions are right`);
  assert(pairs.length >= least, `${name}: ${pairs.length} predictions, want ${least}`);
  assert(right >= 0.9 * pairs.length, `${name}: ${JSON.stringify(pairs)}`);
}

// shapes of the three activities: amplitude and cycles a second.
const shapes = { still: [0.02, 0], walk: [1, 2], shake: [1, 9] };

// batch returns a message with the 32 rows until second t.
function batch(label, t) {
  const [size, hertz] = shapes[label];
  const axis = (phase) => Array.from({ length: 32 }, (_, i) => {
    const at = t - (31 - i) / 64;
    return +(size * Math.sin(2 * Math.PI * hertz * at + phase) + 0.1 * (Math.random() - 0.5)).toFixed(4);
  });
  return { t, x: axis(0), y: axis(1), z: axis(2) };
}

async function rows(version) {
  const client = await connect(version), device = `v${version}`, topic = `js/${device}/acc`;
  const predictions = await collect(client, `edge/ci/motion/prediction/${device}`);
  const options = version === 5
    ? { qos: 2, properties: { contentType: 'application/json', messageExpiryInterval: 60, userProperties: { from: 'ci' } } }
    : { qos: 1 };
  const expected = new Map(); // class by id
  let t = Math.floor(Date.now() / 1000);
  const send = async (times, count, labelled) => {
    for (let i = 0; i < times; i++) {
      for (const label of Object.keys(shapes)) {
        for (let n = 0; n < count; n++) {
          t += 0.5;
          const message = batch(label, t);
          if (labelled) message.label = label;
          else if (n > 0) expected.set(`${device}#${t * 1000}`, label); // its window has two messages of one class
          await client.publishAsync(topic, JSON.stringify(message), options);
        }
      }
    }
  };
  await send(8, 5, true);
  await sleep(1500); // the last minibatch is learnt
  await send(1, 6, false);
  const found = () => predictions.filter((p) => expected.has(p.id) && !p.learned);
  await until(() => found().length >= expected.size, `${expected.size} predictions of ${device}`);
  judge(`MQTT.js, protocol ${version}`, found().map((p) => [expected.get(p.id), p.class]), expected.size);
  await client.endAsync();
}

// judgeStates judges what a model said of the last 80 rows of a machine: 40 of run, 40 of
// idle. A prediction of rows of both, the first of each state, may be either.
function judgeStates(name, predictions) {
  const classes = predictions.map((p) => p.class);
  judge(name, ['run', 'run', 'run', 'idle', 'idle', 'idle'].map((want, i) => [want, classes[i < 3 ? i + 1 : i + 2]]), 6);
}

// replay publishes recorded lines: states run and idle, the last 80 lines without.
async function replay(model, file) {
  const client = await connect(4), predictions = await collect(client, `edge/ci/${model}/prediction`);
  const lines = fs.readFileSync(file, 'utf8').trim().split('\n');
  const publish = async (some) => { for (const line of some) await client.publishAsync(`telegraf/${model}`, line + '\n', { qos: 1 }); };
  await publish(lines.slice(0, -80));
  await sleep(1500); // the last minibatch is learnt
  const before = predictions.length;
  await publish(lines.slice(-80));
  await until(() => predictions.length - before >= 8, `8 predictions of ${model}`);
  judgeStates(`recorded messages of Telegraf, ${model}`, predictions.slice(before));
  await client.endAsync();
}

// telegraf publishes what Telegraf reads: blocks of 40 rows, the last two without a state.
async function telegraf() {
  const client = await connect(4), all = {};
  client.on('message', (topic, payload) => (all[topic.split('/')[2]] ||= []).push(JSON.parse(payload)));
  await client.subscribeAsync(['edge/ci/influx/prediction', 'edge/ci/json/prediction'], { qos: 1 });
  const before = {};
  for (let n = 0; n < 320; n++) {
    const runs = n % 80 < 40, some = () => 0.05 * Math.random();
    const row = { x: +((runs ? 1 : 0.02) * Math.sin(1.1 * n) + some()).toFixed(3), y: +((runs ? 0.5 : 0.02) * Math.cos(0.4 * n) + some()).toFixed(3) };
    if (n < 240) row.state = runs ? 'run' : 'idle';
    if (n === 240) {
      await sleep(1500);
      for (const model of ['influx', 'json']) before[model] = (all[model] || []).length;
    }
    await client.publishAsync('machine/raw', JSON.stringify(row), { qos: 1 });
    await sleep(20); // a time each
  }
  for (const model of ['influx', 'json']) {
    const rest = () => (all[model] || []).slice(before[model]);
    await until(() => rest().length >= 8, `8 predictions of ${model}`);
    judgeStates(`Telegraf, ${model}`, rest());
  }
  await client.endAsync();
}

// The flow of Node-RED writes what it reads: the predictions of two blocks without a state.
async function read(model, file) {
  const lines = () => (fs.existsSync(file) ? fs.readFileSync(file, 'utf8').trim().split('\n') : []);
  await until(() => lines().some((line) => line === 'end'), `the end of the flow in ${file}`);
  const all = lines(), rest = all.slice(all.indexOf('taught') + 1, all.indexOf('end')).map((line) => JSON.parse(line));
  assert(rest.every((p) => p.model === model));
  const classes = rest.map((p) => p.class), half = classes.length / 2;
  judge('Node-RED', classes.map((got, i) => [i < half ? 'run' : 'idle', got]).filter((_, i) => i > 0 && i !== half), 10); // the first of each has rows of two states
}

const [what, ...args] = process.argv.slice(2);
const run = { rows: () => rows(+args[0]), replay: () => replay(...args), telegraf, read: () => read(...args) }[what];
run().then(() => process.exit(0), (err) => { console.error(err.message); process.exit(1); });
