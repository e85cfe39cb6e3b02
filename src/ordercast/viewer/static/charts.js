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
