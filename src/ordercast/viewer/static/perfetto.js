"use strict";
// A range of a run as JSON for Perfetto: a track for each member, with arrows from transmissions to arrivals.

/**
 * Chrome's trace event format, which Perfetto opens; times are in microseconds. Numbers of threads are unique in the
 * file, and the ends of an arrow stand right behind their slices: its importer asks for both. What is of one kind
 * in one instant at one member is one slice, since slices of one instant lie on each other, and not very many may.
 */
function perfettoOf(runs, tables) {
  const found = { displayTimeUnit: "ns", otherData: { run: runs.map((run) => run.name).join(", "), protocol: runs.map((run) => run.protocol).join(", "), left_out: tables.reduce((sum, table) => sum + table.cut, 0) }, traceEvents: [] };
  let members = 0, arrows = 0;
  for (const [at, run] of runs.entries()) {
    const where = runs.length > 1 ? (at ? ", lower run" : ", upper run") : "";
    for (const event of tracksOf(run, tables[at], { where, members, arrows })) found.traceEvents.push(event);
    members += run.nodes; arrows += tables[at].rows;
  }
  return found;
}

/** The events of one run; `before`: how many members and arrows other runs have, and what stands behind the names of members. */
function tracksOf(run, table, before) {
  const eventsOf = (node) => 2 * (before.members + node) + 1, frozenOf = (node) => eventsOf(node) + 1, pidOf = (node) => before.members + node + 1;
  const events = [], arrows = arrowsOf(run, table, before.arrows), slices = new Map(), stopped = new Map();
  for (const [node, text] of run.names.entries()) {
    const pid = pidOf(node), named = (name, args, tid) => events.push({ ph: "M", name, pid, ...(tid ? { tid } : {}), args });
    named("process_name", { name: text + before.where }); named("process_sort_index", { sort_index: pid - 1 });
    named("thread_name", { name: "events" }, eventsOf(node)); named("thread_name", { name: "frozen" }, frozenOf(node));
  }
  for (let row = 0; row < table.rows; row++) {
    const kind = run.kinds[table.kind[row]], node = table.node[row], pid = pidOf(node), ts = table.time[row] / 1000, detail = detailOf(table, row);
    if (kind === "stop" || kind === "block") { if (!stopped.has(node)) stopped.set(node, { ts, kind, detail }); continue; }
    if ((kind === "resume" || kind === "unblock") && stopped.has(node)) {
      const begun = stopped.get(node);
      stopped.delete(node);
      events.push({ ph: "X", name: begun.kind === "stop" ? "frozen" : "blocked", cat: begun.kind, pid, tid: frozenOf(node), ts: begun.ts, dur: (table.time[row] - begun.ts * 1000) / 1000, args: { why: begun.detail, how: detail } });
      continue;
    }
    const key = `${node}/${table.time[row]}/${kind}`;
    if (!slices.has(key)) slices.set(key, { place: { cat: kind, pid, tid: eventsOf(node), ts }, messages: [], details: new Set(), ends: [] });
    const slice = slices.get(key);
    if (table.source[row] >= 0 && table.seq[row] >= 0) slice.messages.push(messageName(run, table.source[row], table.seq[row]));
    if (detail !== null) slice.details.add(detail);
    slice.ends.push(...(arrows.get(row) ?? []));
  }
  for (const { place, messages, details, ends } of slices.values()) {
    const more = messages.length > 1 ? ` and ${messages.length - 1} more` : "", args = {};
    if (messages.length > 1) args.messages = messages.join(" ");
    if (details.size) args.detail = [...details].join(", ");
    events.push({ ph: "X", name: `${place.cat} ${messages[0] ?? ""}${more}`.trim(), ...place, dur: 0.001, args });
    for (const [ph, id] of ends) events.push({ ph, ...(ph === "f" ? { bp: "e" } : {}), id, name: "flight", ...place, cat: "flight" });
  }
  for (const [node, begun] of stopped) events.push({ ph: "i", s: "t", name: `${begun.kind}, until behind this range`, cat: begun.kind, pid: pidOf(node), tid: frozenOf(node), ts: begun.ts, args: { why: begun.detail } });
  return events;
}

/** By row: the ends of arrows there, each as a phase and the number of its arrow; of those that have both ends in the range. */
function arrowsOf(run, table, before) {
  const codes = Object.fromEntries(run.kinds.map((kind, code) => [kind, code])), flights = flightsOf(table, codes, Boolean(run.recorded)), found = new Map();
  const add = (row, end) => { if (!found.has(row)) found.set(row, []); found.get(row).push(end); };
  for (let at = 0; at < flights.length; at += 2) {
    const start = flights[at], end = flights[at + 1];
    if (start < 0 || table.kind[end] === codes.lose || table.time[end] < table.time[start]) continue;
    add(start, ["s", before + at / 2 + 1]); add(end, ["f", before + at / 2 + 1]);
  }
  return found;
}
