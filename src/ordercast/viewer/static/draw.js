"use strict";
// Draws one run on a canvas: lanes, density where events are many, marks and arrows where they are few.

const AXIS = 22; // pixels of the time axis
const LEAST_LANE = 26;
const STEP_ROWS = 24; // rows of a lane in the picture of a density
const PALE = 0.28; // of what comes after the step of a story
const SATURATED = 16; // a bin with 2**16 events is drawn full

class Painter {
  constructor(run, shown) {
    this.run = run; this.shown = shown; this.spans = spansOf(run, []);
    this.codes = Object.fromEntries(run.kinds.map((name, code) => [name, code]));
  }
  useSummary(summary) { this.spans = spansOf(this.run, summary.marks); }

  /** Draws; returns what was drawn how. `at`: {from, to, width, height, gutter, scroll}; `entries`: spans with their tiles. */
  paint(context, at, entries, chosen) {
    this.context = context; this.at = at; this.chosen = chosen;
    this.lanes = this.run.names.map((_, node) => node).filter((node) => this.shown.members.has(node));
    this.lane = Math.max(LEAST_LANE, (at.height - AXIS) / Math.max(1, this.lanes.length));
    this.place = new Map(this.lanes.map((node, place) => [node, place]));
    this.left = at.clock.place(at.from);
    this.scale = (at.width - at.gutter) / (at.clock.place(at.to) - this.left);
    const c = this.colours;
    context.fillStyle = c.back;
    context.fillRect(0, 0, at.width, at.height);
    context.save();
    context.beginPath(); context.rect(at.gutter, AXIS, at.width - at.gutter, at.height - AXIS); context.clip();
    this.paintLanes();
    this.paintGaps();
    const counted = { single: 0, dense: 0, hidden: 0, estimated: false, missing: 0, labels: [] };
    this.near = this.areNear(entries); this.atStep = []; this.xNow = this.x(this.chosen?.now ?? 0);
    for (const entry of entries) {
      const from = Math.max(entry.from, at.from), to = Math.min(entry.to, at.to);
      if (to <= from) continue;
      if (!entry.tile) counted.missing++;
      else if (entry.tile.time) this.paintEvents(entry.tile, from, to, counted);
      else this.paintDensity(entry.tile, from, to, counted);
    }
    this.paintNow();
    this.written = new Map(); // where there are words, by member: none over another
    this.paintViews();
    this.paintLabels(counted.labels);
    context.restore();
    this.paintAxis();
    this.paintNames();
    return counted;
  }
  x(time) { return this.at.gutter + (this.at.clock.place(time) - this.left) * this.scale; }
  /** Whether an event passes the filters: by member, kind, and destinations of its message. */
  isShown(tile, row) {
    const { shown } = this;
    return this.place.has(tile.node[row]) && shown.classes.has(this.run.classes[this.run.class_of_kind[tile.kind[row]]]) && (!shown.to || this.isTo(tile, row));
  }
  isTo(tile, row) {
    const code = tile.destinations[row];
    if (code < 0 || tile.source[row] < 0) return true;
    const name = this.shown.version;
    if (tile.toName !== name) { tile.toName = name; tile.to = tile.sets.map((text) => text === "" || text.split(",").some((node) => this.shown.to.has(Number(node)))); }
    return tile.to[code];
  }
  y(node) { return AXIS + (this.place.get(node) + 0.42) * this.lane - this.at.scroll; }

  paintLanes() {
    const { context: g, at, colours: c, spans } = this;
    for (const node of this.lanes) {
      const top = AXIS + this.place.get(node) * this.lane - at.scroll;
      if (top > at.height || top + this.lane < AXIS) continue;
      g.fillStyle = this.place.get(node) % 2 ? c.back : c.lane;
      g.fillRect(at.gutter, top, at.width, this.lane);
      const { from, to } = spans.lanes[node];
      const left = from > at.to ? at.width : Math.max(at.gutter, this.x(Math.max(from, 0))), right = Math.min(at.width, to === Infinity ? at.width : this.x(to));
      g.fillStyle = c.absent;
      if (left > at.gutter && from > 0) g.fillRect(at.gutter, top, left - at.gutter, this.lane);
      if (right < at.width) g.fillRect(right, top, at.width - right, this.lane);
      g.fillStyle = c.line;
      if (right > left) g.fillRect(left, this.y(node) - 0.5, right - left, 1);
    }
    g.fillStyle = c.stopped;
    for (const span of spans.stopped) {
      if (span.to < at.from || span.from > at.to || !this.place.has(span.node)) continue;
      const left = Math.max(at.gutter, this.x(span.from)), right = span.to === Infinity ? at.width : Math.min(at.width, this.x(span.to));
      g.fillRect(left, AXIS + this.place.get(span.node) * this.lane - at.scroll + 1, Math.max(1, right - left), this.lane - 2);
    }
    // Behind the end of the run there is nothing, also where another one beside it is longer.
    const end = this.x(Math.max(this.run.duration, this.run.step ? this.run.duration + this.run.step / 2 : 0)) + 6;
    g.fillStyle = c.back;
    if (end < at.width) g.fillRect(Math.max(at.gutter, end), AXIS, at.width, at.height);
  }
  paintViews() {
    const { context: g, at, colours: c, spans } = this;
    g.font = "11px system-ui, sans-serif"; g.textAlign = "left"; g.textBaseline = "top";
    const free = new Map();
    for (const span of spans.stopped) {
      if (span.to < at.from || span.from > at.to || !this.place.has(span.node)) continue;
      const left = Math.max(at.gutter, this.x(span.from)), right = span.to === Infinity ? at.width : this.x(span.to);
      this.paleBehind(span.from);
      const text = span.kind === "block" ? "blocked" : `frozen${span.why ? `: ${SHORT_WHY[span.why] ?? span.why}` : ""}`;
      const wide = g.measureText(text).width, y = AXIS + this.place.get(span.node) * this.lane - at.scroll + 2;
      if (right - left < wide + 6) continue;
      g.fillStyle = c.recovery;
      g.fillText(text, left + 3, y);
      this.isFree(span.node, left + 3 + wide / 2, wide / 2, y + 6);
    }
    for (const view of spans.views) {
      if (view.time < at.from || view.time > at.to || !this.place.has(view.node)) continue;
      this.paleBehind(view.time);
      const x = this.x(view.time), top = AXIS + this.place.get(view.node) * this.lane - at.scroll;
      g.fillStyle = c.deliver; g.fillRect(x - 1, top + 1, 2, this.lane - 2);
      if (x > (free.get(view.node) ?? -1)) {
        const again = view.kind === "restart" && `${this.run.names[view.source] ?? "a member"} starts again, ${view.seq ?? 0} in its log`;
        const text = again || (view.seq === null ? "view" : `view ${view.seq}`);
        const wide = g.measureText(text).width;
        g.fillText(text, x + 4, top + 14);
        this.isFree(view.node, x + 4 + wide / 2, wide / 2, top + 20);
        free.set(view.node, x + 10 + wide);
      }
    }
    for (const [node, lane] of spans.lanes.entries()) {
      if (lane.to < at.from || lane.to > at.to || !this.place.has(node)) continue;
      this.paleBehind(lane.to);
      const x = this.x(lane.to), y = this.y(node);
      g.fillStyle = c.lose; g.fillRect(x - 1.5, y - 9, 3, 18); g.fillText(lane.how, x + 5, y - 6);
    }
    g.globalAlpha = 1;
  }
  /** Words are pale as a whole, if what they are about is behind the step of a story. */
  paleBehind(time) { const now = this.chosen?.now; this.context.globalAlpha = now !== null && now !== undefined && time > now ? PALE : 1; }
  /** In a story: a line at the step, and what is behind it pale. */
  paintNow() {
    const { context: g, at, colours: c } = this, now = this.chosen?.now;
    if (now === null || now === undefined) return;
    const x = this.x(now), edge = this.run.step ? this.x(now + this.run.step / 2) : x + 1;
    g.globalAlpha = 1 - PALE; g.fillStyle = c.back; g.fillRect(edge, AXIS, Math.max(0, at.width - edge), at.height); g.globalAlpha = 1;
    g.fillStyle = c.chosen; g.fillRect(Math.round(x) - 1, AXIS, 2, at.height); // on whole pixels, so that it is sharp
    for (const { how, colour, mark } of this.atStep) {
      const path = new MarkPath();
      this.mark(path, ...mark);
      g.globalAlpha = how === "dim" ? 0.3 : 1;
      path.paint(g, c[colour]);
    }
    g.globalAlpha = 1;
  }
  paintAxis() {
    const { context: g, at, colours: c } = this;
    g.fillStyle = c.back; g.fillRect(0, 0, at.width, AXIS);
    g.font = "11px system-ui, sans-serif"; g.textAlign = "left"; g.textBaseline = "middle"; g.fillStyle = c.dim;
    const step = Math.max(stepSize, stepOf((at.width - at.gutter) / this.scale, Math.max(2, (at.width - at.gutter) / 110)));
    let free = -Infinity;
    for (const [from, to] of at.clock.busy(at.from, at.to)) {
      for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
        const x = this.x(time), text = clockText(time, step);
        const end = x + g.measureText(text).width + 3;
        if (x < free || end > at.width) continue; // none over another, and none cut off
        free = end + 9;
        g.fillRect(x, AXIS - 5, 1, 5);
        g.fillText(text, x + 3, AXIS / 2);
      }
    }
    this.paintGapLabels();
    g.fillStyle = c.edge; g.fillRect(0, AXIS - 1, at.width, 1);
  }
  /** Where time is left out, and is in sight. */
  *gaps() {
    const { at } = this;
    for (const [begin, end] of at.clock.gaps) if (end >= at.from && begin <= at.to) yield [begin, end, Math.max(at.gutter, this.x(begin)), Math.min(at.width, this.x(end))];
  }
  paintGaps() {
    const { context: g, at, colours: c } = this;
    g.fillStyle = c.absent;
    for (const [, , left, right] of this.gaps()) g.fillRect(left, AXIS, right - left, at.height);
  }
  paintGapLabels() {
    const { context: g, at, colours: c } = this;
    let free = -Infinity;
    g.textAlign = "center";
    for (const [begin, end, left, right] of this.gaps()) {
      const text = `⋯ ${clockText(end - begin)}`;
      const half = g.measureText(text).width / 2 + 3, middle = Math.min(Math.max((left + right) / 2, at.gutter + half), at.width - half);
      if (middle - half < free) continue;
      free = middle + half;
      g.fillStyle = c.dim; g.fillText(text, middle, at.height - 8);
    }
    g.textAlign = "left";
  }
  /** Who is the sequencer, or relays, in the middle of the picture. */
  roleNode() {
    const { role } = this.run, middle = (this.at.from + this.at.to) / 2;
    if (!role) return null;
    let node = role.node, latest = -1;
    for (const view of this.spans.views) {
      if (view.time > middle || (view.seq ?? 0) < latest || !view.members) continue;
      latest = view.seq ?? 0; node = Number(view.members.split(",")[0]);
    }
    return node;
  }
  paintNames() {
    const { context: g, at, colours: c } = this;
    g.fillStyle = c.back; g.fillRect(0, 0, at.gutter, at.height);
    g.font = "12px system-ui, sans-serif"; g.textAlign = "right"; g.textBaseline = "middle";
    const first = this.roleNode();
    for (const node of this.lanes) {
      const y = this.y(node);
      if (y < AXIS || y > at.height) continue;
      let name = this.run.names[node];
      while (name.length > 2 && g.measureText(name).width > at.gutter - 10) name = `${name.slice(0, -2)}…`;
      g.fillStyle = this.chosen?.nodes?.has(node) ? c.chosen : c.text;
      g.fillText(name, at.gutter - 6, y);
      if (node === first) { g.fillStyle = c.dim; g.font = "10px system-ui, sans-serif"; g.fillText(at.gutter < 60 ? this.run.role.what.replace("sequencer", "seq.") : this.run.role.what, at.gutter - 6, y + 13); g.font = "12px system-ui, sans-serif"; }
    }
    g.fillStyle = c.edge; g.fillRect(at.gutter - 1, 0, 1, at.height);
  }

  /** The picture of a tile's counts, made once for each filter. */
  densityOf(tile) {
    const name = `${this.shown.version}/${this.theme}`;
    if (tile.picture?.name === name) return tile.picture;
    const { lanes } = this, classes = this.run.classes;
    const canvas = document.createElement("canvas");
    canvas.width = tile.bins; canvas.height = Math.max(1, lanes.length * STEP_ROWS);
    const g = canvas.getContext("2d");
    const sums = new Float64Array(tile.bins + 1), hidden = new Float64Array(tile.bins + 1);
    const kinds = classes.map((label, index) => [index, this.shown.classes.has(label), this.colours[label]]);
    for (let bin = 0; bin < tile.bins; bin++) {
      let all = 0, off = 0;
      for (let node = 0; node < tile.nodes; node++) {
        const place = this.place.get(node);
        let lane = 0;
        for (const [index, on] of kinds) {
          const count = tile.counts[(node * tile.classes + index) * tile.bins + bin];
          if (on && place !== undefined) lane += count; else off += count;
        }
        all += lane;
        if (!lane) continue;
        const tall = Math.max(2, Math.min(1, Math.log2(1 + lane) / SATURATED) * (STEP_ROWS - 2));
        let bottom = (place + 1) * STEP_ROWS - 1;
        for (const [index, on, colour] of kinds) {
          const count = on ? tile.counts[(node * tile.classes + index) * tile.bins + bin] : 0;
          if (!count) continue;
          const part = Math.max(tall * count / lane, this.run.classes[index] === "lose" ? 1 : 0);
          g.fillStyle = colour; g.fillRect(bin, bottom - part, 1, part);
          bottom -= part;
        }
      }
      sums[bin + 1] = sums[bin] + all; hidden[bin + 1] = hidden[bin] + off;
    }
    tile.picture = { name, canvas, sums, hidden };
    return tile.picture;
  }
  paintDensity(tile, from, to, counted) {
    const { context: g, at } = this;
    const picture = this.densityOf(tile);
    g.imageSmoothingEnabled = false;
    // The part that is in sight only: a tile far larger than the window would be scaled beyond what canvases take.
    const share = (time) => (time - tile.begin) / (tile.end - tile.begin) * tile.bins;
    const left = Math.max(0, Math.floor(share(from))), right = Math.min(tile.bins, Math.ceil(share(to)));
    const timeOf = (bin) => tile.begin + bin / tile.bins * (tile.end - tile.begin), tall = this.lanes.length * this.lane;
    const draw = (first, last) => {
      const x = this.x(timeOf(first));
      if (last > first) g.drawImage(picture.canvas, first, 0, last - first, picture.canvas.height, x, AXIS - at.scroll, this.x(timeOf(last)) - x, tall);
    };
    // Where gaps are left out, bin by bin: each is stretched in its own way.
    if (at.clock.gaps.length) for (let bin = left; bin < right; bin++) draw(bin, bin + 1); else draw(left, right);
    counted.dense += picture.sums[right] - picture.sums[left];
    counted.hidden += picture.hidden[right] - picture.hidden[left];
    counted.estimated ||= tile.estimated;
  }

  paintEvents(tile, from, to, counted) {
    const { context: g, at, colours: c, codes, shown, run } = this;
    g.save();
    g.beginPath(); g.rect(this.x(from), AXIS, this.x(to) - this.x(from), at.height); g.clip();
    this.paintFlights(tile, from, to);
    g.restore();
    const size = Math.min(5, Math.max(1.5, this.lane / 14));
    const paths = new Map();
    const first = firstAt(tile.time, from), last = firstAt(tile.time, to);
    let single = 0, hidden = 0;
    const dim = this.chosen?.messages?.size > 0, now = this.chosen?.now ?? -Infinity;
    const near = this.near || this.hasRoom(last - first, this.x(to) - this.x(from));
    for (let row = first; row < last; row++) {
      const node = tile.node[row], kind = tile.kind[row], label = run.classes[run.class_of_kind[kind]];
      if (!this.isShown(tile, row)) { hidden++; continue; }
      single++;
      const x = this.x(tile.time[row]), y = this.y(node);
      const own = dim && this.chosen.messages.has(`${tile.source[row]}#${tile.seq[row]}`);
      const name = `${own ? "own" : dim ? "dim" : ""}/${own ? "chosen" : label}`;
      if (!paths.has(name)) paths.set(name, new MarkPath());
      const path = paths.get(name), big = own ? size * 1.5 : size;
      this.mark(path, kind, label, x, y, big);
      // What is at the step of a story is drawn once more, over what makes all behind it pale.
      if (tile.time[row] <= now && this.xNow - x < 2 * big) this.atStep.push({ how: own ? "own" : dim ? "dim" : "", colour: own ? "chosen" : label, mark: [kind, label, x, y, big] });
      if (tile.begins_run[row]) this.markRun(x, y, size);
      if (this.chosen?.differs?.has(`${kind}/${node}/${tile.source[row]}#${tile.seq[row]}`)) this.markDifference(x, y, size);
      if (near || own) this.label(tile, row, x, y, big, counted.labels);
    }
    for (const [name, path] of paths) {
      const [how, colour] = name.split("/");
      g.globalAlpha = how === "dim" ? 0.3 : 1;
      path.paint(g, c[colour]);
    }
    g.globalAlpha = 1;
    counted.single += single; counted.hidden += hidden;
  }
  /** The sign of an event. */
  mark(path, kind, label, x, y, big) {
    const { codes } = this;
    if (kind === codes.send) path.triangle(x, y - big * 1.6, big * 1.2);
    else if (kind === codes.deliver) path.square(x, y, big);
    else if (kind === codes.lose) path.cross(x, y, big);
    else if (kind === codes.accept) path.dot(x, y + big * 2, big * 0.55);
    else if (kind === codes.preack) path.dot(x, y + big * 3.4, big * 0.55);
    else if (kind === codes.ack) path.dot(x, y + big * 4.8, big * 0.55);
    else if (label === "recovery") path.bar(x, y, big * 1.8);
    else if (kind === codes.receive) path.dot(x, y, big * 0.6);
    else path.dot(x, y, big * 0.4);
  }
  /** Whether so many events have labels in so many pixels. */
  hasRoom(events, pixels) { return events * 12 < pixels * Math.max(1, this.lanes.length); }
  /** Whether all events in sight have labels: some parts may be denser than others. */
  areNear(entries) {
    const number = ({ tile, from, to }) => (tile?.time ? firstAt(tile.time, Math.min(to, this.at.to)) - firstAt(tile.time, Math.max(from, this.at.from)) : tile ? Infinity : 0);
    return this.hasRoom(entries.reduce((sum, entry) => sum + number(entry), 0), this.at.width - this.at.gutter);
  }
  /** Where a run of priorities ends, and the next one begins with a message that is more urgent: an upright line. */
  markRun(x, y, size) { this.context.fillStyle = this.colours.level; this.context.fillRect(x - size - 2, y - size * 3, 1.5, size * 6); }
  /** A ring around what the other run has not, or has elsewhere. */
  markDifference(x, y, size) {
    const { context: g, colours: c } = this, wide = size + 4;
    g.strokeStyle = c.chosen; g.lineWidth = 1.6; g.beginPath();
    for (let at = 0; at <= 16; at++) g[at ? "lineTo" : "moveTo"](x + wide * Math.cos(at * Math.PI / 8), y + wide * Math.sin(at * Math.PI / 8));
    g.stroke(); g.lineWidth = 1;
  }
  /** What stands above a send or a unit of the protocol itself, and below a delivery; several in one place are one label. */
  label(tile, row, x, y, big, labels) {
    const { colours: c, codes, run } = this, kind = tile.kind[row], node = tile.node[row];
    const own = kind === codes.transmit && tile.source[row] < 0;
    if (!own && kind !== codes.send && kind !== codes.deliver) return;
    const priority = own || tile.priority[row] === NO_PRIORITY ? "" : ` !${tile.priority[row]}`;
    const text = own ? detailOf(tile, row) ?? "" : messageName(run, tile.source[row], tile.seq[row]) + priority;
    const place = kind === codes.deliver ? y + big * 2.2 : y - big * (own ? 2 : 3.2), last = labels[labels.length - 1];
    if (last && last.x === x && last.node === node && last.kind === kind) last.text += ` ${text}`;
    else labels.push({ time: tile.time[row], x, y: place, text, colour: kind === codes.send ? c.send : kind === codes.deliver ? c.deliver : c.dim, node, kind });
  }
  /** None over another: those of messages first, then those of units of the protocol itself. */
  paintLabels(labels) {
    const { context: g, codes } = this, { width, gutter } = this.at;
    g.font = "11px system-ui, sans-serif"; g.textAlign = "center"; g.textBaseline = "middle";
    for (const own of [false, true]) {
      for (const { time, x, y, text, colour, node, kind } of labels) {
        if ((kind === codes.transmit) !== own) continue;
        const half = g.measureText(text).width / 2 + 3, middle = Math.min(Math.max(x, gutter + half), width - half); // one at the edge is not cut off
        if (!this.isFree(node, middle, half, y)) continue;
        this.paleBehind(time);
        g.fillStyle = colour; g.fillText(text, middle, y);
      }
    }
    g.globalAlpha = 1;
  }
  /** Whether words of a member's lane stand over no others; if so, their place is taken from here on. */
  isFree(node, middle, half, y) {
    if (!this.written.has(node)) this.written.set(node, []);
    const others = this.written.get(node);
    const free = !others.some((other) => Math.abs(other.y - y) < 11 && Math.abs(other.middle - middle) < half + other.half);
    if (free) others.push({ y, middle, half });
    return free;
  }
  /** Arrows: data, copies, units without messages; losses are broken. */
  paintFlights(tile, from, to) {
    const { context: g, colours: c, codes, shown } = this;
    const paths = new Map(), heads = tile.flights.length < 1600;
    const dim = this.chosen?.messages?.size > 0;
    for (let at = 0; at < tile.flights.length; at += 2) {
      const start = tile.flights[at], end = tile.flights[at + 1];
      const lost = tile.kind[end] === codes.lose, control = tile.source[end] < 0;
      if (!shown.classes.has(lost ? "lose" : "arrive") || !shown.classes.has("transmit")) continue;
      const sender = start >= 0 ? tile.node[start] : tile.source[end];
      if (!this.place.has(tile.node[end]) || !this.place.has(sender)) continue;
      if (sender === tile.node[end] && !lost) continue;
      const begun = start >= 0 ? tile.time[start] : tile.time[end] - this.run.margin / 8;
      if (begun > to || tile.time[end] < from) continue;
      const own = dim && tile.source[end] >= 0 && this.chosen.messages.has(`${tile.source[end]}#${tile.seq[end]}`);
      const copy = start >= 0 && detailOf(tile, start) === "copy";
      const name = `${own ? "own" : dim ? "dim" : ""}/${own && !lost ? "chosen" : lost ? "lose" : copy ? "copy" : control ? "control" : "data"}/${lost || start < 0 ? "broken" : ""}`;
      if (!paths.has(name)) paths.set(name, []);
      paths.get(name).push(this.x(begun), this.y(sender), this.x(tile.time[end]), this.y(tile.node[end]), lost ? 1 : 0);
    }
    for (const [name, lines] of paths) {
      const [how, colour, broken] = name.split("/");
      g.globalAlpha = how === "dim" ? 0.15 : how === "own" ? 1 : lines.length > 4000 ? 0.45 : 0.8;
      g.strokeStyle = g.fillStyle = c[colour]; g.lineWidth = how === "own" ? 2.4 : 1;
      g.setLineDash(broken ? [4, 3] : []);
      g.beginPath();
      for (let at = 0; at < lines.length; at += 5) {
        // A loss ends before it arrives.
        const part = lines[at + 4] ? 0.86 : 1;
        g.moveTo(lines[at], lines[at + 1]);
        g.lineTo(lines[at] + (lines[at + 2] - lines[at]) * part, lines[at + 1] + (lines[at + 3] - lines[at + 1]) * part);
      }
      g.stroke(); g.setLineDash([]);
      if (heads && colour !== "lose") this.paintHeads(lines);
    }
    g.globalAlpha = 1; g.lineWidth = 1;
  }
  paintHeads(lines) {
    const g = this.context;
    g.beginPath();
    for (let at = 0; at < lines.length; at += 5) {
      const dx = lines[at + 2] - lines[at], dy = lines[at + 3] - lines[at + 1], long = Math.hypot(dx, dy);
      if (long < 14) continue;
      const ux = dx / long, uy = dy / long, x = lines[at + 2] - ux * 3, y = lines[at + 3] - uy * 3;
      g.moveTo(x, y);
      g.lineTo(x - ux * 6 - uy * 3, y - uy * 6 + ux * 3);
      g.lineTo(x - ux * 6 + uy * 3, y - uy * 6 - ux * 3);
      g.closePath();
    }
    g.fill();
  }
}
