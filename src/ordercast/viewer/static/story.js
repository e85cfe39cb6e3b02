"use strict";
// A story is gone through step by step, forwards and backwards: the steps of a schedule with the machines' states, or
// the events around one loss of a run, told in sentences.

const MOST_TOLD = 400; // events of a loss that are told one by one

/** What steps mean, for those who have never seen the protocol. Levels and the like are explained by the glossary. */
const MEANING = {
  send: "The message gets its number, and goes out.",
  lose: "It does not arrive. Nobody knows that yet: it shows when something later does arrive.",
  resume: "All lack nothing any more: the member goes on, in the order that was agreed on.",
  copy: "What was lost is sent again.", request: "It asks for what it lacks, and for nothing else.",
  reply: "It tells the others all that it has received, in its order.", done: "It tells the others that it lacks nothing.",
  view: "From here on these are the members.", crash: "The member is gone.",
};

const EXPLAINED = { accept: "accepted", preack: "pre-acknowledged", ack: "acknowledged", deliver: "delivered", stop: "frozen" };

/** A story: `steps` of {time, words, note, effects, changes}, and `states` before the first step, if they are known. */
class Story {
  constructor(view, told) { Object.assign(this, { view, states: null, broken: "", about: "", messages: [] }, told); this.at = -1; }
  /** The members that a step is about. */
  nodesAt(at) {
    const words = this.steps[at].words.split(/[ ,:]+/);
    return this.view.run.names.flatMap((name, node) => (words.includes(name) || words[0] === `E${node + 1}` ? [node] : []));
  }
  /** The next step with a note, forwards or backwards; where there is none, the one that is shown. */
  explained(by) {
    for (let at = this.at + by; at >= 0 && at < this.steps.length; at += by) if (this.steps[at].note) return at;
    return this.at;
  }
  /** Some steps have notes, and others have not. */
  get jumps() { return this.steps.some((step) => step.note) && !this.steps.every((step) => step.note); }
  get ended() { return this.at >= this.steps.length - 1; }
  /** The machines' variables behind a step. */
  statesAt(at) {
    const states = this.states.map((values) => ({ ...values }));
    for (const step of this.steps.slice(0, at + 1)) {
      for (const [node, name, , after] of step.changes) if (after === null) delete states[node][name]; else states[node][name] = after;
    }
    return states;
  }
}

/** The story of a run that a schedule made. */
function storyOfSchedule(view) {
  const { story } = view.run;
  const steps = story.steps.map((step, at) => ({ ...step, time: (at + 1) * view.run.step }));
  return new Story(view, { ...story, steps });
}

/** The story of a message that was lost: all that concerns it, and the recovery, if there was one. */
async function storyOfLoss(view, source, seq) {
  const { run } = view, message = await view.source.message(run.key, source, seq);
  if (!message.rows) throw new Error(`no event of this run names ${messageName(run, source, seq)}`);
  const end = message.time[message.rows - 1] + 1;
  const table = await view.source.events(run.key, message.time[0], end);
  const steps = toldSteps(view.heard.words, run, table, source, seq), name = messageName(run, source, seq);
  if (table.cut) steps.push({ time: table.time[table.rows - 1], words: "… and so on", note: `The first ${count(table.rows)} events are told.`, effects: [], changes: [] });
  return new Story(view, { title: `What happened to ${name}`, about: `From its send to its last delivery; other messages only where the group freezes.`, steps, messages: [`${source}#${seq}`] });
}

/** Events in sentences; those of one kind and message that follow each other are one. */
function toldSteps(words_, run, table, source, seq) {
  const steps = [], together = 3; // steps apart that are still told as one
  let frozen = 0;
  for (let row = 0; row < table.rows && steps.length < MOST_TOLD; row++) {
    const kind = run.kinds[table.kind[row]], detail = detailOf(table, row), own = table.source[row] === source && table.seq[row] === seq;
    const recovers = ["stop", "resume", "view", "crash", "exclude", "abort", "restart"].includes(kind);
    const says = kind === "transmit" && ["copy", "request", "reset", "reply", "done"].includes(detail);
    if (!recovers && !(says && frozen) && !(own && kind !== "transmit" && kind !== "retransmit") && !(own && detail === "copy")) continue;
    frozen += kind === "stop" ? 1 : kind === "resume" ? -1 : 0;
    const who = run.names[table.node[row]], name = table.source[row] >= 0 && !NOT_OF_A_MESSAGE.has(kind) ? messageName(run, table.source[row], table.seq[row]) : "";
    const what = { send: "sends", receive: "receives", lose: "does not receive", accept: "accepts", preack: "pre-acknowledges", ack: "acknowledges", deliver: "delivers", discard: "discards",
      stop: "freezes", resume: "goes on", transmit: detail === "copy" ? "sends a copy of" : `sends a ${detail}`, crash: "crashes", abort: "gives the group up", view: "enters a view", exclude: "is excluded", restart: "starts again with its log" }[kind] ?? kind;
    const why = kind === "stop" ? WHY_STOPPED[detail] ?? detail : kind === "resume" ? howText(detail).slice(2) : ["lose", "discard"].includes(kind) ? detail : null;
    const words = [what, name, why ? `(${why})` : ""].filter(Boolean).join(" ");
    const same = steps.slice(-together).find((step) => step.what === words && !step.members.includes(who));
    if (same) { same.members.push(who); same.words = `${same.members.join(", ")}: ${words}`; same.time = table.time[row]; continue; }
    const note = EXPLAINED[kind] ? words_.meaning(EXPLAINED[kind]) : MEANING[kind === "transmit" ? detail : kind] ?? "";
    steps.push({ time: table.time[row], words: `${who} ${words}`, members: [who], note, effects: [], changes: [], what: words });
  }
  return steps.sort((one, other) => one.time - other.time);
}

/** Why an order came out as it did: what each member had when it froze, what it lacked, and what puts each pair in order. */
function reasonsOf(run, table) {
  const members = run.names.map((_, node) => ({ node, log: [], froze: null, got: new Map(), to: new Set(), orders: [], resumed: null }));
  const sent = new Set(); // messages whose destinations are known
  for (let row = 0; row < table.rows; row++) {
    const kind = run.kinds[table.kind[row]], member = members[table.node[row]], name = `${table.source[row]}#${table.seq[row]}`;
    if (!member) continue;
    if (kind === "stop") member.froze ??= table.time[row];
    else if (kind === "resume") member.resumed ??= table.time[row];
    else if (kind === "discard" && detailOf(table, row) !== "duplicate") {
      if (member.froze === null) member.log = member.log.filter((each) => each !== name); else member.got.delete(name);
    } else if ((kind === "receive" || kind === "accept") && table.source[row] >= 0 && (!sent.has(name) || member.to.has(name))) {
      if ((member.froze === null || member.froze === table.time[row]) && !member.log.includes(name)) member.log.push(name);
      else if (!member.got.has(name)) member.got.set(name, table.time[row]);
    } else if (kind === "send") {
      sent.add(name);
      for (const node of destinationsOf(table, row) ?? members.keys()) members[node]?.to.add(name);
    } else if (kind === "deliver") member.orders.push(name);
  }
  if (!members.some((member) => member.froze !== null)) return null;
  const known = new Set(members.flatMap((member) => member.log));
  for (const member of members) member.lacked = [...known].filter((name) => member.to.has(name) && !member.log.includes(name));
  // Members deliver what is for them: the pairs of all their orders, each once.
  const neighbours = new Map();
  for (const { orders } of members) for (let at = 1; at < orders.length; at++) neighbours.set(`${orders[at - 1]} ${orders[at]}`, [orders[at - 1], orders[at]]);
  const pairs = [];
  for (const [one, other] of neighbours.values()) {
    const both = members.filter((member) => member.log.includes(one) && member.log.includes(other));
    const so = both.filter((member) => member.log.indexOf(one) < member.log.indexOf(other)), not = both.filter((member) => !so.includes(member));
    const at = members.filter(({ orders }) => orders.includes(one) && orders.indexOf(one) < orders.indexOf(other));
    pairs.push({ one, other, at: at.map((member) => member.node), so: so.map((member) => member.node), not: not.map((member) => member.node), sender: one.split("#")[0] === other.split("#")[0] });
  }
  return { members: members.filter((member) => member.log.length || member.froze !== null), pairs, agreed: haveOneOrder(members.map((member) => member.orders)) };
}

/** Whether there is one order that all of some orders are parts of: then there always is one that nothing else must precede. */
function haveOneOrder(orders) {
  const before = new Map(), after = new Map();
  for (const order of orders) {
    order.forEach((name, at) => {
      if (!before.has(name)) { before.set(name, 0); after.set(name, []); }
      if (at) { before.set(name, before.get(name) + 1); after.get(order[at - 1]).push(name); }
    });
  }
  const free = [...before.keys()].filter((name) => !before.get(name));
  let taken = 0;
  for (; taken < free.length; taken++) {
    for (const name of after.get(free[taken])) { before.set(name, before.get(name) - 1); if (!before.get(name)) free.push(name); }
  }
  return taken === before.size;
}

/** What the panel shows of a story. */
class StoryPanel {
  constructor(panel) { this.panel = panel; }
  show(story) {
    const { view, steps, at } = story, { run } = view, step = steps[at];
    const go = (to, text, label) => {
      const button = made("button", { text, "aria-label": label, title: label, click: () => this.panel.app.goTo(to) });
      button.disabled = to < -1 || to >= steps.length || to === at;
      return button;
    };
    const place = made("p", { class: "steps" }, go(-1, "«", "To the beginning"), go(at - 1, "‹ back", "The step before (p)"),
      made("span", { text: at < 0 ? `${steps.length} steps` : `step ${at + 1} of ${steps.length}` }), go(at + 1, "next ›", "The next step (n)"), go(steps.length - 1, "»", "To the end"));
    const jumps = [[-1, "‹ explained", "The step before that is explained (P)"], [1, "explained ›", "The next step that is explained (N)"]].map(([by, text, label]) => go(story.explained(by), text, label));
    if (story.jumps) place.append(made("span", { class: "jumps" }, ...jumps));
    const children = [this.panel.back(view), made("h2", { text: story.title }), place];
    if (at < 0) children.push(...this.beginning(story));
    else {
      children.push(made("p", { class: "words", text: this.panel.app.named(run, step.words) }));
      if (step.note) children.push(made("p", { class: "note", text: step.note }));
      if (story.free_from !== undefined && at >= story.free_from) children.push(made("p", { class: "dim", text: "From here on nothing is lost." }));
      if (step.effects.length) children.push(made("ul", {}, ...step.effects.map((text) => made("li", { text }))));
      if (story.broken && story.ended) children.push(made("p", { class: "rule" }, made("strong", { text: "A promise is broken: " }), story.broken));
      const reasons = story.table && reasonsOf(run, until(story.table, step.time));
      if (reasons) children.push(...this.reasons(view, reasons));
      if (story.states) children.push(...this.states(story));
    }
    this.panel.show(...children);
  }
  beginning(story) {
    const hint = `Go through it with n and p, or with the buttons${story.jumps ? "; with N and P from one step that is explained to the next" : ""}. What comes after the step is pale in the picture.`;
    const broken = story.broken ? [made("p", { class: "rule" }, made("strong", { text: "It ends with a broken promise: " }), story.broken)] : [];
    const protocol = PROTOCOLS[story.view.run.protocol];
    return [made("p", { text: story.about }), ...broken, ...(protocol ? [made("h3", { text: `What ${story.view.run.protocol.toUpperCase()} promises` }), made("p", { text: protocol })] : []),
      made("p", { class: "dim", text: hint })];
  }
  /** What differs from the step before, and the states of all machines. */
  states(story) {
    const { steps, at, view } = story, { changes } = steps[at];
    const named = (name) => {
      const cell = made("td", { text: name.replaceAll("_", " ") }), meaning = story.variables?.[name];
      return meaning ? this.panel.app.words.explain(cell, meaning) : cell;
    };
    const rows = changes.map(([node, name, before, after]) => made("tr", {}, made("td", { text: view.run.names[node] }), named(name), made("td", { text: before ?? "–" }), made("td", { class: "late", text: after ?? "–" })));
    const head = made("tr", {}, ...["member", "variable", "before", "now"].map((text) => made("th", { text })));
    const differs = changes.length ? tableOf(head, rows, "texts") : made("p", { class: "dim", text: story.broken && story.ended ? "The step that breaks a promise has no state behind it: those of before it are shown." : "No machine's state changes." });
    const changed = new Set(changes.map(([node, name]) => `${node}/${name}`));
    const all = story.statesAt(at).map((values, node) => {
      const table = tableOf(null, Object.entries(values).map(([name, value]) => made("tr", changed.has(`${node}/${name}`) ? { class: "changed" } : {}, named(name), made("td", { text: value }))), "texts");
      const details = made("details", {}, made("summary", { text: `All of ${view.run.names[node]}'s state` }), table);
      details.open = this.open?.has(node) ?? false;
      details.addEventListener("toggle", () => { (this.open ??= new Set())[details.open ? "add" : "delete"](node); });
      return details;
    });
    return [made("h3", { text: "What differs from the step before" }), differs, made("div", {}, ...all)];
  }
  /** Who froze with what, who lacked what, and why the order is as it is. */
  reasons(view, { members, pairs, agreed }) {
    const { run } = view, name = (message) => messageName(run, ...message.split("#").map(Number));
    const names = (messages) => messages.map(name).join(" ") || "nothing", who = (nodes) => nodes.map((node) => run.names[node]).join(", ");
    const lacks = (member) => member.lacked.map((message) => name(message) + (member.got.has(message) ? ` (until ${clockText(member.got.get(message))})` : "")).join(" ") || "nothing";
    const rows = members.map((member) => made("tr", {}, made("td", { text: run.names[member.node] }), made("td", { text: member.froze === null ? "not frozen yet" : names(member.log) }),
      made("td", { class: member.lacked.some((message) => !member.got.has(message)) ? "lost" : "", text: member.froze === null ? "" : lacks(member) }), made("td", { text: names(member.orders) })));
    const head = made("tr", {}, ...["member", "had, in this order, when it froze", "lacked", "delivered"].map((text) => made("th", { text })));
    const found = [made("h3", { text: "Who had what, and who lacked what" }), tableOf(head, rows, "texts")];
    if (!pairs.length) return found;
    const most = 60, because = pairs.slice(0, most).map(({ one, other, at, so, not, sender }) => {
      if (!agreed) return `${name(one)} before ${name(other)}: so delivered by ${who(at)}`;
      if (so.length && not.length) return `${name(one)} before ${name(other)}: ${who(so)} had them so, and ${who(not)} the other way round`;
      if (so.length) return `${name(one)} before ${name(other)}: ${who(so)} had ${so.length > 1 ? "both in this order" : "them in this order"}`;
      if (sender) return `${name(one)} before ${name(other)}: they are of one sender, in the order of their numbers`;
      if (not.length) return `${name(one)} before ${name(other)}, although ${who(not)} had them the other way round`;
      return `${name(one)} before ${name(other)}: nobody had both when it froze; what nothing else puts in order is sorted by sender`;
    });
    return [...found, made("h3", { text: agreed ? "Why the order came out as it did" : "The orders of delivery contradict each other" }), made("ul", {}, ...because.map((text) => made("li", { text }))),
      ...(pairs.length > most ? [made("p", { class: "dim", text: `and ${count(pairs.length - most)} more pairs` })] : [])];
  }
}

function until(table, time) {
  const rows = [];
  for (let row = 0; row < table.rows && table.time[row] <= time; row++) rows.push(row);
  return taken(table, rows);
}

/** What each protocol promises, in the words of its page. */
const PROTOCOLS = {
  po: "Every member delivers every message once, and the messages of one sender in the order in which they were sent.",
  spo: "A message goes to any part of the group. Each destination delivers it once, and the messages of one sender in the order in which they were sent.",
  to: "All members deliver all messages in one order.",
  st: "A message goes to any part of the group, and all destinations that two messages have in common deliver them in the same order. All members hear one channel, on which each may miss something. Who notices that it lacks a message freezes; all exchange what they have, compute one order from it, and go on when nobody lacks anything.",
  prito: "All members deliver all messages in one order, and within a run of messages the urgent ones come first.",
  prio: "All members deliver all messages in one order, and urgent ones overtake others in it, but never for ever.",
  sequencer: "All members deliver all messages in one order: one of them, the sequencer, gives each message its place.",
};
