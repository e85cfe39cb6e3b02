"use strict";
// One run on the page: its window of time, the hands on it, and what is under them.

const LEAST_SPAN = 100; // nanoseconds across the picture
const TILE_PIXELS = 384; // a tile is this wide at most

class View {
  constructor(source, run, shown, heard) {
    this.source = source; this.run = run; this.shown = shown; this.heard = heard;
    this.element = document.createElement("div"); this.element.className = "view";
    this.map = document.createElement("canvas"); this.map.className = "map"; this.map.ariaHidden = "true";
    this.canvas = document.createElement("canvas"); this.canvas.className = "main"; this.canvas.tabIndex = 0;
    this.canvas.role = "application";
    this.canvas.ariaLabel = `Space-time diagram of ${run.name}. Arrow keys move, plus and minus zoom, brackets step from event to event, Enter asks for the message.`;
    this.label = document.createElement("div"); this.label.className = "name";
    this.nameIt();
    this.element.append(this.map, this.canvas, this.label);
    this.tiles = new Tiles(source, run, () => this.draw(), (error) => heard.failed(error));
    this.painter = new Painter(run, shown);
    this.chosen = { messages: new Set(), nodes: new Set() };
    this.scroll = 0; this.frames = []; this.clock = new Clock([], run.duration);
    this.whole();
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.element);
    this.summarise();
  }
  nameIt() {
    const { run } = this;
    this.label.textContent = [run.protocol, run.rules && `${run.rules} rules`, run.name, run.ended].filter(Boolean).join(" · ");
  }
  summarise() {
    return this.source.summary(this.run.key).then((summary) => {
      this.summary = summary; this.painter.useSummary(summary);
      if (summary.possible && !this.tiles.sends) this.tiles.useSends();
      if (this.clock.gaps.length) this.skipGaps(true);
      this.draw(); this.heard.summarised(this);
    }, (error) => this.heard.failed(error));
  }
  /** Asks what was written meanwhile; a window that reaches to the end moves with it, or grows if all is shown. */
  async follow() {
    const found = await this.source.grown(this.run.key), { run } = this;
    const ended = found.ended !== run.ended;
    if (ended) { run.ended = found.ended; this.nameIt(); }
    if (found.names.join() !== run.names.join()) return "other";
    if (found.since === null) return ended ? "more" : "same";
    const before = run.duration, whole = this.from <= 0, end = this.to >= before;
    run.rows = found.rows; run.duration = found.duration;
    this.tiles.grow(found.since);
    if (end && whole) this.whole(); else if (end) this.show(this.from + run.duration - before, this.to + run.duration - before, false);
    this.draw();
    return "more";
  }
  get span() { return this.to - this.from; }
  /** Leaves out the times in which nothing happens, or shows them. */
  skipGaps(skip) {
    this.clock = new Clock(skip ? this.summary?.gaps ?? [] : [], this.run.duration);
    this.show(this.from, this.to);
  }
  get gutter() { return this.width < 500 ? 46 : 76; }
  get limit() { return Math.max(this.run.duration, this.beside?.run.duration ?? 0); }
  whole() { const edge = Math.max(0.01 * this.limit + 1, stepSize); this.show(-edge, this.limit + edge, false); }

  /** Moves the window; bounded by the run, and by a datagram. */
  show(from, to, tell = true) {
    const { clock } = this, [left, right, limit] = [from, to, this.limit].map((time) => clock.place(time));
    const span = Math.min(Math.max(right - left, LEAST_SPAN), 1.2 * limit + 1000), middle = Math.min(Math.max((left + right) / 2, 0), limit);
    this.from = clock.time(middle - span / 2); this.to = clock.time(middle + span / 2);
    this.draw();
    if (tell) this.heard.moved(this);
  }
  zoom(factor, at = 0.5) {
    const [left, right] = this.places, place = left + at * (right - left), span = (right - left) * factor;
    this.showPlaces(place - at * span, place + (1 - at) * span);
  }
  pan(share) { const [left, right] = this.places; this.showPlaces(left + share * (right - left), right + share * (right - left)); }
  centre(time, span = this.span) {
    const [left, right] = this.places, place = this.clock.place(time), wide = span === this.span ? right - left : span;
    this.showPlaces(place - wide / 2, place + wide / 2);
  }
  get places() { return [this.clock.place(this.from), this.clock.place(this.to)]; }
  showPlaces(left, right) { this.show(this.clock.time(left), this.clock.time(right)); }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.element.clientWidth; this.height = Math.max(60, this.element.clientHeight - 46);
    for (const [canvas, height] of [[this.canvas, this.height], [this.map, 26]]) {
      canvas.width = Math.max(1, this.width * ratio); canvas.height = Math.max(1, height * ratio);
    }
    this.draw();
  }
  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.paint(); });
  }
  /** The spans in sight, each with the tile that is here for it, or null. */
  entries() {
    const [left, right] = this.places;
    const exponent = Math.min(this.tiles.top, Math.max(0, Math.floor(Math.log2((right - left) / (this.width - this.gutter) * TILE_PIXELS))));
    const size = 2 ** exponent, found = [], indices = new Set();
    for (const [from, to] of this.clock.busy(this.from, this.to)) {
      const last = Math.min(Math.floor(to / size), Math.floor(this.run.duration / size));
      for (let index = Math.max(0, Math.floor(from / size)); index <= last; index++) indices.add(index);
    }
    for (const index of indices) {
      const tile = this.tiles.get(exponent, index);
      const shown = tile ?? this.tiles.larger(exponent, index);
      const before = found[found.length - 1];
      if (before && before.tile === shown && shown && before.to === index * size) { before.to = (index + 1) * size; before.exact &&= Boolean(tile); }
      else found.push({ tile: shown, from: index * size, to: (index + 1) * size, exact: Boolean(tile) });
    }
    return found;
  }
  at() { return { from: this.from, to: this.to, width: this.width, height: this.height, gutter: this.gutter, scroll: this.scroll, clock: this.clock }; }
  paint() {
    if (!this.width) return;
    const begun = performance.now();
    const ratio = window.devicePixelRatio || 1;
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const theme = getComputedStyle(document.body).backgroundColor;
    if (theme !== this.painter.theme) { this.painter.theme = theme; this.painter.colours = coloursOf(document.body); }
    const entries = this.entries();
    this.counted = this.painter.paint(context, this.at(), entries, this.chosen);
    this.counted.waiting = entries.some((entry) => !entry.exact);
    this.shownEntries = entries;
    this.paintMap();
    this.frames.push(performance.now() - begun);
    if (this.frames.length > 600) this.frames.shift();
    this.heard.painted();
  }
  /** The whole run in a strip, with the window in it. */
  paintMap() {
    const ratio = window.devicePixelRatio || 1, g = this.map.getContext("2d"), c = this.painter.colours;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.fillStyle = c.lane; g.fillRect(0, 0, this.width, 26);
    const tile = this.tiles.get(this.tiles.top, 0);
    const size = this.limit || 1, place = (time) => this.gutter + (this.width - this.gutter) * time / size;
    if (tile) {
      const bins = tile.time ? 256 : tile.bins, span = tile.time ? size : tile.end - tile.begin;
      const sums = new Float64Array(bins), losses = new Float64Array(bins);
      if (tile.time) {
        for (let row = 0; row < tile.rows; row++) {
          const bin = Math.min(bins - 1, Math.max(0, Math.floor(tile.time[row] / span * bins)));
          sums[bin]++; if (tile.kind[row] === this.tiles.codes.lose) losses[bin]++;
        }
      } else {
        const lose = this.run.classes.indexOf("lose");
        for (let cell = 0; cell < tile.counts.length; cell++) {
          sums[cell % bins] += tile.counts[cell];
          if (Math.floor(cell / bins) % tile.classes === lose) losses[cell % bins] += tile.counts[cell];
        }
      }
      const top = Math.max(1, ...sums), most = Math.max(1, ...losses);
      for (let bin = 0; bin < bins; bin++) {
        if (!sums[bin]) continue;
        const left = place(bin / bins * span), wide = Math.min(this.width, place((bin + 1) / bins * span)) - left;
        const tall = 22 * sums[bin] / top, red = losses[bin] ? 1 + 5 * losses[bin] / most : 0;
        g.fillStyle = c.arrive; g.fillRect(left, 25 - tall, wide, tall);
        g.fillStyle = c.lose; g.fillRect(left, 25 - red, wide, red);
      }
    }
    const left = Math.max(this.gutter, place(this.from)), right = Math.min(this.width, place(this.to));
    g.strokeStyle = c.chosen; g.lineWidth = 2; g.strokeRect(left + 1, 1, Math.max(3, right - left - 2), 24);
  }

  listen() {
    const { canvas } = this, fingers = new Map();
    let moved = 0, before = null;
    /** How far two fingers are apart, and where between them is. */
    const grip = () => {
      const [one, two] = [...fingers.values()];
      return { wide: Math.max(12, Math.abs(one.clientX - two.clientX)), middle: ((one.clientX + two.clientX) / 2 - canvas.getBoundingClientRect().left - this.gutter) / (this.width - this.gutter) };
    };
    const share = (event) => Math.min(1, Math.max(0, (event.offsetX - this.gutter) / (this.width - this.gutter)));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan((event.deltaX || event.deltaY) / 1000);
      else this.zoom(1.0015 ** event.deltaY, share(event));
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, event); moved = fingers.size > 1 ? 99 : 0; before = fingers.size === 2 ? grip() : null;
    });
    canvas.addEventListener("pointermove", (event) => {
      const last = fingers.get(event.pointerId);
      if (!last) { this.hover(event); return; }
      moved += Math.abs(event.clientX - last.clientX) + Math.abs(event.clientY - last.clientY);
      fingers.set(event.pointerId, event);
      if (fingers.size === 2) {
        const now = grip();
        this.pan(before.middle - now.middle); this.zoom(before.wide / now.wide, now.middle);
        before = now;
      } else if (fingers.size === 1) {
        this.scrollBy(last.clientY - event.clientY);
        this.pan((last.clientX - event.clientX) / (this.width - this.gutter));
      }
    });
    const ended = (event) => {
      const was = fingers.delete(event.pointerId);
      before = fingers.size === 2 ? grip() : null;
      if (was && moved < 6 && event.type === "pointerup") this.click(event.offsetX, event.offsetY);
    };
    canvas.addEventListener("pointerup", ended);
    canvas.addEventListener("pointercancel", ended);
    canvas.addEventListener("dblclick", (event) => this.zoom(0.25, share(event)));
    canvas.addEventListener("keydown", (event) => this.key(event));
    const jump = (event) => {
      if (event.buttons) this.centre((event.offsetX - this.gutter) / (this.width - this.gutter) * this.limit);
    };
    this.map.addEventListener("pointerdown", (event) => { this.map.setPointerCapture(event.pointerId); jump(event); });
    this.map.addEventListener("pointermove", jump);
  }
  scrollBy(pixels) {
    const tall = AXIS + this.painter.lanes.length * this.painter.lane - this.height;
    this.scroll = Math.max(0, Math.min(Math.max(0, tall), this.scroll + pixels));
  }
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = {
      ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2), "+": () => this.zoom(0.5), "=": () => this.zoom(0.5),
      "-": () => this.zoom(2), 0: () => { this.whole(); this.heard.moved(this); }, Home: () => this.centre(0), End: () => this.centre(this.run.duration),
      ArrowUp: () => { this.scrollBy(-40); this.draw(); }, ArrowDown: () => { this.scrollBy(40); this.draw(); },
      "]": () => this.step(1), "[": () => this.step(-1), Enter: () => this.heard.entered(this),
      Escape: () => this.heard.chose(this, null),
    }[event.key];
    if (act) { event.preventDefault(); act(); }
  }
  /** All events in sight that are drawn one by one. */
  *inSight() {
    for (const { tile, from, to } of this.shownEntries ?? []) {
      if (!tile?.time) continue;
      const last = firstAt(tile.time, Math.min(to, this.to));
      for (let row = firstAt(tile.time, Math.max(from, this.from)); row < last; row++) {
        if (this.painter.isShown(tile, row)) yield [tile, row];
      }
    }
  }
  step(direction) {
    const rows = [...this.inSight()];
    if (!rows.length) { this.zoom(0.5); return; }
    const current = this.cursor;
    let at = rows.findIndex(([tile, row]) => current && tile.time[row] === current.time && tile.node[row] === current.node && tile.kind[row] === current.kind && tile.seq[row] === current.seq);
    if (at < 0) at = Math.floor(rows.length / 2); else at += direction;
    if (at < 0 || at >= rows.length) { this.pan(direction * 0.5); return; }
    this.choose(...rows[at]);
  }
  choose(tile, row) {
    this.cursor = { time: tile.time[row], node: tile.node[row], kind: tile.kind[row], source: tile.source[row], seq: tile.seq[row],
      detail: detailOf(tile, row), transmission: tile.transmission[row], size: tile.size[row] };
    this.heard.chose(this, this.cursor);
  }
  /** The event nearest to a point, within reach. */
  nearest(x, y) {
    let best = null, least = 14 ** 2;
    for (const [tile, row] of this.inSight()) {
      const dx = this.painter.x(tile.time[row]) - x, dy = this.painter.y(tile.node[row]) - y;
      const far = dx * dx + dy * dy * 0.3 + (tile.source[row] < 0 ? 20 : 0);
      if (far < least) { least = far; best = [tile, row]; }
    }
    return best ?? this.nearestFlight(x, y);
  }
  nearestFlight(x, y) {
    let best = null, least = 5;
    for (const { tile } of this.shownEntries ?? []) {
      if (!tile?.time) continue;
      for (let at = 0; at < tile.flights.length; at += 2) {
        const start = tile.flights[at], end = tile.flights[at + 1];
        if (start < 0 || !this.painter.place.has(tile.node[start]) || !this.painter.place.has(tile.node[end])) continue;
        const x0 = this.painter.x(tile.time[start]), y0 = this.painter.y(tile.node[start]);
        const dx = this.painter.x(tile.time[end]) - x0, dy = this.painter.y(tile.node[end]) - y0, long = Math.hypot(dx, dy);
        const along = ((x - x0) * dx + (y - y0) * dy) / (long * long || 1);
        const far = Math.abs((x - x0) * dy - (y - y0) * dx) / (long || 1);
        if (along > 0 && along < 1 && far < least) { least = far; best = [tile, end]; }
      }
    }
    return best;
  }
  click(x, y) {
    const found = this.nearest(x, y);
    if (found) this.choose(...found);
    else if (this.counted?.dense) this.zoom(0.4, (x - this.gutter) / (this.width - this.gutter));
    else this.heard.chose(this, null);
  }
  hover(event) {
    const found = event.pointerType === "mouse" ? this.nearest(event.offsetX, event.offsetY) : null;
    this.canvas.title = found ? this.sentence(...found) : this.spanAt(event.offsetX, event.offsetY);
  }
  /** What is said of a place without events: that the member is frozen or blocked there. */
  spanAt(x, y) {
    const { painter, run } = this, node = painter.lanes[Math.floor((y - AXIS + this.scroll) / painter.lane)];
    const span = painter.spans.stopped.find((each) => each.node === node && painter.x(each.from) <= x && x <= painter.x(each.to));
    if (!span) return "";
    const why = span.why ? ` (${WHY_STOPPED[span.why] ?? span.why})` : "";
    return `${run.names[node]} is ${span.kind === "block" ? "blocked" : "frozen"}${why} from ${clockText(span.from)} to ${span.to === Infinity ? "the end" : clockText(span.to)}${howText(span.how)}`;
  }
  sentence(tile, row) {
    const { run } = this, kind = run.kinds[tile.kind[row]], detail = detailOf(tile, row);
    const message = tile.source[row] >= 0 && tile.seq[row] >= 0 && !NOT_OF_A_MESSAGE.has(kind) ? ` ${messageName(run, tile.source[row], tile.seq[row])}` : "";
    return `${clockText(tile.time[row])}: ${run.names[tile.node[row]]} ${kind}${message}${detail ? ` (${detail})` : ""}`;
  }
}
