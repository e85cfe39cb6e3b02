"use strict";
// A range of a run as JSON for Perfetto: a track for each member, with arrows from transmissions to arrivals.

/** Chrome's trace event format, which Perfetto opens; times are in microseconds. */
function perfettoOf(run, table) {
  const events = [], name = (row) => (table.source[row] >= 0 && table.seq[row] >= 0 ? messageName(run, table.source[row], table.seq[row]) : "");
  for (const [node, text] of run.names.entries()) {
    events.push({ ph: "M", name: "process_name", pid: node + 1, args: { name: text } }, { ph: "M", name: "process_sort_index", pid: node + 1, args: { sort_index: node } });
  }
  const stopped = new Map(), codes = Object.fromEntries(run.kinds.map((kind, code) => [kind, code]));
  for (let row = 0; row < table.rows; row++) {
    const kind = run.kinds[table.kind[row]], pid = table.node[row] + 1, ts = table.time[row] / 1000, detail = detailOf(table, row);
    const place = { pid, tid: 1, ts, cat: kind }, args = detail === null ? {} : { detail };
    if (kind === "stop" || kind === "block") stopped.set(pid, { ts, kind, detail });
    else if ((kind === "resume" || kind === "unblock") && stopped.has(pid)) {
      const begun = stopped.get(pid);
      stopped.delete(pid);
      events.push({ ...place, ph: "X", name: begun.kind === "stop" ? "frozen" : "blocked", ts: begun.ts, dur: ts - begun.ts, tid: 2, args: { why: begun.detail, how: detail } });
    } else events.push({ ...place, ph: "X", dur: 0.001, name: `${kind} ${name(row)}`.trim(), args });
    const flight = table.transmission[row];
    if (flight < 0) continue;
    if (table.kind[row] === codes.transmit) events.push({ ...place, ph: "s", id: flight, name: "flight", cat: "flight" });
    else if (table.kind[row] === codes.receive || table.kind[row] === codes.hear) events.push({ ...place, ph: "f", bp: "e", id: flight, name: "flight", cat: "flight" });
  }
  for (const [pid, begun] of stopped) events.push({ ph: "i", s: "p", pid, tid: 2, ts: begun.ts, name: `${begun.kind}, until behind this range`, cat: begun.kind });
  return { displayTimeUnit: "ns", otherData: { run: run.name, protocol: run.protocol, left_out: table.cut }, traceEvents: events };
}
