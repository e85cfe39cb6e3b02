"use strict";
// Two runs side by side: what one has and the other has not, or has elsewhere.

/** For each run: what became of each message at each member. */
function fatesIn(run, table) {
  const lost = new Map(), orders = run.names.map(() => []), times = new Map();
  for (let row = 0; row < table.rows; row++) {
    const kind = run.kinds[table.kind[row]], name = `${table.source[row]}#${table.seq[row]}`, node = table.node[row];
    if (table.source[row] < 0 || table.seq[row] < 0) continue;
    if (kind === "lose" && !lost.has(`${node}/${name}`)) lost.set(`${node}/${name}`, table.time[row]);
    if (kind === "deliver" && !times.has(`${node}/${name}`)) { orders[node]?.push(name); times.set(`${node}/${name}`, table.time[row]); }
  }
  return { lost, orders, times };
}

/** The differences of two runs, by time: each is of one kind, at one member, about one message, with marks in both. */
function differencesOf(runs, tables) {
  const fates = runs.map((run, at) => fatesIn(run, tables[at])), found = [], marks = [new Set(), new Set()];
  const codes = runs.map((run) => ({ lose: run.kinds.indexOf("lose"), deliver: run.kinds.indexOf("deliver") }));
  const add = (at, kind, key, time, text) => {
    const [node, name] = key.split("/");
    marks[at].add(`${codes[at][kind]}/${node}/${name}`);
    found.push({ at, kind, node: Number(node), name, time, text });
  };
  for (const at of [0, 1]) {
    const [own, other] = [fates[at], fates[1 - at]];
    for (const [key, time] of own.lost) if (!other.lost.has(key)) add(at, "lose", key, time, "lost only here");
    for (const [key, time] of own.times) if (!other.times.has(key)) add(at, "deliver", key, time, "delivered only here");
  }
  for (let node = 0; node < Math.min(...runs.map((run) => run.nodes)); node++) {
    const common = fates.map((fate, at) => fate.orders[node].filter((name) => fates[1 - at].times.has(`${node}/${name}`)));
    const before = common.map((order) => new Map(order.map((name, place) => [name, place ? order[place - 1] : ""])));
    for (const name of common[0]) {
      if (before[0].get(name) === before[1].get(name)) continue;
      const key = `${node}/${name}`;
      marks[1].add(`${codes[1].deliver}/${key}`);
      add(0, "deliver", key, fates[0].times.get(key), "behind another message in the other run");
    }
  }
  found.sort((one, other) => one.time - other.time);
  return { found, marks };
}

/** What is said of several messages at once: of one kind, at one member, at one time. */
function groupsOf(found) {
  const groups = new Map();
  for (const each of found) {
    const key = [each.time, each.at, each.node, each.text].join("/");
    if (!groups.has(key)) groups.set(key, { ...each, names: [] });
    groups.get(key).names.push(each.name);
  }
  return [...groups.values()];
}

/** What the panel says of the differences. */
function differencesPanel(app, { found, marks, cut }) {
  const runs = app.views.map((view) => view.run), most = 60, mostNamed = 8, groups = groupsOf(found);
  const said = ({ at, node, names, time, text }) => {
    const named = names.slice(0, mostNamed).map((name) => messageName(runs[at], ...name.split("#").map(Number))).join(" ");
    const others = names.length > mostNamed ? ` and ${count(names.length - mostNamed)} more` : "";
    return `${clockText(time)}: ${named}${others} ${names.length > 1 ? "are" : "is"} ${text}, at ${runs[at].names[node]}, in ${at ? "the lower" : "the upper"} run`;
  };
  const list = groups.slice(0, most).map((each) => made("li", {}, made("button", { class: "link", text: said(each), click: () => app.views[each.at].centre(each.time) })));
  const count_ = (kind, at) => found.filter((each) => each.kind === kind && each.at === at).length;
  const head = found.length ? `${count(found.length)} difference${found.length === 1 ? "" : "s"}, in rings` : "No difference";
  const lines = found.length ? [`lost only above: ${count(count_("lose", 0))}, only below: ${count(count_("lose", 1))}`, `delivered only below: ${count(count_("deliver", 1))}; only above, or in another order: ${count(count_("deliver", 0))}`]
    : ["Both runs lose and deliver the same messages at the same members, in the same orders. Times may differ."];
  const unlisted = groups.slice(most).reduce((sum, group) => sum + group.names.length, 0);
  const more = unlisted ? [made("p", { class: "dim", text: `${count(unlisted)} more are in rings only.` })] : [];
  const part = cut ? [made("p", { class: "dim", text: `Only what is in sight is compared, and its first ${count(MOST_IN_RANGE)} events: zoom in for more.` })] : [];
  return [made("h2", { text: head }), ...lines.map((text) => made("p", { text })), ...part, made("ul", {}, ...list), ...more];
}
