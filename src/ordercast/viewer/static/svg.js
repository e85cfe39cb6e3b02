"use strict";
// As much of a canvas' context as the painter uses, written as SVG.

class SvgContext {
  /** `names`: what its names begin with, if it is put beside others. */
  constructor(width, height, names = "c") {
    this.names = names; this.width = width; this.height = height; this.parts = []; this.defs = []; this.open = 0; this.saved = [];
    this.globalAlpha = 1; this.lineWidth = 1; this.dash = []; this.path = "";
    this.measure = document.createElement("canvas").getContext("2d");
  }
  save() { this.saved.push(this.open); this.open = 0; }
  restore() { this.parts.push("</g>".repeat(this.open)); this.open = this.saved.pop() ?? 0; }
  beginPath() { this.path = ""; }
  rect(x, y, width, height) { this.path += `M${n(x)} ${n(y)}h${n(width)}v${n(height)}h${n(-width)}z`; }
  moveTo(x, y) { this.path += `M${n(x)} ${n(y)}`; }
  lineTo(x, y) { this.path += `L${n(x)} ${n(y)}`; }
  closePath() { this.path += "z"; }
  clip() {
    const name = `${this.names}${this.defs.length}`;
    this.defs.push(`<clipPath id="${name}"><path d="${this.path}"/></clipPath>`);
    this.parts.push(`<g clip-path="url(#${name})">`); this.open++;
  }
  fill() { if (this.path) this.parts.push(`<path d="${this.path}" fill="${this.fillStyle}"${this.alpha()}/>`); }
  stroke() {
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    if (this.path) this.parts.push(`<path d="${this.path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"${dash}${this.alpha()}/>`);
  }
  fillRect(x, y, width, height) {
    this.parts.push(`<rect x="${n(x)}" y="${n(y)}" width="${n(Math.max(0, width))}" height="${n(Math.max(0, height))}" fill="${this.fillStyle}"${this.alpha()}/>`);
  }
  setLineDash(dash) { this.dash = dash; }
  measureText(text) { this.measure.font = this.font; return this.measure.measureText(text); }
  fillText(text, x, y) {
    const anchor = { left: "start", right: "end", center: "middle" }[this.textAlign];
    const down = this.textBaseline === "middle" ? 4 : this.textBaseline === "top" ? 10 : 0;
    this.parts.push(`<text x="${n(x)}" y="${n(y + down)}" fill="${this.fillStyle}" font-family="sans-serif" font-size="${parseInt(this.font, 10)}" text-anchor="${anchor}"${this.alpha()}>${escaped(text)}</text>`);
  }
  drawImage(canvas, sx, sy, sw, sh, x, y, width, height) {
    const part = document.createElement("canvas");
    part.width = sw; part.height = sh;
    part.getContext("2d").drawImage(canvas, sx, sy, sw, sh, 0, 0, sw, sh);
    this.parts.push(`<image x="${n(x)}" y="${n(y)}" width="${n(width)}" height="${n(height)}" preserveAspectRatio="none" style="image-rendering:pixelated" href="${part.toDataURL()}"/>`);
  }
  alpha() { return this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : ""; }
}

/** Contexts below each other as one document. */
function svgDocument(contexts, title) {
  const width = Math.max(...contexts.map((each) => each.width)), defs = contexts.flatMap((each) => each.defs).join("");
  let height = 0;
  const parts = contexts.map((each) => {
    const text = each.parts.join("\n"), top = height;
    height += each.height;
    return top ? `<g transform="translate(0 ${top})">${text}</g>` : text;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"><title>${escaped(title)}</title><defs>${defs}</defs>${parts.join("\n")}</svg>\n`;
}

function n(number) { return String(Math.round(number * 100) / 100); }

function escaped(text) {
  // Characters that XML does not allow at all are left out.
  return String(text).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "")
    .replace(/[&<>"]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" }[letter]));
}
