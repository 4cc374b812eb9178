// What all charts of a page share: elements, numbers as people read them, ticks of an axis.
// The page puts these files together in one function of its own. Every text is set as text, never as markup.
"use strict";
const NS = "http://www.w3.org/2000/svg";
const MARGIN = { left: 58, right: 26, top: 10, bottom: 40 };

function element(parent, name, attributes, text) {
  const made = name.startsWith("html:") ? document.createElement(name.slice(5)) : document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.appendChild(made);
  return made;
}

function shown(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e5 || size < 1e-2)) return value.toExponential(1);
  return value.toLocaleString("en", { maximumFractionDigits: size >= 100 ? 0 : size >= 1 ? 1 : 3 });
}

function ticks(low, high, number) {
  const rough = (high - low) / number;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const found = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-9; tick += step) found.push(tick);
  return found.map((tick) => (Math.abs(tick) < step * 1e-9 ? 0 : tick));
}

function nearest(steps, wanted) {
  let best = 0;
  steps.forEach((step, place) => { if (Math.abs(step - wanted) < Math.abs(steps[best] - wanted)) best = place; });
  return best;
}

function replaceStill(figure, box) {
  const still = figure.querySelector(".still");
  figure.insertBefore(box, still || figure.querySelector("script"));
  if (still) still.remove();
}

// Beside the pointer, where there is room.
function showTip(tip, box, event) {
  tip.hidden = false;
  const around = box.getBoundingClientRect();
  const left = event.clientX - around.left;
  const beside = left > around.width / 2 ? left - tip.offsetWidth - 14 : left + 14;
  tip.style.left = `${Math.max(0, Math.min(beside, around.width - tip.offsetWidth))}px`;
  tip.style.top = `${event.clientY - around.top + 12}px`;
}
