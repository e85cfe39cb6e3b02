"use strict";
// Makes the plots answer: values under the pointer or the keyboard's focus, series that can be switched off, and the run
// of a point. Without it the page has the same plots, and all values in tables.

for (const figure of document.querySelectorAll(".plot")) {
  const data = JSON.parse(figure.querySelector("script").textContent), svg = figure.querySelector("svg");
  const made = (tag, className, text) => {
    const element = document.createElement(tag);
    element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const stage = made("div", "stage"), value = made("div", "value"), run = made("div", "run"), toggles = made("div", "toggles");
  value.hidden = run.hidden = true; value.setAttribute("role", "status");
  svg.replaceWith(stage); stage.append(svg, value); figure.append(toggles, run);
  const labels = new Map(data.series.map((series) => [series.name, series]));
  const buttons = [];

  const show = (point) => {
    const { label, role } = labels.get(point.series);
    value.replaceChildren(made("strong", "", point.y + (data.unit ? ` ${data.unit}` : "")), document.createElement("br"),
      `${label} (${role}) at ${data.x} ${point.x}${point.runs ? `, ${point.runs} runs` : ""}`);
    value.hidden = false;
    value.style.left = `${Math.min(point.left * 100, 60)}%`;
    value.style.top = `calc(${point.top * 100}% + 14px)`;
  };
  const open = (point) => {
    if (!point.config) { run.hidden = true; return; }
    const link = made("a", "", "Open the first run of this point");
    link.href = point.page;
    const command = made("code", "", `ordercast report DIR --runs`);
    const configuration = made("details", ""), text = made("pre", "", point.config);
    configuration.append(made("summary", "", "Its configuration"), text);
    run.replaceChildren(made("strong", "", `${labels.get(point.series).label}, ${data.x} ${point.x}: `),
      ...(point.page ? [link] : ["pages of runs are made by ", command]), configuration);
    run.hidden = false;
  };
  for (const point of data.points) {
    const button = made("button", "point");
    button.type = "button"; button.dataset.series = point.series;
    button.style.left = `${point.left * 100}%`; button.style.top = `${point.top * 100}%`;
    button.setAttribute("aria-label", `${labels.get(point.series).label} at ${point.x}: ${point.y} ${data.unit}`);
    for (const event of ["pointerenter", "focus"]) button.addEventListener(event, () => show(point));
    for (const event of ["pointerleave", "blur"]) button.addEventListener(event, () => { value.hidden = true; });
    button.addEventListener("click", () => open(point));
    buttons.push(button); stage.append(button);
  }
  for (const { name, label } of data.series) {
    const box = document.createElement("input"), words = made("label", "");
    box.type = "checkbox"; box.checked = true;
    box.addEventListener("change", () => {
      const start = `${data.name}-series-${name}-`, own = `${data.name}-name-${name}`;
      for (const part of svg.querySelectorAll("[id]")) {
        if (part.id.startsWith(start) || part.id === own) part.classList.toggle("off", !box.checked);
      }
      for (const button of buttons) if (button.dataset.series === name) button.hidden = !box.checked;
    });
    words.append(box, ` ${label}`); toggles.append(words);
  }
}
for (const hint of document.querySelectorAll(".scripted")) hint.hidden = false;
