"use strict";
// Marks of events: many of one colour are one path.

/** Marks of one colour, drawn together. */
class MarkPath {
  constructor() { this.filled = []; this.lines = []; }
  square(x, y, r) { this.filled.push(x - r, y - r, x + r, y - r, x + r, y + r, x - r, y + r); }
  dot(x, y, r) { this.filled.push(x - r, y, x, y - r, x + r, y, x, y + r); }
  triangle(x, y, r) { this.filled.push(x, y + r, x - r, y - r * 0.6, x, y - r * 0.6, x + r, y - r * 0.6); }
  bar(x, y, r) { this.filled.push(x - 1, y - r, x + 1, y - r, x + 1, y + r, x - 1, y + r); }
  cross(x, y, r) { this.lines.push(x - r, y - r, x + r, y + r, x - r, y + r, x + r, y - r); }
  paint(g, colour) {
    g.fillStyle = g.strokeStyle = colour;
    const f = this.filled, l = this.lines;
    if (f.length) {
      g.beginPath();
      for (let at = 0; at < f.length; at += 8) {
        g.moveTo(f[at], f[at + 1]); g.lineTo(f[at + 2], f[at + 3]); g.lineTo(f[at + 4], f[at + 5]); g.lineTo(f[at + 6], f[at + 7]);
        g.closePath();
      }
      g.fill();
    }
    if (l.length) {
      g.lineWidth = 1.8; g.beginPath();
      for (let at = 0; at < l.length; at += 4) { g.moveTo(l[at], l[at + 1]); g.lineTo(l[at + 2], l[at + 3]); }
      g.stroke(); g.lineWidth = 1;
    }
  }
}
