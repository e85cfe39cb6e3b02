"use strict";
// Charts in the panel: latencies by level, logs and losses over time.

const LEVEL_COLOURS = { accept: "--send", preack: "--level", ack: "--recovery", deliver: "--deliver" };
const SVG_SPACE = "http://www.w3.org/2000/svg";

/** An SVG element, and a function that adds parts to it. */
function chart(height, label) {
  const svg = document.createElementNS(SVG_SPACE, "svg");
  for (const [name, value] of Object.entries({ viewBox: `0 0 340 ${height}`, class: "histogram", role: "img", "aria-label": label })) svg.setAttribute(name, value);
  const add = (tag, attributes, text, title) => {
    const element = document.createElementNS(SVG_SPACE, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    if (title) { const words = document.createElementNS(SVG_SPACE, "title"); words.textContent = title; element.append(words); }
    svg.append(element);
    return element;
  };
  return { svg, add };
}

/** The histogram of latencies; `levels`: pairs of a level and what was found of it. */
function levelBars(summary, levels) {
  const { svg, add } = chart(124, "Histogram of latencies by level, on a logarithmic scale");
  const used = summary.edges.slice(1).map((_, bin) => levels.some(([, found]) => found.bins[bin] > 0));
  const first = used.indexOf(true), last = used.lastIndexOf(true) + 1, wide = 340 / Math.max(1, last - first);
  const top = Math.max(...levels.flatMap(([, found]) => found.bins));
  for (const [place, [level, found]] of levels.entries()) {
    for (let bin = first; bin < last; bin++) {
      if (!found.bins[bin]) continue;
      const tall = Math.max(1, 88 * found.bins[bin] / top), slot = wide / levels.length;
      add("rect", { x: (bin - first) * wide + place * slot, y: 92 - tall, width: Math.max(1, slot - 0.5), height: tall, fill: `var(${LEVEL_COLOURS[level]})` }, undefined,
        `${LEVEL_WORDS[level]}: ${count(found.bins[bin])} from ${clockText(summary.edges[bin])} to ${clockText(summary.edges[bin + 1])}`);
    }
    const left = [0, 72, 182, 276][place];
    add("rect", { x: left, y: 111, width: 8, height: 8, fill: `var(${LEVEL_COLOURS[level]})` });
    add("text", { x: left + 11, y: 119 }, LEVEL_WORDS[level]);
  }
  add("text", { x: 0, y: 104 }, clockText(summary.edges[first]));
  add("text", { x: 340, y: 104, "text-anchor": "end" }, clockText(summary.edges[last]));
  return svg;
}

/** How long members' logs are, and how much is lost, over the run. */
function overTime(run, summary) {
  const { held, lost } = summary, most = Math.max(1, ...held.flat()), losses = Math.max(...lost), bins = lost.length, wide = 340 / bins;
  if (!held.length || (most <= 1 && !losses)) return [];
  const { svg, add } = chart(106, `Messages that members had accepted and not delivered, over time: at most ${most}. Losses, over time: at most ${losses} in a column.`);
  const time = (bin) => clockText(run.duration * bin / bins);
  for (const [bin, number] of lost.entries()) {
    if (number) add("rect", { x: bin * wide, y: 86 - 24 * number / losses, width: Math.max(1, wide - 0.5), height: 24 * number / losses, fill: "var(--lose)" }, undefined, `${count(number)} lost from ${time(bin)} to ${time(bin + 1)}`);
  }
  for (const [node, counts] of held.entries()) {
    const points = counts.map((number, bin) => `${((bin + 1) * wide).toFixed(1)},${(60 - 56 * number / most).toFixed(1)}`).join(" ");
    add("polyline", { points: `0,60 ${points}`, fill: "none", stroke: "var(--deliver)", "stroke-width": 1.2, opacity: held.length > 8 ? 0.35 : 0.7 }, undefined, `${run.names[node]}: at most ${count(Math.max(...counts))}`);
  }
  add("line", { x1: 0, x2: 340, y1: 86.5, y2: 86.5, stroke: "var(--edge)" });
  add("text", { x: 0, y: 99 }, "0"); add("text", { x: 340, y: 99, "text-anchor": "end" }, clockText(run.duration));
  add("text", { x: 170, y: 99, "text-anchor": "middle" }, `lines: at most ${count(most)}; columns: at most ${count(losses)}`);
  return [made("h3", { text: "Accepted and not delivered, by member (lines); losses (columns)" }), svg];
}

/** The cycle of a violated order: each arrow is a member, which delivered the one message before the other. */
function cycleDrawing(run, witness) {
  const { messages, nodes } = witness, number = messages.length;
  if (number < 2 || nodes.length !== number || !["no_cycle", "same_order"].includes(witness.breaks)) return [];
  const names = messages.map(([source, seq]) => messageName(run, source, seq));
  const { svg, add } = chart(210, nodes.map((node, at) => `${run.names[node]} delivered ${names[at]} before ${names[(at + 1) % number]}`).join(", "));
  const place = (at) => { const angle = 2 * Math.PI * at / number - Math.PI / (number === 2 ? 1 : 2); return [170 + 105 * Math.cos(angle), 105 + 70 * Math.sin(angle)]; };
  for (const at of messages.keys()) {
    const [x0, y0] = place(at), [x1, y1] = place((at + 1) % number), [mx, my] = [(x0 + x1) / 2, (y0 + y1) / 2], long = Math.hypot(x1 - x0, y1 - y0);
    // Bent to the left of its way, so that two arrows between the same messages lie apart.
    const [bx, by] = [mx + (y1 - y0) / long * 34, my - (x1 - x0) / long * 34];
    const end = Math.hypot(x1 - bx, y1 - by), [ux, uy] = [(x1 - bx) / end, (y1 - by) / end], [ex, ey] = [x1 - ux * 30, y1 - uy * 24];
    const begin = Math.hypot(bx - x0, by - y0), [sx, sy] = [x0 + (bx - x0) / begin * 28, y0 + (by - y0) / begin * 20];
    add("path", { d: `M${sx} ${sy}Q${bx} ${by} ${ex} ${ey}`, fill: "none", stroke: "var(--lose)", "stroke-width": 1.6 });
    add("path", { d: `M${ex + ux * 7} ${ey + uy * 7}L${ex - uy * 4} ${ey + ux * 4}L${ex + uy * 4} ${ey - ux * 4}z`, fill: "var(--lose)" });
    const label = add("text", { x: mx + (bx - mx) * 1.05, y: my + (by - my) * 1.05 + 4, "text-anchor": "middle" }, `at ${run.names[nodes[at]]}`);
    label.style.fill = "var(--text)";
  }
  for (const [at, name] of names.entries()) {
    const [x, y] = place(at), text = add("text", { x, y: y + 5, "text-anchor": "middle" }, name);
    text.style.fontSize = "13px"; text.style.fontWeight = "700"; text.style.fill = "var(--text)";
  }
  return [made("h3", { text: "The cycle: an arrow is a member that delivered the one before the other" }), svg];
}
