"use strict";
// Answers in the panel: a message, what it waited for, orders side by side, latencies, violations.
// All text goes through `textContent`: what a trace says is never read as markup.

function made(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "text") element.textContent = value;
    else if (name === "class") element.className = value;
    else if (name === "click") element.addEventListener("click", value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** A table that is moved within its frame where the panel is narrower. */
function tableOf(head, rows, how = "") {
  return made("div", { class: "wide" }, made("table", { class: how }, ...(head ? [head] : []), ...rows));
}

const count = (number) => Math.round(number).toLocaleString("en");

/** What each member knew of a message, and when. */
function fatesOf(run, table) {
  const name = (row) => run.kinds[table.kind[row]];
  const sent = { time: null, destinations: null, priority: null, size: null };
  const members = run.names.map((_, node) => ({ node, transmits: [], receives: [], losses: [], discards: [], renumbered: [] }));
  for (let row = 0; row < table.rows; row++) {
    const time = table.time[row], kind = name(row), member = members[table.node[row]];
    if (!member) continue;
    const detail = detailOf(table, row);
    if (kind === "send") {
      sent.time ??= time; sent.destinations ??= destinationsOf(table, row);
      sent.size ??= table.size[row] >= 0 ? table.size[row] : null;
      sent.priority ??= table.priority[row] === NO_PRIORITY ? null : table.priority[row];
    } else if (kind === "transmit" || kind === "retransmit") member.transmits.push({ time, detail, again: kind === "retransmit" });
    else if (kind === "receive") member.receives.push({ time });
    else if (kind === "lose") member.losses.push({ time, detail });
    else if (kind === "discard") member.discards.push({ time, detail });
    else if (kind === "renumber") { member.renumbered.push({ time, detail }); sent.destinations = destinationsOf(table, row) ?? sent.destinations; }
    else if (["accept", "preack", "ack", "deliver", "durable"].includes(kind)) member[kind] ??= { time, detail };
  }
  return { sent, members };
}

/** A duration in three digits; where a run has steps and no times, in steps. */
function shortTime(time) {
  if (stepSize) { const steps = Math.round(time / stepSize); return `${steps} ${Math.abs(steps) === 1 ? "step" : "steps"}`; }
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
    if (Math.abs(time) >= size) return `${(time / size).toPrecision(Math.abs(time) >= 1000 * size ? 4 : 3)} ${unit}`;
  }
  return `${Math.round(time)} ns`;
}

const WHY_STOPPED = { gap: "it noticed that a message is missing", told: "another member told it that a message is missing",
  hearsay: "a unit of another member showed that a message is missing", view: "the members agree on the next view" };
const LEVEL_WORDS = { accept: "accepted", preack: "pre-acknowledged", ack: "acknowledged", deliver: "delivered" };

/** How much a recovery took, in words. */
function howText(how) {
  const found = /^(\d+) asked, (\d+) inserted$/.exec(how ?? "");
  if (!found) return how ? `: ${how}` : "";
  return found[1] === "0" ? ": it lacked nothing" : `: it asked for what it lacked (${found[1]}), and put ${found[2]} into their places in the order`;
}

/** Who was to have a message: nobody who came into the group only later, and never heard of it. */
function destinationsThen(spans, { sent, members }) {
  const heard = (member) => member.receives.length || member.losses.length || member.accept || member.deliver;
  const there = (node) => sent.time === null || !spans.lanes[node] || spans.lanes[node].from <= sent.time;
  if (sent.destinations) return sent.destinations.filter((node) => !members[node] || heard(members[node]) || there(node));
  return members.filter((member) => member.accept || member.deliver).map((member) => member.node);
}

/** Sentences about what a message waited for, longest first; `levels`: those that this run has. */
function waitsOf(run, spans, source, levels, fates) {
  const { sent, members } = fates, found = [];
  const destinations = destinationsThen(spans, fates);
  const names = (nodes) => nodes.map((node) => run.names[node]).join(", ");
  const lost = (member) => {
    const causes = member.losses.map((loss) => loss.detail).filter((detail) => detail && detail !== "lost");
    return `${run.names[member.node]} lost it${causes.length ? ` (${causes.join(", ")})` : ""}`;
  };
  const last = (level) => destinations.map((node) => members[node]).filter((member) => member?.[level])
    .reduce((one, other) => (!one || other[level].time > one[level].time ? other : one), null);
  const add = (time, text) => { if (time > 0) found.push({ time, text: `${shortTime(time)}: ${text}` }); };
  for (const node of destinations) {
    const member = members[node];
    if (!member) continue;
    const arrived = member.receives[0]?.time;
    if (member.losses.length && arrived !== undefined && member.losses[0].time < arrived) {
      add(arrived - member.losses[0].time, `${lost(member)} and needed another copy`);
    } else if (member.losses.length && arrived === undefined) {
      found.push({ time: Infinity, text: `${lost(member)} and never received it` });
    } else if (member.losses.length === 0 && arrived === undefined && !member.accept && sent.time !== null) {
      found.push({ time: Infinity, text: `${run.names[node]} never received it: no arrival and no loss is recorded` });
    }
    if (member.accept && arrived !== undefined) {
      add(member.accept.time - arrived, `${run.names[node]} had it, but could not accept it before what ${run.names[source]} sent earlier (a gap), or before a recovery`);
    }
    for (const span of spans.stopped) {
      const end = member.deliver?.time ?? Infinity;
      if (span.node === node && sent.time !== null && span.to > sent.time && span.from < end) {
        const time = Math.min(span.to, end) - Math.max(span.from, sent.time);
        add(time === Infinity ? 0 : time, `${run.names[node]} was ${span.kind === "block" ? "blocked" : "frozen"}${span.why ? ` (${WHY_STOPPED[span.why] ?? span.why})` : ""} until ${span.to === Infinity ? "the end" : clockText(span.to)}${howText(span.how)}`);
      }
    }
  }
  for (const [level, next] of [["accept", "pre-acknowledged"], ["preack", "acknowledged"]]) {
    const missing = destinations.filter((node) => !members[node]?.[level]);
    const slowest = last(level);
    if (missing.length && members.some((member) => member.accept)) {
      found.push({ time: Infinity, text: `it could not be ${next} everywhere: ${names(missing)} never ${LEVEL_WORDS[level]} it` });
    } else if (slowest && destinations.length > 1) {
      const others = destinations.filter((node) => node !== slowest.node).map((node) => members[node][level].time);
      add(slowest[level].time - Math.max(...others), `all waited for ${run.names[slowest.node]}, the last to have it ${LEVEL_WORDS[level]}; only then could it be ${next} everywhere`);
    }
  }
  for (const [level, before, known] of [["ack", "preack", "had it pre-acknowledged"], ["deliver", "ack", ""]]) {
    const missing = destinations.filter((node) => members[node]?.[before] && !members[node][level]);
    if (!levels.includes(level) || !missing.length) continue;
    found.push({ time: Infinity, text: `${names(missing)} never ${LEVEL_WORDS[level]} it${known ? `: they did not learn from all others that these ${known}` : ""}` });
  }
  const order = found.sort((one, other) => other.time - one.time);
  return order.slice(0, 12).map((each) => each.text).concat(order.length > 12 ? [`… and ${order.length - 12} shorter waits`] : []);
}

/** Why a message could not be sent earlier: what let it go happened at its sender in the same instant. What it waited before it was sent is not recorded. */
async function heldBack(view, source, seq, table) {
  const { run } = view, send = table.kind.indexOf(run.kinds.indexOf("send"));
  if (send < 0) return [];
  const time = table.time[send], who = run.names[source], instant = await view.source.events(run.key, time, time + 1);
  let why = null, latest;
  const room = []; // own packets that were known to be with all in this instant: each lets one more go
  for (let row = 0; row < instant.rows; row++) {
    const kind = run.kinds[instant.kind[row]], own = instant.source[row] === source;
    if (instant.node[row] !== source) continue;
    if (kind === "send" && own && instant.seq[row] === seq) break;
    if (kind === "send" && own) latest = room.shift() ?? latest;
    if (kind === "resume") why = `${who} was frozen, and numbers nothing meanwhile: it could be sent only when ${who} went on`;
    else if (kind === "unblock" || kind === "view") why = `${who} numbers nothing while the view changes: it could be sent only when ${kind === "view" ? `view ${instant.seq[row] < 0 ? "" : instant.seq[row]}`.trim() + " began" : "enough could be reached again"}`;
    else if (kind === "preack" && own && !run.recorded) room.push(instant.seq[row]);
  }
  const known = room[0] ?? latest;
  if (!why && known !== undefined) why = `the window of ${who}: it could be sent only when ${who} knew that ${messageName(run, source, known)} was with all its destinations`;
  return why ? [why] : [];
}

class Panel {
  constructor(element, app) { this.element = element; this.app = app; this.stories = new StoryPanel(this); }
  show(...children) { this.element.replaceChildren(...children); this.app.words.mark(this.element); this.element.scrollTop = 0; }

  /** The run itself: how it ended, what it has, latencies. */
  overview(view) {
    const { run, summary } = view;
    const facts = made("dl");
    const fact = (name, value) => { if (value !== null && value !== undefined && value !== "") facts.append(made("dt", { text: name }), made("dd", { text: String(value) })); };
    fact("run", run.name); fact("protocol", run.protocol); fact("rules", run.rules); fact("seed", run.seed); fact("members", run.nodes);
    fact("events", count(run.rows)); fact("duration", clockText(run.duration)); fact("ended", run.ended);
    if (run.left_out) fact("not in this file", `${count(run.left_out)} events`);
    if (run.recorded) fact("recorded by", run.recorded.map((node) => run.names[node]).join(", "));
    if (!run.one_clock) fact("clocks", "several: times of different members cannot be compared");
    if (summary?.possible) {
      for (const [name, number] of Object.entries(summary.totals)) fact(name, count(number));
      if (summary.unmarked) fact("not marked", `${count(summary.unmarked)} stops and views: the first ${count(summary.marks.length)} are drawn`);
    }
    const children = [...this.violations(view), made("h2", { text: "The run" }), facts, ...this.offers(view)];
    if (summary && !summary.possible) children.push(made("p", { text: `Latencies, orders and stops are not computed for a run of ${count(run.rows)} events; zoom in to see events one by one.` }));
    if (this.app.differences) children.unshift(...differencesPanel(this.app, this.app.differences));
    if (summary?.possible) children.push(...this.histogram(summary), ...overTime(run, summary));
    this.show(...children);
  }
  /** The story of the run, or of its first loss. */
  offers(view) {
    const { run, summary } = view;
    const button = (text, make) => made("p", {}, made("button", { text, click: () => this.app.guarded(make) }));
    if (run.story) return [button("Go through it step by step", () => this.app.tell(() => storyOfSchedule(view)))];
    return summary?.totals?.lost ? [button("Tell the story of a loss", () => this.app.tellFirstLoss(view))] : [];
  }
  histogram(summary) {
    const levels = Object.entries(summary.latencies);
    if (!levels.length) return [];
    const rows = levels.map(([level, found]) => made("tr", {}, made("td", { text: LEVEL_WORDS[level] }),
      ...[found.p50, found.p99, found.most].map((time) => made("td", { text: shortTime(time) })), made("td", { text: count(found.count) })));
    const head = made("tr", {}, ...["from the send", "p50", "p99", "most", "times"].map((text) => made("th", { text })));
    return [made("h3", { text: "Latencies by level" }), levelBars(summary, levels), tableOf(head, rows)];
  }
  /** An event that names no message. */
  event(view, cursor) {
    const { run } = view, facts = made("dl");
    for (const [name, value] of [["time", clockText(cursor.time)], ["member", run.names[cursor.node]], ["event", run.kinds[cursor.kind]], ["detail", cursor.detail],
      ["transmission", cursor.transmission >= 0 ? cursor.transmission : null]]) {
      if (value !== null) facts.append(made("dt", { text: name }), made("dd", { text: String(value) }));
    }
    this.show(this.back(view), made("h2", { text: "An event without a message" }), facts);
  }
  back(view) { return made("button", { class: "link", text: "← the run", click: () => this.app.chose(view, null) }); }

  /** A message: its path, when each member knew what, what it waited for, its place in each member's order. */
  async message(view, source, seq) {
    const { run } = view;
    const asked = this.asked = Symbol("question");
    const [table, order] = await Promise.all([view.source.message(run.key, source, seq), view.source.order(run.key, source, seq, 3)]);
    const held = await heldBack(view, source, seq, table);
    if (asked !== this.asked) return;
    const name = messageName(run, source, seq);
    if (!table.rows) { this.show(this.back(view), made("h2", { text: name }), made("p", { text: "No event of this run names it." })); return; }
    this.show(this.back(view), made("h2", { text: `Message ${name}` }), ...this.path(view, source, seq, { table, order, held }),
      ...(order.possible ? [made("h3", { text: "Its place in each member's order" }), this.logs(view, [order], new Set([`${source}#${seq}`]), null, "here")] : []));
  }
  /** Where a message went, when each member knew what, and what it waited for. */
  path(view, source, seq, { table, order, held }) {
    const { run } = view, fates = fatesOf(run, table), { sent } = fates;
    const first = sent.time ?? table.time[0], latest = table.time[table.rows - 1];
    const facts = made("dl");
    const fact = (label, value) => { if (value !== null && value !== undefined) facts.append(made("dt", { text: label }), made("dd", { text: String(value) })); };
    fact("sent", sent.time === null ? "not recorded" : `${clockText(sent.time)} by ${run.names[source]}`);
    if (sent.destinations) fact("to", sent.destinations.length === run.nodes ? "all" : sent.destinations.map((node) => run.names[node]).join(", "));
    fact("priority", sent.priority); fact("size", sent.size === null ? null : `${count(sent.size)} ${sent.size === 1 ? "byte" : "bytes"}`);
    const copies = fates.members.flatMap((member) => member.transmits.filter((each) => each.detail === "copy").map((each) => `${run.names[member.node]} at ${clockText(each.time)}`));
    if (copies.length) fact("copies", copies.slice(0, 10).join("; ") + (copies.length > 10 ? ` and ${copies.length - 10} more` : ""));
    const waits = [...held, ...waitsOf(run, view.painter.spans, source, Object.keys(view.summary?.latencies ?? {}), fates)];
    return [facts,
      made("p", {}, made("button", { class: "link", text: "tell its story", click: () => this.app.guarded(() => this.app.tell(() => storyOfLoss(view, source, seq))) })),
      made("p", {}, made("button", { class: "link", text: "show all of it", click: () => view.show(first - 0.15 * (latest - first) - 500, latest + 0.15 * (latest - first) + 500) })),
      made("h3", { text: "When each member knew what, after the send" }), this.fates(view, fates, order, first),
      made("h3", { text: "What it waited for" }), waits.length ? made("ul", {}, ...waits.map((text) => made("li", { text }))) : made("p", { text: "Nothing: each step followed at once." })];
  }
  fates(view, { sent, members }, order, first) {
    const { run } = view, destinations = destinationsThen(view.painter.spans, { sent, members });
    const onDisk = members.some((member) => member.durable);
    const head = made("tr", {}, ...["member", "received", "accepted", "pre-ack", "ack", "delivered", ...(onDisk ? ["on disk"] : []), "place"].map((text) => made("th", { text })));
    const rows = [], latest = {};
    for (const level of ["accept", "preack", "ack", "deliver", "durable"]) latest[level] = Math.max(...members.map((member) => member[level]?.time ?? -1));
    for (const member of members) {
      const seen = member.receives.length || member.losses.length || member.accept || member.preack || member.ack || member.deliver || member.durable || member.transmits.length;
      if (!seen && !destinations.includes(member.node)) continue;
      const cell = (level) => made("td", { text: member[level] ? shortTime(member[level].time - first) : "–", ...(member[level]?.time === latest[level] ? { class: "late", title: "the last" } : {}) });
      const got = member.receives[0] ? shortTime(member.receives[0].time - first) : member.losses.length ? "lost" : "–";
      const lost = member.losses.length ? { class: "lost", title: member.losses.map((loss) => `lost at ${clockText(loss.time - first)}: ${loss.detail ?? ""}`).join("; ") } : {};
      const mark = member.losses.length && member.receives.length ? `✗ ${got}` : got;
      const place = order.orders?.[member.node]?.place;
      rows.push(made("tr", {}, made("td", { text: run.names[member.node] }), made("td", { text: mark, ...lost }), cell("accept"), cell("preack"), cell("ack"), cell("deliver"), ...(onDisk ? [cell("durable")] : []),
        made("td", { text: place === null || place === undefined ? "–" : count(place) })));
    }
    return tableOf(head, rows);
  }
  /** Members' orders beside each other, near some messages; what is far away is cut out. */
  logs(view, answers, messages, nodes, mark) {
    const { run } = view, columns = [];
    for (const node of nodes ?? run.names.keys()) {
      const places = new Map();
      for (const answer of answers) {
        const order = answer.orders[node];
        if (!order || order.place === null) continue;
        order.messages.forEach((message, at) => places.set(order.first + at, message));
      }
      const length = answers[0].orders[node]?.length ?? 0;
      const column = made("div", {}, made("strong", { text: run.names[node] ?? `E${node + 1}` }));
      let before = -1;
      for (const place of [...places.keys()].sort((one, other) => one - other)) {
        if (place > before + 1) column.append(made("span", { class: "gap", text: `… ${count(place - before - 1)}` }));
        const [source, seq, time] = places.get(place), own = messages.has(`${source}#${seq}`);
        column.append(made("span", { class: own ? mark : "", title: `${count(place)}: ${clockText(time)}`, text: messageName(run, source, seq) }));
        before = place;
      }
      if (!places.size) column.append(made("span", { class: "gap", text: `not among its ${count(length)}` }));
      else if (before < length - 1) column.append(made("span", { class: "gap", text: `… ${count(length - 1 - before)}` }));
      columns.push(column);
    }
    return made("div", { class: "logs" }, ...columns);
  }

  /** The list of violations, for the run or for all. */
  violations(view) {
    const { witnesses } = this.app;
    if (!witnesses.length) return [];
    const list = witnesses.slice(0, 50).map((witness, at) => made("li", {}, made("button", { class: "link", text: `${witness.breaks}: ${witness.sentence}`, click: () => this.app.openWitness(at) })));
    return [made("h2", { class: "bad", text: `${count(witnesses.length)} witness${witnesses.length === 1 ? "" : "es"} of violations` }), made("ul", {}, ...list)];
  }
  async witness(view, witness, at) {
    const asked = this.asked = Symbol("question");
    const named = witness.messages.slice(0, 6);
    const answers = await Promise.all(named.map(([source, seq]) => view.source.order(view.run.key, source, seq, 3)));
    const tables = await Promise.all(named.map(([source, seq]) => view.source.message(view.run.key, source, seq)));
    const helds = await Promise.all(named.map(([source, seq], place) => heldBack(view, source, seq, tables[place])));
    if (asked !== this.asked) return;
    const messages = new Set(witness.messages.map(([source, seq]) => `${source}#${seq}`));
    const total = this.app.witnesses.length;
    // One member alone disagrees with nobody: the others are shown beside it.
    const nodes = new Set(witness.nodes).size > 1 ? [...new Set(witness.nodes)].filter((node) => node < view.run.nodes) : null;
    const names = witness.messages.map(([source, seq]) => made("button", { class: "link", text: messageName(view.run, source, seq), click: () => this.app.ask(view, source, seq) }));
    const steps = made("p", {}, made("button", { text: "‹ before", click: () => this.app.openWitness((at + total - 1) % total) }), ` ${at + 1} of ${total} `,
      made("button", { text: "next ›", click: () => this.app.openWitness((at + 1) % total) }));
    this.show(this.back(view), made("h2", { class: "bad", text: `Violated: ${witness.breaks}` }), ...(total > 1 ? [steps] : []),
      made("p", { class: "rule", text: witness.rule || "A property that this version has no words for." }), made("p", { text: this.app.named(view.run, witness.sentence, witness.messages) }),
      ...(names.length ? [made("h3", { text: "Its messages" }), made("p", {}, ...names.flatMap((each, place) => (place ? [" → ", each] : [each])))] : []),
      ...cycleDrawing(view.run, witness),
      ...(answers.length && answers[0].possible ? [made("h3", { text: nodes ? "The logs that disagree, side by side" : "The logs of all members, side by side" }), this.logs(view, answers, messages, nodes, "witness")] : []),
      ...named.slice(0, 3).flatMap(([source, seq], place) => (tables[place].rows ? [made("h2", { text: `Message ${messageName(view.run, source, seq)}` }), ...this.path(view, source, seq, { table: tables[place], order: answers[place], held: helds[place] })] : [])));
  }
  help() {
    const keys = [["wheel, pinch, + −", "zoom"], ["drag, arrow keys", "move"], ["0", "the whole run"], ["[ ]", "event before, event behind"], ["Enter", "ask for the message of the event"],
      ["/", "search"], ["Escape", "from the search to the picture; back to the run"], ["x", "leave out times in which nothing happens"], ["n p", "in a story: the next step, the step before"], ["click", "ask; in a dense part: zoom in"]];
    const signs = [["▼", "send"], ["■", "delivered to the application"], ["♦", "received, on the lane; below it, from top to bottom: accepted, pre-acknowledged, acknowledged"],
      ["✗", "lost: the broken arrow ends before the lane"], ["orange span", "the member is frozen to agree on an order, or a view, anew"], ["ring", "two runs: the other run has not got this, or elsewhere"], ["upright gold line", "a run of priorities ends here"], ["⋯", "nothing happens so long; it is left out"], ["dark lane", "not a member yet, or no longer"], ["E2 starts again", "the process that was E2 runs again, as another member, with the log of its disk"],
      ["columns", "many events: their height is the logarithm of how many, their colours are the kinds"]];
    const find = [["E2#14", "that message"], ["E2#14 ack", "where it is acknowledged next"], ["lose E3", "the next loss at E3"], ["from E3 deliver", "the next delivery of a message of E3"], ["1.5ms", "that time"], ["\"abc", "the messages of a schedule whose payload begins so; a trace has no payloads"]];
    const list = (pairs) => made("dl", {}, ...pairs.flatMap(([one, two]) => [made("dt", { text: one }), made("dd", { text: two })]));
    this.show(made("h2", { text: "Keys" }), list(keys), made("h2", { text: "Signs" }), list(signs), made("h2", { text: "Search" }), list(find));
  }
}
