"use strict";
// The page: which runs are shown, what is filtered, what is searched, what is said at the bottom.

class App {
  constructor(data) {
    this.data = data; this.witnesses = data.witnesses ?? [];
    this.source = data.mode === "file" ? new FileSource(data.embedded) : new ServerSource();
    this.views = []; this.words = new Words(data.words); this.panel = new Panel(byId("panel"), this);
    this.shown = { members: new Set(), classes: new Set(), version: 0 };
    this.fill(byId("run"), data.runs, null);
    this.fill(byId("beside"), data.runs, "nothing");
    byId("comparing").hidden = data.runs.length < 2;
    byId("title").textContent = `ordercast: ${data.title.join(", ")}`;
    byId("title").title = data.title.join("\n"); document.title = byId("title").textContent;
    byId("run").addEventListener("change", () => this.guarded(() => this.open(byId("run").value, byId("beside").value)));
    byId("beside").addEventListener("change", () => this.guarded(() => this.open(byId("run").value, byId("beside").value)));
    byId("in").addEventListener("click", () => this.first?.zoom(0.5));
    byId("out").addEventListener("click", () => this.first?.zoom(2));
    byId("whole").addEventListener("click", () => { for (const view of this.views) view.whole(); });
    byId("help").addEventListener("click", () => this.panel.help());
    byId("png").addEventListener("click", () => this.savePng());
    byId("svg").addEventListener("click", () => this.saveSvg());
    byId("perfetto").addEventListener("click", () => this.guarded(() => this.savePerfetto()));
    byId("gaps").addEventListener("click", () => this.skipGaps());
    byId("search").addEventListener("submit", (event) => { event.preventDefault(); this.guarded(() => this.search(byId("query").value)); });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && event.target === byId("query")) this.first?.canvas.focus();
      if (event.target.matches("input:not([type=checkbox]), select") || event.ctrlKey || event.metaKey) return;
      if (event.key === "/") { event.preventDefault(); byId("query").focus(); }
      if (event.key === "?") this.panel.help();
      if (event.key === "x") this.skipGaps();
      const by = { n: 1, p: -1 }[event.key.toLowerCase()];
      if (this.story && by) this.goTo(event.shiftKey ? this.story.explained(by) : this.story.at + by);
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
  }
  get first() { return this.views[0]; }
  fill(select, runs, none) {
    if (none) select.append(made("option", { value: "", text: none }));
    for (const run of runs) select.append(made("option", { value: run.key, text: run.key }));
  }
  async start() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    const first = this.data.runs.some((run) => run.key === wanted.get("run")) ? wanted.get("run") : this.data.first ?? this.data.runs[0]?.key;
    if (first === undefined) throw new Error("this trace has no runs; repeat the run");
    await this.open(first, this.data.beside ?? "");
    const [from, to] = [Number(wanted.get("from")), Number(wanted.get("to"))];
    if (to > from) this.first.show(from, to);
    if (wanted.has("message")) await this.ask(this.first, ...wanted.get("message").split("#").map(Number));
    else if (this.witnesses.length && !wanted.has("run")) await this.openWitness(0);
    else if (this.first.run.story) { await this.tell(() => storyOfSchedule(this.first)); if (wanted.has("step")) this.goTo(Number(wanted.get("step")) - 1); }
    if (this.data.follow) this.follow();
  }
  /** Each second what is new; the summary, which takes longer, each five. */
  async follow() {
    for (let second = 1, stale = false; ; second++) {
      await new Promise((resolve) => setTimeout(resolve, 1000));
      try {
        for (const view of [...this.views]) {
          const found = await view.follow();
          if (found === "other") { await this.openAgain(); break; }
          stale ||= found === "more";
        }
        if (stale && second % 5 === 0) { stale = false; for (const view of this.views) await view.summarise(); }
      } catch (error) {
        this.failed(error);
        if (error.gone) { this.gone = error.message; return; }
      }
    }
  }
  /** There are other members than before: the same runs, at the same time. */
  async openAgain() {
    const { from, to, limit } = this.first, part = from > 0 || to < limit;
    await this.open(byId("run").value, byId("beside").value);
    if (part) this.first.show(from, to);
  }
  async open(key, beside) {
    const keys = beside && beside !== key ? [key, beside] : [key];
    const runs = await Promise.all(keys.map((each) => this.source.run(each)));
    stepSize = runs[0].step ?? 0;
    byId("run").value = key; byId("beside").value = keys[1] ?? "";
    const most = runs.reduce((one, other) => (other.nodes > one.nodes ? other : one));
    this.shown.members = new Set(most.names.keys()); this.shown.classes = new Set(runs[0].classes); this.shown.version++;
    this.differences = null; this.shown.to = null;
    this.views = runs.map((run) => new View(this.source, run, this.shown, this));
    if (this.views[1]) {
      [this.views[0].beside, this.views[1].beside] = [this.views[1], this.views[0]];
      for (const view of this.views) view.whole();
      this.guarded(() => this.compare());
    }
    byId("views").replaceChildren(...this.views.map((view) => view.element));
    this.filters(runs[0], most.names);
    this.story = null; this.chosenMessage = null; this.panel.busy = false;
    this.panel.overview(this.first);
  }
  /** What differs between two runs: of all of them, or of what is in sight if they are long. */
  async compare() {
    const [one, other] = this.views, cut = Math.max(one.run.rows, other.run.rows) > MOST_IN_RANGE;
    const tables = await Promise.all(this.views.map((view) => view.source.events(view.run.key, cut ? one.from : -1, cut ? one.to : one.limit + 1)));
    if (this.views[0] !== one) return;
    this.differences = { ...differencesOf([one.run, other.run], tables), cut };
    this.mark([], []);
    if (!this.panel.busy) this.panel.overview(one);
  }
  skipGaps() {
    const view = this.first;
    if (this.views.length > 1 || !view?.summary?.gaps.length) { this.say(this.views.length > 1 ? "two runs are shown in one time: nothing is left out" : "there is no long time without events"); return; }
    view.skipGaps(!view.clock.gaps.length);
    byId("gaps").ariaPressed = String(Boolean(view.clock.gaps.length));
  }
  filters(run, names) {
    const change = (set, value) => (event) => {
      if (event.target.checked) set.add(value); else set.delete(value);
      this.shown.version++; this.redraw();
    };
    const box = (set, value, text, colour) => {
      const input = made("input", { type: "checkbox" });
      input.checked = true;
      input.addEventListener("change", change(set, value));
      const key = made("span", { class: "key" });
      if (colour) key.style.setProperty("background", `var(--${colour})`);
      return made("label", {}, input, ...(colour ? [key] : []), text);
    };
    const words = { send: "sends", transmit: "transmissions", arrive: "arrivals", lose: "losses", level: "levels", deliver: "deliveries", recovery: "stops and views", other: "timers and others" };
    const members = made("details", {}, made("summary", { text: `members (${names.length})` }), made("div", {}, ...names.slice(0, 500).map((name, node) => box(this.shown.members, node, name))));
    const to = new Set(names.keys());
    const toMember = (name, node) => {
      const label = box(to, node, name), input = label.firstChild;
      input.addEventListener("change", () => { this.shown.to = to.size === names.length ? null : to; });
      return label;
    };
    members.lastChild.append(made("strong", { text: "only messages to any of" }), ...names.slice(0, 500).map(toMember));
    byId("filters").replaceChildren(...run.classes.map((name) => box(this.shown.classes, name, words[name] ?? name, name)), members);
  }
  redraw() { for (const view of this.views) view.draw(); }

  // What views tell.
  moved(view) {
    for (const other of this.views) if (other !== view && (other.from !== view.from || other.to !== view.to)) other.show(view.from, view.to, false);
    clearTimeout(this.saving);
    this.saving = setTimeout(() => { this.remember(); if (this.differences?.cut) this.guarded(() => this.compare()); }, 300);
  }
  remember() {
    const words = new URLSearchParams({ run: this.first.run.key, from: Math.round(this.first.from), to: Math.round(this.first.to) });
    if (this.chosenMessage) words.set("message", this.chosenMessage);
    if (this.story && this.first.run.story) words.set("step", this.story.at + 1);
    try { history.replaceState(null, "", `#${words}`); } catch { /* a page in a mail has no address */ }
  }
  painted() {
    const { first } = this, drawn = this.views.filter((each) => each.counted);
    if (!first?.counted) return;
    const parts = [`${clockText(Math.max(0, first.from))} to ${clockText(Math.min(first.limit, first.to))}`];
    for (const each of drawn) parts.push(this.countedText(each, this.views.length > 1 ? (each === first ? "above: " : "below: ") : ""));
    const waiting = drawn.some((each) => each.counted.waiting);
    if (this.data.unlisted) parts.push(`${count(this.data.unlisted)} runs are not listed`);
    if (this.data.follow) parts.push(this.gone ?? "following");
    if (waiting) parts.push("reading …");
    this.say(parts.join(" · "));
  }
  /** How many events of a run are in sight, and how they are shown. */
  countedText(view, where) {
    const { single, dense, hidden, estimated } = view.counted;
    const parts = [`${where}${estimated ? "about " : ""}${count(single + dense)} events here: ${count(single)} drawn one by one`];
    if (dense) parts.push(`${count(dense)} not shown one by one but as density: zoom in`);
    if (hidden) parts.push(`${count(hidden)} hidden by filters`);
    if (view.run.left_out) parts.push(`${count(view.run.left_out)} events of the run are not in this file`);
    return parts.join(" · ");
  }
  say(text, wrong = false) {
    const status = byId("status");
    if (!wrong && this.wrongUntil > performance.now()) return;
    if (wrong) { this.wrongUntil = performance.now() + 6000; setTimeout(() => this.redraw(), 6100); }
    status.className = wrong ? "wrong" : "";
    if (status.textContent !== text) status.textContent = text;
  }
  failed(error) { this.say(error.message, true); }
  async guarded(act) { try { await act(); } catch (error) { this.failed(error); } }
  summarised(view) { if (view === this.first && !this.chosenMessage && !this.panel.busy) this.panel.overview(view); }
  entered(view) { if (view.cursor) this.chose(view, view.cursor); else view.step(1); }
  chose(view, cursor) {
    if (!cursor) {
      this.story = null;
      this.mark([], []); this.chosenMessage = null; this.panel.busy = false; this.panel.asked = null;
      this.panel.overview(view);
      return;
    }
    const kind = view.run.kinds[cursor.kind];
    this.panel.busy = true;
    if (cursor.source >= 0 && cursor.seq >= 0 && !NOT_OF_A_MESSAGE.has(kind)) this.guarded(() => this.ask(view, cursor.source, cursor.seq));
    else { this.mark([], []); this.panel.event(view, cursor); }
  }
  mark(messages, nodes, now = null) {
    for (const [at, view] of this.views.entries()) view.chosen = { messages: new Set(messages), nodes: new Set(nodes), now, differs: this.differences?.marks[at] };
    this.redraw();
  }
  async ask(view, source, seq) {
    this.chosenMessage = `${source}#${seq}`; this.panel.busy = true; this.story = null;
    this.mark([this.chosenMessage], []);
    await this.panel.message(view, source, seq);
    this.remember();
  }
  /** A sentence of an audit or of a schedule, with the names of this run's members; `messages`: those that it names by numbers. */
  named(run, sentence, messages = []) {
    for (const [source, seq] of messages) sentence = sentence.replaceAll(new RegExp(`\\b${source + 1}\\.${seq}\\b`, "g"), () => messageName(run, source, seq));
    return sentence.replace(/\bE([1-9]\d*)\b/g, (word, number) => run.names[number - 1] ?? word);
  }

  /** Begins a story: it comes from a schedule, or is put together from the events of a run. */
  async tell(make) {
    const story = await make();
    const { view, steps } = story;
    story.table = await view.source.events(view.run.key, steps[0].time, steps[steps.length - 1].time + 1);
    this.story = story; this.panel.busy = true; this.panel.asked = null; this.chosenMessage = null;
    const edge = 0.03 * (steps[steps.length - 1].time - steps[0].time) + 500;
    if (!view.run.story) view.show(steps[0].time - edge, steps[steps.length - 1].time + edge);
    this.goTo(-1);
  }
  /** The first loss after which the group froze; or the first message that was lost at all. */
  async tellFirstLoss(view) {
    const { run } = view, stop = view.painter.spans.stopped[0];
    const wanted = (more) => view.source.find(run.key, { kind: "lose", ...more });
    let found = stop ? await wanted({ node: stop.node, after: stop.from + 1, backwards: 1 }) : { rows: 0 };
    if (!found.rows || found.source[0] < 0) found = await wanted({ after: -1 });
    while (found.rows && found.source[0] < 0) found = await wanted({ after: found.time[0] });
    if (!found.rows) throw new Error("no message was lost in this run");
    await this.tell(() => storyOfLoss(view, found.source[0], found.seq[0]));
  }
  goTo(at) {
    const { story } = this;
    if (!story || at < -1 || at >= story.steps.length) return;
    story.at = at;
    const { view, steps } = story, time = at < 0 ? null : steps[at].time;
    this.mark(story.messages, at < 0 ? [] : story.nodesAt(at), time);
    if (time !== null && (time < view.from || time > view.to)) view.centre(time);
    this.panel.stories.show(story);
    clearTimeout(this.saving);
    this.saving = setTimeout(() => this.remember(), 300);
  }

  async openWitness(at) {
    const witness = this.witnesses[at];
    const known = this.data.runs.find((run) => run.name === witness.run);
    if (!known) throw new Error(`the run ${witness.run} of the witness is not in this trace`);
    if (this.first.run.key !== known.key) await this.open(known.key, "");
    const view = this.first;
    this.panel.busy = true; this.chosenMessage = null; this.story = null;
    this.mark(witness.messages.map(([source, seq]) => `${source}#${seq}`), witness.nodes);
    const times = [];
    for (const [source, seq] of witness.messages.slice(0, 6)) {
      const table = await this.source.message(known.key, source, seq);
      if (table.rows) times.push(table.time[0], table.time[table.rows - 1]);
    }
    if (times.length) {
      const from = Math.min(...times), to = Math.max(...times), edge = 0.1 * (to - from) + 500;
      view.show(from - edge, to + edge);
    }
    await this.panel.witness(view, witness, at);
  }

  /** A message, a time, or the next event: by kind, member, sender and number. */
  async search(text) {
    const view = this.first, { run } = view;
    const wanted = {}, words = text.trim().split(/\s+/).filter(Boolean);
    const node = (word) => {
      const exact = run.names.indexOf(word);
      if (exact >= 0) return exact;
      const found = /^E([1-9]\d*)$/i.exec(word);
      return found && Number(found[1]) <= run.nodes ? Number(found[1]) - 1 : null;
    };
    let sender = false;
    for (const word of words) {
      if (word.startsWith('"')) { this.searchPayload(view, word.slice(1).replace(/"$/, "")); return; }
      const time = /^(\d+(?:\.\d+)?)(ns|us|µs|ms|s)$/.exec(word), cut = word.lastIndexOf("#");
      if (time) { view.centre(Number(time[1]) * { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9 }[time[2]]); return; }
      const words_ = { received: "receive", accepted: "accept", acknowledged: "ack", "pre-acknowledged": "preack", delivered: "deliver", lost: "lose", loss: "lose", sent: "send" };
      if (word === "from") sender = true;
      else if (cut >= 0 && node(word.slice(0, cut)) !== null && /^\d+$/.test(word.slice(cut + 1))) { wanted.source = node(word.slice(0, cut)); wanted.seq = Number(word.slice(cut + 1)); }
      else if (run.kinds.includes(words_[word] ?? word)) wanted.kind = words_[word] ?? word;
      else if (node(word) !== null) { wanted[sender ? "source" : "node"] = node(word); sender = false; }
      else throw new Error(`“${word}” is no message, member, event or time of this run; press ? for examples`);
    }
    if (!words.length) return;
    const whole = wanted.seq !== undefined && !wanted.kind && wanted.node === undefined;
    const middle = (view.from + view.to) / 2;
    let found = await this.source.find(run.key, { ...wanted, after: whole ? -1 : Math.round(middle) });
    if (!found.rows) found = await this.source.find(run.key, { ...wanted, after: -1 });
    if (!found.rows) throw new Error(`nothing in this run matches “${text}”`);
    const margin = Math.max(run.margin, 1000);
    if (whole) {
      const table = await this.source.message(run.key, wanted.source, wanted.seq), [first, last] = [table.time[0], table.time[table.rows - 1]];
      view.show(first - 0.15 * (last - first) - 500, last + 0.15 * (last - first) + 500);
    } else view.centre(found.time[0], Math.min(view.span, 12 * margin));
    view.choose(found, 0);
  }

  /** Of a schedule, the message whose payload begins so: the first, then the next one each time. */
  searchPayload(view, prefix) {
    const { run } = view;
    if (!run.labels) throw new Error("a trace has no payloads, only sizes; those of a schedule can be searched");
    const found = Object.keys(run.labels).filter((name) => run.labels[name].startsWith(prefix));
    if (!found.length) throw new Error(`no message of this schedule begins with “${prefix}”`);
    const next = found[(found.indexOf(this.chosenMessage) + 1) % found.length];
    this.guarded(() => this.ask(view, ...next.split("#").map(Number)));
  }

  // The picture as a file.
  save(name, blob) {
    const link = made("a", { download: name, href: URL.createObjectURL(blob) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
  /** What a saved file is called: by the run, or by both. */
  get fileName() { return this.views.map((view) => view.run.name).join(" beside "); }
  async savePerfetto() {
    const tables = await Promise.all(this.views.map((view) => view.source.events(view.run.key, view.from, view.to)));
    const text = JSON.stringify(perfettoOf(this.views.map((view) => view.run), tables));
    this.save(`${this.fileName}.perfetto.json`, new Blob([text], { type: "application/json" }));
    const cut = tables.find((table) => table.cut);
    if (cut) this.say(`the file has the first ${count(cut.rows)} events of what is in sight: zoom in for the others`, true);
  }
  savePng() {
    const canvases = this.views.map((view) => view.canvas), all = made("canvas", { width: Math.max(...canvases.map((each) => each.width)), height: canvases.reduce((sum, each) => sum + each.height, 0) });
    let top = 0;
    for (const canvas of canvases) { all.getContext("2d").drawImage(canvas, 0, top); top += canvas.height; }
    all.toBlob((blob) => this.save(`${this.fileName}.png`, blob));
  }
  picture() {
    const contexts = this.views.map((view, at) => {
      const context = new SvgContext(view.width, view.height, `c${at}-`);
      view.painter.paint(context, view.at(), view.entries(), view.chosen);
      return context;
    });
    return svgDocument(contexts, `${this.fileName}, ${clockText(this.first.from)} to ${clockText(this.first.to)}`);
  }
  saveSvg() { this.save(`${this.fileName}.svg`, new Blob([this.picture()], { type: "image/svg+xml" })); }
}

function byId(name) { return document.getElementById(name); }

const app = new App(JSON.parse(byId("data").textContent));
app.guarded(() => app.start());
