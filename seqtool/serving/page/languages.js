// The choice of languages: only directions for which the server has a model can be chosen.

const AUTO = "auto";
const STORE = "seqtool-languages";

export class Languages {
  constructor({ source, target, swap }, onChange) {
    Object.assign(this, { source, target, swap, onChange });
    this.detected = "";
    this.list = [];
    source.addEventListener("change", () => this.#changed());
    target.addEventListener("change", () => this.#changed());
  }

  /** Offer languages; what was chosen last, or is in the address of the page, is chosen again. */
  offer(list, settings) {
    this.list = list;
    const sources = list.filter((language) => this.#targets(language.code).length);
    this.source.replaceChildren(...(sources.length > 1 ? [new Option("Detect language", AUTO)] : []), ...sources.map(option));
    const wanted = { ...settings, ...readStore(), ...Object.fromEntries(new URLSearchParams(location.search)) };
    choose(this.source, wanted.source);
    this.#fillTargets(wanted.target);
  }

  get pair() {
    return { source: this.source.value, target: this.target.value };
  }

  /** The language of the text, as far as it is known. */
  get from() {
    return this.source.value === AUTO ? this.detected : this.source.value;
  }

  name(code) {
    return this.list.find((language) => language.code === code)?.name ?? code;
  }

  /** Show which language was detected ("": none). */
  show(detected) {
    this.detected = detected;
    const first = this.source.options[0];
    if (first?.value === AUTO) first.text = detected ? `${this.name(detected)} (auto)` : "Detect language";
    this.#allowSwap();
  }

  /** Exchange the languages. */
  exchange() {
    const { from } = this;
    choose(this.source, this.target.value);
    this.#fillTargets(from);
    this.#changed();
  }

  /** Choose a language to translate into. */
  translateInto(code) {
    choose(this.target, code);
    this.#changed();
  }

  /** The languages that a text of a language can be translated into. */
  #targets(code) {
    return (this.list.find((language) => language.code === code)?.targets ?? []).filter((target) => target !== code);
  }

  others(code) {
    return this.#targets(code);
  }

  #fillTargets(wanted) {
    const { value } = this.source;
    const codes = value === AUTO ? new Set(this.list.flatMap(({ code }) => this.#targets(code))) : new Set(this.#targets(value));
    this.target.replaceChildren(...this.list.filter(({ code }) => codes.has(code)).map(option));
    choose(this.target, wanted);
    this.#allowSwap();
  }

  #changed() {
    this.detected = "";
    this.show("");
    this.#fillTargets(this.target.value);
    localStorage.setItem(STORE, JSON.stringify(this.pair));
    this.onChange();
  }

  #allowSwap() {
    const { from } = this;
    const isPossible = Boolean(from) && this.#targets(this.target.value).includes(from);
    this.swap.disabled = !isPossible;
    this.swap.title = isPossible || !from ? "" : `There is no model from ${this.name(this.target.value)} to ${this.name(from)}`;
  }
}

function option({ code, name }) {
  return new Option(name, code);
}

function choose(select, value) {
  if ([...select.options].some((one) => one.value === value)) select.value = value;
}

function readStore() {
  try {
    return JSON.parse(localStorage.getItem(STORE)) ?? {};
  } catch {
    return {};
  }
}
