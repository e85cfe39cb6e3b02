"use strict";
// What the picture is made of: colours, times as words, names, and the spans in which members take part or are frozen.

function coloursOf(element) {
  const style = getComputedStyle(element);
  const names = ["back", "lane", "line", "text", "dim", "edge", "send", "transmit", "arrive", "lose", "level", "deliver",
    "recovery", "other", "data", "copy", "control", "stopped", "absent", "chosen"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

const SHORT_WHY = { gap: "it noticed a gap", told: "told by another", hearsay: "others have more", view: "a view change" };

const HOW_ENDED = { crash: "crashes", leave: "leaves", exclude: "is excluded", abort: "gives up" };

/** Kinds of events whose source and number are not those of a message. */
const NOT_OF_A_MESSAGE = new Set(["view", "state", "exclude", "restart"]);

let stepSize = 0; // nanoseconds of a step, where the run is a schedule: it has steps, and no times

function clockText(time, step = 0) {
  if (stepSize) return `step ${Math.max(0, Math.round(time / stepSize))}`;
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
    if (Math.abs(time) >= size) {
      const digits = step ? Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9)) : 3 - Math.min(3, Math.floor(Math.log10(Math.abs(time) / size) + 1e-9));
      return `${(time / size).toFixed(Math.min(9, digits))} ${unit}`;
    }
  }
  return `${Math.round(time)} ns`;
}

function stepOf(span, most) {
  const raw = span / most, power = 10 ** Math.floor(Math.log10(raw));
  for (const factor of [1, 2, 5, 10]) if (power * factor >= raw) return Math.max(1, power * factor);
  return power * 10;
}

function messageName(run, source, seq) {
  return run.labels?.[`${source}#${seq}`] ?? `${run.names[source] ?? `E${source + 1}`}#${seq}`;
}

/** When lanes begin and end, when members are stopped, and which views there were. */
function spansOf(run, marks) {
  const lanes = run.names.map(() => ({ from: 0, to: Infinity, how: "" }));
  const stopped = [], views = [], open = new Map(), first = new Set();
  for (const mark of marks) {
    const lane = lanes[mark.node];
    if (!lane) continue;
    if (mark.kind === "stop" || mark.kind === "block") {
      if (!open.has(mark.node)) open.set(mark.node, mark);
    } else if (mark.kind === "resume" || mark.kind === "unblock") {
      const begun = open.get(mark.node);
      if (begun) stopped.push({ node: mark.node, from: begun.time, to: mark.time, why: begun.detail, how: mark.detail, kind: begun.kind });
      open.delete(mark.node);
    } else if (mark.kind === "view") {
      if (mark.seq !== null && !first.has(mark.node)) { first.add(mark.node); lane.from = mark.time; }
      views.push(mark);
    } else if (mark.kind === "restart") {
      views.push(mark);
    } else if (mark.kind in HOW_ENDED && mark.time < lane.to) {
      lane.to = mark.time; lane.how = HOW_ENDED[mark.kind];
    }
  }
  endWithViews(lanes, views.filter((view) => view.kind === "view"));
  for (const [node, begun] of open) stopped.push({ node, from: begun.time, to: Math.max(begun.time, lanes[node].to), why: begun.detail, how: null, kind: begun.kind });
  return { lanes, stopped, views };
}

/** Who was killed could not say so: its lane ends with the first view that it is not in any more. */
function endWithViews(lanes, views) {
  const first = new Map();
  for (const view of views) if (view.seq !== null && view.members && !(first.get(view.seq)?.time <= view.time)) first.set(view.seq, view);
  const order = [...first.values()].sort((one, other) => one.seq - other.seq), members = order.map((view) => view.members.split(",").map(Number));
  for (const [node, lane] of lanes.entries()) {
    const last = members.findLastIndex((each) => each.includes(node)), next = last < 0 ? undefined : order[last + 1];
    if (last < 0 && order[0]?.time === 0) lane.from = Infinity; // it was no founder, and never came in
    if (next && next.time < lane.to) { lane.to = next.time; lane.how = `not in view ${next.seq}`; }
  }
}
