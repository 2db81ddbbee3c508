// The page: what is typed is translated after a short pause; an answer to an older text is never shown over a newer one.

import { getJson, postJson, Problem } from "./api.js";
import { Files } from "./files.js";
import { Languages } from "./languages.js";
import { Result } from "./result.js";

const PAUSE = 300;  // milliseconds without a key before the text is translated
const N_BEST = 4;  // the most that the server gives: the best and three others
const LONG = 280;  // characters from which the text is written smaller

const at = (id) => document.getElementById(id);
const page = document.documentElement;
const text = at("text");
const note = at("note");

const languages = new Languages({ source: at("source"), target: at("target"), swap: at("swap") }, () => translate(0));
const result = new Result({ translation: at("translation"), mirror: at("mirror"), text }, findOthers);
const files = new Files({ list: at("files"), input: at("file"), veil: at("drop") }, () => ({ ...languages.pair, ...key() }));

let settings = { charLimit: -1, keyRequired: false };
let request = new AbortController();
let timer = 0;

// Translating

/** Translate the text after a pause; what is under way is given up. */
function translate(pause) {
  clearTimeout(timer);
  request.abort();
  request = new AbortController();
  count();
  if (!text.value.trim()) return clear();
  say("");
  const over = countOver();
  if (over > 0) return stop(`The text is ${over.toLocaleString("en")} characters too long.`);
  if (settings.keyRequired && !at("key").value) return stop("This server needs an API key.");
  timer = setTimeout(send, pause, request.signal, text.value);
}

async function send(signal, source) {
  page.classList.add("waiting");
  try {
    const answer = await postJson("seqtool/translate", { q: source, ...languages.pair, ...key() }, signal);
    if (signal.aborted) return;
    show(source, answer);
  } catch (problem) {
    if (signal.aborted) return;
    say(problem instanceof Problem ? problem.message : "Something is wrong with this page; reload it.", true);
    if (problem.retryAfter) timer = setTimeout(send, problem.retryAfter * 1000, signal, source);
    if (!(problem instanceof Problem)) throw problem;
  }
  page.classList.remove("waiting");
}

function show(source, answer) {
  const [detected] = answer.detectedLanguage ?? [];
  languages.show(detected?.confidence ? detected.language : "");
  const sources = source.split("\n");
  const from = detected?.language ?? languages.pair.source;
  const into = languages.pair.target;
  say("");
  page.classList.remove("empty");
  result.show(answer.texts[0].lines.map((line, number) => ({ ...line, source: sources[number], from, into })), into);
  if (from === into) sayNothingToDo(into);
}

async function findOthers({ source, from, into }) {
  const answer = await postJson("seqtool/translate", { q: source, source: from, target: into, n_best: N_BEST, ...key() });
  return answer.texts[0].lines[0].hypotheses ?? [];
}

function clear() {
  stop("");
  languages.show("");
  result.show([], languages.pair.target);
  page.classList.add("empty");
}

function stop(message) {
  page.classList.remove("waiting");
  say(message, Boolean(message));
}

function key() {
  return settings.keyRequired ? { api_key: at("key").value } : {};
}

// What the page says

function say(message, isBad = false) {
  note.textContent = message;
  note.classList.toggle("bad", isBad);
}

function sayNothingToDo(code) {
  say(`The text seems to be in ${languages.name(code)} already. `);
  const [other] = languages.others(code);
  if (!other) return;
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "plain", textContent: `Translate it into ${languages.name(other)}` });
  button.addEventListener("click", () => {
    languages.translateInto(other);
    text.focus();
  });
  note.append(button);
}

function countOver() {
  return settings.charLimit < 0 ? 0 : [...text.value].length - settings.charLimit;
}

function count() {
  const [length, limit] = [[...text.value].length, settings.charLimit];
  const left = limit - length;
  const format = (number) => number.toLocaleString("en");
  at("count").textContent = limit < 0 ? (length ? format(length) : "") : length ? `${format(left)} characters left` : `Up to ${format(limit)} characters`;
  at("count").classList.toggle("over", limit >= 0 && left < 0);
  at("clear").hidden = !length;
  page.classList.toggle("long", length > LONG);
  result.outdate();
}

// Controls

text.addEventListener("input", (event) => translate(/paste|drop/i.test(event.inputType ?? "") ? 0 : PAUSE));
text.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) translate(0);
});
at("key-field").addEventListener("submit", (event) => {
  event.preventDefault();
  translate(0);
});
at("key").addEventListener("input", () => {
  sessionStorage.setItem("seqtool-key", at("key").value);
  translate(PAUSE);
});
at("clear").addEventListener("click", () => {
  text.value = "";
  translate(0);
  text.focus();
});
at("swap").addEventListener("click", () => {
  if (result.content) text.value = result.content;
  languages.exchange();
});
addEventListener("online", () => text.value && translate(0));

at("copy").addEventListener("click", async () => {
  const isDone = await navigator.clipboard?.writeText(result.content).then(() => true, () => false) ?? false;
  at("copied").textContent = isDone || copyFromField(result.content) ? "Copied" : "Copying is not allowed here";
  setTimeout(() => { at("copied").textContent = ""; }, 2000);
});

/** Copy where the clipboard is only for pages that come over HTTPS. */
function copyFromField(content) {
  const field = document.createElement("textarea");
  field.value = content;
  document.body.append(field);
  field.select();
  const isDone = document.execCommand("copy");
  field.remove();
  at("copy").focus();
  return isDone;
}

// Light and dark: as the system has it, or as chosen here

const dark = matchMedia("(prefers-color-scheme: dark)");

function isDark() {
  return page.dataset.theme ? page.dataset.theme === "dark" : dark.matches;
}

function paint(theme) {
  if (theme) page.dataset.theme = theme;
  at("theme").setAttribute("aria-pressed", isDark());
}

at("theme").addEventListener("click", () => {
  const theme = isDark() ? "light" : "dark";
  localStorage.setItem("seqtool-theme", theme);
  paint(theme);
});
dark.addEventListener("change", () => paint(""));
paint(localStorage.getItem("seqtool-theme"));

// Start

async function start() {
  page.classList.add("empty");
  let list;
  try {
    [list, settings] = await Promise.all([getJson("languages"), getJson("frontend/settings")]);
  } catch (problem) {
    say(problem.message, true);
    setTimeout(start, 3000);
    return;
  }
  at("key-field").hidden = !settings.keyRequired;
  at("key").value = sessionStorage.getItem("seqtool-key") ?? "";
  languages.offer(list, { source: settings.language.source.code, target: settings.language.target.code });
  files.accept(settings.supportedFilesFormat);
  at("formats").textContent = settings.supportedFilesFormat.map((ending) => ending.slice(1)).join(" · ");
  text.value ||= new URLSearchParams(location.search).get("q") ?? "";
  translate(0);
}

start();
