// Requests to the server, and what is wrong with an answer in one sentence. Knows nothing of the page.

/** What went wrong, as a sentence, and the seconds after which to try again (0: not by itself). */
export class Problem extends Error {
  constructor(message, retryAfter = 0) {
    super(message);
    this.retryAfter = retryAfter;
  }
}

const LOST = "The server cannot be reached. It is asked again in a moment.";

async function fetchOrExplain(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(LOST, 3);
  }
  if (response.ok) return response.json().catch((error) => {
    throw error.name === "AbortError" ? error : new Problem(LOST, 3);
  });
  throw await explain(response);
}

async function explain(response) {
  const said = await response.json().then((body) => body.error, () => "");
  const wait = Math.min(Number(response.headers.get("Retry-After")) || 0, 3600);
  const when = wait > 1 ? `in ${wait} seconds` : "in a moment";
  if (response.status === 429) return new Problem(`That was a lot of requests. The next one is sent ${when}.`, wait || 10);
  if (response.status === 503) return new Problem(`The server is busy. It is asked again ${when}.`, wait || 3);
  if (response.status === 403) return new Problem("This API key is not valid here.");
  if (response.status === 413) return new Problem("This is too much text for one request.");
  if (response.status >= 500) return new Problem("The server could not translate this; its log says why.");
  return new Problem(String(said || `The server answered with status ${response.status}.`).replace(/^Invalid request: /, ""));
}

export function getJson(path) {
  return fetchOrExplain(path, {});
}

export function postJson(path, values, signal) {
  return fetchOrExplain(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(values), signal });
}

export function postFile(path, values, file, signal) {
  const form = new FormData();
  for (const [name, value] of Object.entries(values)) form.append(name, value);
  form.append("file", file);
  return fetchOrExplain(path, { method: "POST", body: form, signal });
}
