"use strict";

// Curves: a pointer shows the values of all curves at the nearest step.
for (const svg of document.querySelectorAll("svg.curves")) {
  const [xLow, xHigh, xStart, xEnd] = svg.dataset.x.split(" ").map(Number);
  const [yLow, yHigh, yStart, yEnd] = svg.dataset.y.split(" ").map(Number);
  const curves = [...svg.querySelectorAll("path.line")].map((path) => ({
    name: path.dataset.name,
    points: path.getAttribute("d").slice(1).split("L").map((pair) => pair.split(",").map(Number)),
  }));
  const cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
  cursor.setAttribute("class", "cursor");
  cursor.setAttribute("y1", yStart);
  cursor.setAttribute("y2", yEnd);
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  svg.parentNode.append(tip);

  const show = (event) => {
    const box = svg.getBoundingClientRect();
    const scale = box.width / svg.viewBox.baseVal.width;
    const wanted = (event.clientX - box.left) / scale;
    const nearest = curves.map((curve) =>
      curve.points.reduce((a, b) => (Math.abs(b[0] - wanted) < Math.abs(a[0] - wanted) ? b : a)));
    const at = nearest.reduce((a, b) => (Math.abs(b[0] - wanted) < Math.abs(a[0] - wanted) ? b : a))[0];
    const step = Math.round(xLow + (at - xStart) / (xEnd - xStart) * (xHigh - xLow));
    const lines = [svg.dataset.xName + " " + step.toLocaleString("en")];
    nearest.forEach((point, index) => {
      const value = yLow + (point[1] - yStart) / (yEnd - yStart) * (yHigh - yLow);
      lines.push(curves[index].name + " " + Number(value.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 }));
    });
    tip.replaceChildren(...lines.map((line) => Object.assign(document.createElement("div"), { textContent: line })));
    tip.hidden = false;
    cursor.setAttribute("x1", at);
    cursor.setAttribute("x2", at);
    svg.append(cursor);
    const figure = svg.parentNode.getBoundingClientRect();
    const x = box.left - figure.left + at * scale;
    tip.style.left = (x + 12 + tip.offsetWidth > figure.width ? x - 12 - tip.offsetWidth : x + 12) + "px";
    tip.style.top = box.top - figure.top + 4 + "px";
  };
  const hide = () => { tip.hidden = true; cursor.remove(); };
  svg.addEventListener("pointermove", show);
  svg.addEventListener("pointerdown", show);
  svg.addEventListener("pointerleave", hide);
}

// Attention: the maps are drawn already; choosing a sentence, layer or head changes which is shown and how dark its cells are.
const attention = document.getElementById("attention");
if (attention) {
  const maps = JSON.parse(document.getElementById("attention-data").textContent);
  const [sentence, layer, head] = ["sentence", "layer", "head"].map((name) => document.getElementById("attention-" + name));
  const readout = attention.querySelector(".readout");
  const frames = [...attention.querySelectorAll(".map")];
  const bytes = maps.map((map) => Uint8Array.from(atob(map.weights), (char) => char.charCodeAt(0)));
  let shown = [];

  // The weights (rows x columns) of the chosen layer and head, or the mean over all where "all" is chosen.
  const chosenWeights = (index) => {
    const { layers, heads, rows, columns } = maps[index];
    const range = (select, n) => (select.value === "all" ? [...Array(n).keys()] : [Number(select.value)]);
    const found = new Float32Array(rows * columns);
    const parts = range(layer, layers).flatMap((l) => range(head, heads).map((h) => l * heads + h));
    for (const part of parts) {
      const start = part * rows * columns;
      for (let i = 0; i < found.length; i++) found[i] += bytes[index][start + i] / 255 / parts.length;
    }
    return found;
  };
  const draw = () => {
    const index = Number(sentence.value);
    frames.forEach((frame, i) => { frame.hidden = i !== index; });
    shown = chosenWeights(index);
    const highest = Math.max(...shown, 1e-6);
    frames[index].querySelectorAll(".cell").forEach((cell, i) => {
      cell.setAttribute("fill-opacity", (shown[i] / highest).toFixed(3));
    });
    readout.textContent = "Strongest: " + highest.toFixed(2) + ". Point at a cell to read its weight.";
  };
  for (const select of [sentence, layer, head]) select.addEventListener("change", draw);
  frames.forEach((frame, index) => frame.addEventListener("pointerover", (event) => {
    const i = [...frame.querySelectorAll(".cell")].indexOf(event.target);
    if (i < 0) return;
    const { src, tgt, columns } = maps[index];
    readout.textContent = tgt[Math.floor(i / columns)] + " ← " + src[i % columns] + ": " + shown[i].toFixed(2);
  }));
  draw();
}
