// Which words of a text and its translation belong together, from tokens and their alignment.

const BYTE = /^<0x([0-9A-F]{2})>$/;
const WORD = /[\p{L}\p{M}\p{N}]/u;
const SPACELESS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
const LOOKAHEAD = 24;  // characters in which a token is searched whose tokenizer writes the text differently

/** Return [start, end] in the text of each token; one that is not found there is empty. */
function findTokens(text, tokens) {
  const found = [];
  let position = 0;
  for (const [written, count] of joinBytes(tokens)) {
    const body = written.replaceAll("\u2581", " ").trim();
    while (text[position] === " ") position++;
    const at = body ? text.slice(position, position + body.length + LOOKAHEAD).indexOf(body) : 0;
    const start = position + Math.max(at, 0);
    position = at < 0 ? position : start + body.length;
    for (let i = 0; i < count; i++) found.push([at < 0 ? position : start, position]);
  }
  return found;
}

/** Return each token and 1, but neighbouring bytes as the characters that they make, with the number of their bytes. */
function joinBytes(tokens) {
  const joined = [];
  let bytes = [];
  for (const token of [...tokens, ""]) {
    const byte = BYTE.exec(token);
    if (byte) {
      bytes.push(parseInt(byte[1], 16));
      continue;
    }
    if (bytes.length) joined.push([new TextDecoder().decode(new Uint8Array(bytes)), bytes.length]);
    bytes = [];
    joined.push([token, 1]);
  }
  return joined.slice(0, -1);
}

/** Gather tokens into words: [start, end] of each, and the word of each token (-1: punctuation). */
function findWords(text, tokens) {
  const words = [];
  const wordOf = findTokens(text, tokens).map(([start, end]) => {
    if (!WORD.test(text.slice(start, end))) return -1;
    const last = words.at(-1);
    const goesOn = last && last[1] >= start && isInWord(text, start);
    if (goesOn) last[1] = Math.max(last[1], end);
    else words.push([start, end]);
    return words.length - 1;
  });
  return { words, wordOf };
}

function isInWord(text, index) {
  const before = text.slice(Math.max(0, index - 1), index);
  const after = text.slice(index, index + 1);
  return WORD.test(before) && WORD.test(after) && !(SPACELESS.test(before) && SPACELESS.test(after));
}

/** Return the words of a source line and of its translation, and which belong together. */
export function linkWords(sourceText, line) {
  const source = findWords(sourceText, line.source_tokens ?? []);
  const target = findWords(line.text, line.tokens ?? []);
  const links = target.words.map(() => new Set());
  for (const [src, tgt] of line.alignment ?? []) {
    const [from, to] = [source.wordOf[src], target.wordOf[tgt]];
    if (from >= 0 && to >= 0) links[to].add(from);
  }
  return { source: source.words, target: target.words, links };
}

/** Return a text as nodes, its words as elements of class "word" with their number. */
export function drawWords(text, words) {
  const nodes = [];
  let done = 0;
  words.forEach(([start, end], number) => {
    const word = document.createElement("span");
    word.className = "word";
    word.dataset.word = number;
    word.textContent = text.slice(start, end);
    nodes.push(text.slice(done, start), word);
    done = end;
  });
  return [...nodes, text.slice(done)];
}
