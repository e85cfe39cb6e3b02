"use strict";
// Words of the glossary are explained where they are met: under the pointer, with the focus, at a touch.

class Words {
  /** `words`: for each the forms in which it is found, as a regular expression, the word, and its meaning. */
  constructor(words) {
    this.words = words;
    this.found = new RegExp(`(?<![\\w-])(?:${words.map(([forms], at) => `(?<w${at}>${forms})`).join("|")})(?![\\w-])`, "gi");
    this.tip = made("div", { id: "meaning", role: "tooltip" });
    this.tip.hidden = true;
    document.body.append(this.tip);
    const at = (event) => (event.target instanceof Element ? event.target.closest(".word") : null);
    for (const name of ["pointerover", "focusin"]) document.addEventListener(name, (event) => { const word = at(event); if (word) this.show(word); });
    for (const name of ["pointerout", "focusout"]) document.addEventListener(name, (event) => { if (at(event)) this.tip.hidden = true; });
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") this.tip.hidden = true; });
    document.addEventListener("scroll", () => { this.tip.hidden = true; }, true);
  }
  meaning(term) { const [, , meaning] = this.words.find(([, word]) => word === term); return sentenceOf(meaning); }
  /** Makes an element one that is explained. */
  explain(element, meaning) { element.classList.add("word"); element.tabIndex = 0; element.dataset.meaning = meaning; return element; }
  /** Marks each word of the glossary where a text first has it. */
  mark(root) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT), texts = [], seen = new Set();
    while (walker.nextNode()) if (!walker.currentNode.parentElement.closest("button, summary, svg, .logs, .texts td, .word")) texts.push(walker.currentNode);
    for (const text of texts) {
      const parts = [];
      let end = 0;
      for (const match of text.data.matchAll(this.found)) {
        const place = Object.entries(match.groups).find(([, value]) => value !== undefined)[0].slice(1), [, term, meaning] = this.words[place];
        if (seen.has(term)) continue;
        seen.add(term);
        parts.push(text.data.slice(end, match.index), this.explain(made("span", { text: match[0] }), `${term}: ${meaning}`));
        end = match.index + match[0].length;
      }
      if (parts.length) text.replaceWith(...parts, text.data.slice(end));
    }
  }
  show(word) {
    const { tip } = this, box = word.getBoundingClientRect();
    tip.textContent = word.dataset.meaning; tip.hidden = false;
    word.setAttribute("aria-describedby", "meaning");
    const left = Math.max(4, Math.min(box.left, innerWidth - tip.offsetWidth - 8)), below = box.bottom + 4;
    tip.style.setProperty("left", `${left}px`);
    tip.style.setProperty("top", `${below + tip.offsetHeight > innerHeight ? box.top - tip.offsetHeight - 4 : below}px`);
  }
}

function sentenceOf(text) { return `${text[0].toUpperCase()}${text.slice(1)}.`; }
