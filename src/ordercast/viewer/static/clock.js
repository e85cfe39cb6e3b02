"use strict";
// Where a time is in the picture: evenly, or with the times in which nothing happens left out.

const GAP_SHARE = 0.015; // of the picture that a gap which is left out takes

class Clock {
  /** `gaps`: pairs of times, in order; none: time is shown evenly. */
  constructor(gaps, duration) {
    this.gaps = gaps;
    const left = gaps.reduce((sum, [begin, end]) => sum + end - begin, 0), short = Math.max(1, (duration - left) * GAP_SHARE);
    this.times = [0]; this.places = [0];
    for (const [begin, end] of gaps) {
      const place = this.places[this.places.length - 1] + begin - this.times[this.times.length - 1];
      this.times.push(begin, end); this.places.push(place, place + Math.min(short, end - begin));
    }
  }
  place(time) { return this.gaps.length ? between(this.times, this.places, time) : time; }
  time(place) { return this.gaps.length ? between(this.places, this.times, place) : place; }
  /** The parts of a span outside gaps. */
  busy(from, to) {
    const found = [];
    let begun = from;
    for (const [begin, end] of this.gaps) {
      if (end <= from || begin >= to) continue;
      if (begin > begun) found.push([begun, begin]);
      begun = end;
    }
    if (begun < to) found.push([begun, to]);
    return found;
  }
}

/** On lines between points; before the first and behind the last one for one. */
function between(xs, ys, x) {
  let at = firstAt(xs, x);
  if (at === 0) return ys[0] + x - xs[0];
  if (at === xs.length) return ys[at - 1] + x - xs[at - 1];
  return ys[at - 1] + (x - xs[at - 1]) / (xs[at] - xs[at - 1]) * (ys[at] - ys[at - 1]);
}
