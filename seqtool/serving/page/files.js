// Files that are dropped on the page or chosen: each is sent, and its translation offered for download.

import { postFile } from "./api.js";

export class Files {
  /** `wanted()` returns what to send with a file: languages and key. */
  constructor({ list, input, veil }, wanted) {
    Object.assign(this, { list, input, veil, wanted });
    this.formats = [];
    input.addEventListener("change", () => {
      this.#take(input.files);
      input.value = "";
    });
    let depth = 0;  // of the elements that a file is dragged into and not yet out of
    const show = (change) => {
      depth = Math.max(0, depth + change);
      veil.hidden = depth === 0;
    };
    const withFiles = (act) => (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      act(event);
    };
    addEventListener("dragenter", withFiles(() => show(1)));
    addEventListener("dragleave", withFiles(() => show(-1)));
    addEventListener("dragover", withFiles(() => {}));
    addEventListener("drop", withFiles((event) => {
      show(-Infinity);
      this.#take(event.dataTransfer.files);
    }));
  }

  /** Accept files whose names end so. */
  accept(formats) {
    this.formats = formats;
    this.input.accept = formats.join(",");
  }

  #take(files) {
    for (const file of files) this.#translate(file);
  }

  async #translate(file) {
    const row = document.createElement("li");
    const [name, state] = [part("span", "name", file.name), part("span", "state", "Translating …")];
    const stop = part("button", "round", "✕");
    stop.setAttribute("aria-label", `Remove ${file.name}`);
    stop.type = "button";
    const control = new AbortController();
    stop.addEventListener("click", () => {
      control.abort();
      row.remove();
      this.input.focus();
    });
    row.append(name, state, stop);
    this.list.prepend(row);
    try {
      if (!this.formats.some((ending) => file.name.toLowerCase().endsWith(ending))) {
        throw new Error(`Only files that end in ${this.formats.join(", ")} can be translated.`);
      }
      const answer = await postFile("translate_file", this.wanted(), file, control.signal);
      state.replaceWith(link(answer.translatedFileUrl));
    } catch (problem) {
      if (problem.name === "AbortError") return;
      state.textContent = problem.message;
      state.classList.add("bad");
    }
  }
}

/** Return a link to a translated file; it is on this server, whatever name the server knows itself by. */
function link(address) {
  const name = new URL(address).pathname.split("/").at(-1);
  const anchor = part("a", "", "Download");
  anchor.href = `download_file/${name}`;
  anchor.download = decodeURIComponent(name).replace(/^[^.]*\./, "");
  anchor.setAttribute("aria-label", `Download ${anchor.download}`);
  return anchor;
}

function part(kind, className, text) {
  const element = document.createElement(kind);
  if (className) element.className = className;
  element.textContent = text;
  return element;
}
