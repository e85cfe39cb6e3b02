"use strict";
// Where events come from: the server that this page came from, or the page itself. Both answer the same questions.

const MOST_EVENTS = 2000; // of a tile that is drawn event by event
const BINS = 128;
const MOST_IN_RANGE = 50000; // events of a range that are read at once
const NO_PRIORITY = -2147483648;

const COLUMNS = ["time", "node", "kind", "source", "seq", "priority", "size", "detail", "destinations", "transmission", "begins_run"];

/** Some rows of a table of events. */
function taken(table, rows) {
  const found = { ...table, rows: rows.length };
  for (const name of COLUMNS) found[name] = table[name].constructor.from(rows, (row) => table[name][row]);
  return found;
}

function detailOf(table, row) {
  return table.detail[row] < 0 ? null : table.strings[table.detail[row]];
}

function destinationsOf(table, row) {
  const text = table.destinations[row] < 0 ? null : table.sets[table.destinations[row]];
  return text === null ? null : text === "" ? [] : text.split(",").map(Number);
}

class ServerSource {
  async ask(name, query) {
    const words = new URLSearchParams(query);
    let answer;
    try {
      answer = await fetch(`${name}?${words}`);
    } catch {
      throw new Error("the server does not answer; start ordercast view again");
    }
    if (!answer.ok) {
      const said = await answer.json().catch(() => ({}));
      throw Object.assign(new Error(said.error || `the server answered ${answer.status}`), { gone: answer.status === 410 });
    }
    return answer;
  }
  async json(name, query) { return (await this.ask(name, query)).json(); }
  async table(name, query) { return decoded(await (await this.ask(name, query)).arrayBuffer()); }
  run(key) { return this.json("run", { run: key }); }
  grown(key) { return this.json("grown", { run: key }); }
  summary(key) { return this.json("summary", { run: key }); }
  tile(key, exponent, index, sends) { return this.table("tile", { run: key, exponent, index, sends: sends ? 1 : 0 }); }
  message(key, source, seq) { return this.table("message", { run: key, source, seq }); }
  order(key, source, seq, reach) { return this.json("order", { run: key, source, seq, reach }); }
  find(key, wanted) { return this.table("find", { run: key, ...wanted }); }
  events(key, begin, end) { return this.table("events", { run: key, begin: Math.floor(begin), end: Math.ceil(end) }); }
}

/** The first row whose time is not below a time. */
function firstAt(times, time) {
  let low = 0, high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < time) low = middle + 1; else high = middle;
  }
  return low;
}

class FileSource {
  constructor(embedded) {
    this.parts = new Map();
    for (const part of embedded) {
      const text = atob(part.events);
      const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
      this.parts.set(part.run.key, { ...part, table: decoded(bytes.buffer) });
    }
  }
  part(key) {
    const found = this.parts.get(key);
    if (!found) throw new Error(`the run ${key} is not in this file`);
    return found;
  }
  async run(key) { return { ...this.part(key).run, left_out: this.part(key).left_out }; }
  async summary(key) { return this.part(key).summary; }
  async tile(key, exponent, index) {
    const { table, run } = this.part(key);
    const begin = index * 2 ** exponent, end = begin + 2 ** exponent;
    const first = firstAt(table.time, begin), last = firstAt(table.time, end);
    const head = { begin, end, total: last - first };
    if (last - first > MOST_EVENTS) {
      const classes = run.classes.length;
      const counts = new Uint32Array(run.nodes * classes * BINS);
      for (let row = first; row < last; row++) {
        const bin = Math.floor((table.time[row] - begin) / (end - begin) * BINS);
        counts[(table.node[row] * classes + run.class_of_kind[table.kind[row]]) * BINS + bin]++;
      }
      return { ...head, counts, nodes: run.nodes, classes, bins: BINS, estimated: false };
    }
    const rows = [];
    const from = firstAt(table.time, begin - run.margin), to = firstAt(table.time, end + run.margin);
    const crowded = to - from > 5 * MOST_EVENTS;
    for (let row = from; row < to; row++) {
      const inside = row >= first && row < last;
      if (inside || (!crowded && table.transmission[row] >= 0)) rows.push(row);
    }
    return { ...head, ...taken(table, rows) };
  }
  async events(key, begin, end) {
    const { table } = this.part(key);
    const first = firstAt(table.time, Math.floor(begin)), last = firstAt(table.time, Math.ceil(end)), to = Math.min(last, first + MOST_IN_RANGE);
    return { ...taken(table, Array.from({ length: to - first }, (_, row) => first + row)), cut: last - to };
  }
  async message(key, source, seq) {
    const { table, run } = this.part(key);
    const foreign = new Set([...NOT_OF_A_MESSAGE].map((kind) => run.kinds.indexOf(kind)));
    const rows = [];
    for (let row = 0; row < table.rows; row++) {
      if (table.seq[row] === seq && table.source[row] === source && !foreign.has(table.kind[row])) rows.push(row);
    }
    return taken(table, rows);
  }
  async order(key, source, seq, reach) {
    const { table, run, delivered_before: before } = this.part(key);
    const deliver = run.kinds.indexOf("deliver");
    const orders = Array.from({ length: run.nodes }, () => []);
    for (let row = 0; row < table.rows; row++) {
      if (table.kind[row] === deliver) orders[table.node[row]].push([table.source[row], table.seq[row], table.time[row]]);
    }
    return {
      possible: true,
      orders: orders.map((messages, node) => {
        const found = messages.findIndex((message) => message[0] === source && message[1] === seq);
        const first = Math.max(0, (found < 0 ? messages.length - 1 : found) - reach);
        return {
          node, length: before[node] + messages.length, place: found < 0 ? null : before[node] + found,
          first: before[node] + first, messages: messages.slice(first, first + 2 * reach + 1),
        };
      }),
    };
  }
  async find(key, wanted) {
    const { table, run } = this.part(key);
    const kind = wanted.kind ? run.kinds.indexOf(wanted.kind) : -1;
    if (wanted.kind && kind < 0) throw new Error(`there is no kind of event ${wanted.kind}`);
    const matches = (row) => (!wanted.kind || table.kind[row] === kind)
      && ["node", "source", "seq"].every((name) => wanted[name] === undefined || table[name][row] === wanted[name]);
    if (wanted.backwards) {
      for (let row = firstAt(table.time, wanted.after) - 1; row >= 0; row--) if (matches(row)) return taken(table, [row]);
    } else {
      for (let row = firstAt(table.time, wanted.after + 1); row < table.rows; row++) if (matches(row)) return taken(table, [row]);
    }
    return taken(table, []);
  }
}

/**
 * The flights of a tile's events: pairs of rows, the transmission (-1: not here) and the arrival or loss.
 * Members that keep records number transmissions each for itself: there the message says what belongs together.
 */
function flightsOf(table, codes, recorded = false) {
  const starts = new Map(), flights = [], seen = new Set();
  const named = (row) => (!recorded ? table.transmission[row] : table.source[row] >= 0 && table.seq[row] >= 0 ? `${table.source[row]}#${table.seq[row]}` : null);
  for (let row = 0; row < table.rows; row++) {
    if (table.kind[row] !== codes.transmit || table.transmission[row] < 0 || named(row) === null) continue;
    if (!starts.has(named(row))) starts.set(named(row), []);
    starts.get(named(row)).push(row);
  }
  // A message is transmitted again as a copy: what arrives left with the latest one before.
  const startOf = (row) => (starts.get(named(row)) ?? []).findLast((start) => table.time[start] <= table.time[row]) ?? -1;
  for (let row = 0; row < table.rows; row++) {
    const kind = table.kind[row], number = table.transmission[row];
    if ((kind !== codes.receive && kind !== codes.hear && kind !== codes.lose) || number < 0) continue;
    const name = number * 65536 + table.node[row];
    if (seen.has(name)) continue;
    seen.add(name);
    flights.push(recorded ? startOf(row) : starts.get(number)?.[0] ?? -1, row);
  }
  return Int32Array.from(flights);
}

const MOST_TILES = 300;

/** The tiles of one run that are here, and the asking for those that are not. */
class Tiles {
  constructor(source, run, changed, failed) {
    this.source = source; this.run = run; this.changed = changed; this.failed = failed;
    this.kept = new Map(); this.asked = new Set();
    this.codes = Object.fromEntries(run.kinds.map((name, code) => [name, code]));
    this.top = Math.max(6, Math.ceil(Math.log2(run.duration + 1)));
  }
  /** The tile, or the nearest larger one that has its events; else null, and it is asked for. */
  get(exponent, index, ask = true) {
    for (let up = 0; exponent + up <= this.top; up++) {
      const tile = this.kept.get(`${exponent + up}/${Math.floor(index / 2 ** up)}`);
      if (tile && (up === 0 || tile.time)) return tile;
    }
    if (ask) this.ask(exponent, index);
    return null;
  }
  /** The run is longer: tiles that new events belong to are asked for again. */
  grow(since) {
    this.top = Math.max(6, Math.ceil(Math.log2(this.run.duration + 1)));
    for (const [name, tile] of this.kept) if (tile.end >= since - this.run.margin) this.kept.delete(name);
  }
  /** From here on events come with what their messages' sends say; those that are here are asked for again. */
  useSends() {
    this.sends = true;
    for (const [name, tile] of this.kept) if (tile.time) this.kept.delete(name);
  }
  /** Any larger tile that covers this one: to be shown meanwhile. */
  larger(exponent, index) {
    for (let up = 1; exponent + up <= this.top; up++) {
      const tile = this.kept.get(`${exponent + up}/${Math.floor(index / 2 ** up)}`);
      if (tile) return tile;
    }
    return null;
  }
  async ask(exponent, index) {
    const name = `${exponent}/${index}`;
    if (this.asked.has(name) || this.asked.size >= 8) return;
    this.asked.add(name);
    try {
      const tile = await this.source.tile(this.run.key, exponent, index, this.sends);
      if (tile.time) tile.flights = flightsOf(tile, this.codes, Boolean(this.run.recorded));
      this.kept.set(name, tile);
      if (this.kept.size > MOST_TILES) this.kept.delete(this.kept.keys().next().value);
    } catch (error) {
      this.failed(error);
      await new Promise((resolve) => setTimeout(resolve, 3000));
    }
    this.asked.delete(name);
    this.changed();
  }
}
