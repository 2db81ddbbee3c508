// The translation that is shown: its lines, the words that belong together on both sides, and other translations.

import { drawWords, linkWords } from "./words.js";

export class Result {
  /** `findOthers(line)` returns a promise of other translations of a line. */
  constructor({ translation, mirror, text }, findOthers) {
    Object.assign(this, { translation, mirror, text, findOthers });
    this.lines = [];
    translation.addEventListener("pointerover", (event) => this.#pointTo(event.target));
    translation.addEventListener("pointerleave", () => this.#mark());
    translation.addEventListener("focusin", (event) => this.#pointTo(event.target));
    translation.addEventListener("focusout", () => this.#mark());
    translation.addEventListener("click", (event) => this.#click(event));
    translation.addEventListener("keydown", (event) => this.#press(event));
    text.addEventListener("pointermove", (event) => this.#pointToSource(document.elementsFromPoint(event.clientX, event.clientY)));
    text.addEventListener("pointerleave", () => this.#mark());
    document.addEventListener("selectionchange", () => document.activeElement === text && this.#pointToCaret());
  }

  /** Show lines, each with its source, in a language. */
  show(lines, language) {
    this.lines = lines;
    this.language = language;
    this.translation.lang = language;
    this.translation.replaceChildren(...lines.map((line, number) => this.#draw(line, number)));
    this.#drawMirror();
  }

  /** Say that the text is no longer the one that was translated. */
  outdate() {
    this.mirror.textContent = `${this.text.value}\n`;
    this.isCurrent = false;
  }

  get content() {
    return this.lines.map((line) => line.text).join("\n");
  }

  #draw(line, number) {
    const paragraph = document.createElement("p");
    paragraph.dir = "auto";
    paragraph.dataset.line = number;
    line.linked = linkWords(line.source, line);
    paragraph.append(...drawWords(line.text, line.linked.target));
    for (const word of paragraph.children) word.tabIndex = -1;
    return paragraph;
  }

  #drawMirror() {
    this.isCurrent = this.lines.map((line) => line.source).join("\n") === this.text.value;
    if (!this.isCurrent) return;
    this.mirror.replaceChildren(...this.lines.flatMap((line, number) => {
      const part = document.createElement("span");
      part.dataset.line = number;
      part.append(...drawWords(line.source, line.linked.source));
      return [part, "\n"];
    }));
  }

  // Words that belong together

  #pointTo(element) {
    const word = element.closest(".word");
    if (!word || !this.isCurrent) return this.#mark();
    const line = Number(word.parentElement.dataset.line);
    const number = Number(word.dataset.word);
    return this.#mark(line, this.lines[line].linked.links[number], [number]);
  }

  #pointToSource(elements) {
    const word = elements.find((element) => element.matches("#mirror .word"));
    if (!word || !this.isCurrent) return this.#mark();
    const line = Number(word.parentElement.dataset.line);
    const number = Number(word.dataset.word);
    const targets = this.lines[line].linked.links.flatMap((sources, target) => (sources.has(number) ? [target] : []));
    return this.#mark(line, [number], targets);
  }

  #pointToCaret() {
    const { value, selectionStart } = this.text;
    const before = value.slice(0, selectionStart);
    const line = before.split("\n").length - 1;
    const column = selectionStart - before.lastIndexOf("\n") - 1;
    const words = this.isCurrent ? this.lines[line]?.linked.source ?? [] : [];
    const number = words.findIndex(([start, end]) => start <= column && column <= end);
    this.#pointToSource(number < 0 ? [] : [this.mirror.children[line].children[number]]);
  }

  #mark(line = -1, sources = [], targets = []) {
    for (const word of document.querySelectorAll(".linked")) word.classList.remove("linked");
    if (line < 0 || !this.isCurrent) return;
    for (const number of sources) this.mirror.children[line].children[number].classList.add("linked");
    const paragraph = this.#paragraph(line);
    for (const number of targets) paragraph.children[number].classList.add("linked");
  }

  #paragraph(line) {
    return this.translation.querySelector(`p[data-line="${line}"]`);
  }

  // Other translations of a line

  #click(event) {
    const choice = event.target.closest(".alternatives button");
    if (choice) return this.#choose(choice);
    const paragraph = event.target.closest("p[data-line]");
    return paragraph && getSelection().isCollapsed && this.#offerOthers(paragraph);
  }

  async #offerOthers(paragraph) {
    const isOpen = paragraph.nextElementSibling?.matches(".alternatives");
    this.#close();
    const line = this.lines[paragraph.dataset.line];
    if (isOpen || !line.source.trim()) return;
    const list = document.createElement("ul");
    list.className = "alternatives";
    list.setAttribute("aria-label", "Other translations");
    list.append(item("Looking for other translations …"));
    paragraph.after(list);
    try {
      line.others ??= await this.findOthers(line);
    } catch (problem) {
      list.replaceChildren(item(problem.message));
      return;
    }
    const others = line.others.filter((other) => other.text !== line.text);
    list.replaceChildren(...(others.length ? others.map((other) => this.#choice(other)) : [item("There is no other translation")]));
  }

  #choice(other) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", dir: "auto", lang: this.language, textContent: other.text });
    button.other = other;
    const place = item("");
    place.append(button);
    return place;
  }

  #choose(button) {
    const paragraph = button.closest(".alternatives").previousElementSibling;
    const number = Number(paragraph.dataset.line);
    const line = this.lines[number];
    const { text, tokens, alignment } = line;
    line.others = [{ text, tokens, alignment }, ...line.others.filter((other) => other !== button.other && other.text !== text)];
    Object.assign(line, button.other);
    this.#close();
    const fresh = this.#draw(line, number);
    paragraph.replaceWith(fresh);
    this.translation.focus();
  }

  #close() {
    const list = this.translation.querySelector(".alternatives");
    if (list?.contains(document.activeElement)) this.translation.focus();
    list?.remove();
  }

  // Keys: the arrows go from word to word, Enter opens other translations, Escape closes them

  #press(event) {
    const keys = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
    if (event.key === "Escape") this.#close();
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.target.closest(".alternatives")) return;
    if (event.key === "Enter") {
      const paragraph = event.target.closest("p[data-line]") ?? this.#paragraph(this.lines.findIndex((line) => line.text));
      if (paragraph) this.#offerOthers(paragraph);
    } else if (event.key in keys) {
      const words = [...this.translation.querySelectorAll(".word")];
      const place = words.indexOf(event.target);
      const isLeftward = getComputedStyle(event.target.closest("p") ?? this.translation).direction === "rtl";
      const step = keys[event.key] * (isLeftward && Number.isFinite(keys[event.key]) ? -1 : 1);
      const next = place < 0 ? (step > 0 ? 0 : words.length - 1) : Math.min(Math.max(place + step, 0), words.length - 1);
      words[next]?.focus();
    } else return;
    event.preventDefault();
  }
}

function item(text) {
  const place = document.createElement("li");
  place.textContent = text;
  return place;
}
