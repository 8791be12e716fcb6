// Elements and texts. Whatever is shown becomes a text node: no function here takes HTML.

const svg = "http://www.w3.org/2000/svg";

// h builds an element: h("button.primary", {onclick, title}, "text", child). Attributes that begin with "on" are
// listeners; true is an attribute without a value; false, null and undefined are left out, as attributes and as children.
export function h(tag, attributes, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === false || value == null) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "checked") element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...nodes(children));
  return element;
}

function nodes(children) {
  return children.flat(Infinity).filter((child) => child != null && child !== false && child !== "");
}

// fill replaces what is in an element.
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children));
  return element;
}

// setText changes a text only if it differs, so that a selection in it survives.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const shapes = {
  runs: "M4 6h16M4 12h16M4 18h10", questions: "M9.5 9a2.5 2.5 0 1 1 3.6 2.2c-.8.4-1.1 1-1.1 1.8v.5M12 17v.1M21 12a9 9 0 1 1-18 0a9 9 0 0 1 18 0",
  chat: "M5 5h14a1.5 1.5 0 0 1 1.5 1.5v8A1.5 1.5 0 0 1 19 16h-7l-4.5 4v-4H5a1.5 1.5 0 0 1-1.5-1.5v-8A1.5 1.5 0 0 1 5 5",
  agents: "M12 4v4M6 20v-4a2 2 0 0 1 2-2h8a2 2 0 0 1 2 2v4M12 8v6M10 3h4v4h-4zM4 20h4M16 20h4",
  schedules: "M12 21a9 9 0 1 1 0-18a9 9 0 0 1 0 18M12 7v5l3.5 2",
  light: "M12 8a4 4 0 1 1 0 8a4 4 0 0 1 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6L19 19M19 5l-1.4 1.4M6.4 17.6L5 19",
  dark: "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.500 10.500",
  memory: "M12 4a5 5 0 0 0-5 5a4 4 0 0 0 0 8h1v3h6v-3h2a4 4 0 0 0 1-8a5 5 0 0 0-5-5M12 8v5",
  knowledge: "M5 4.500h9a4 4 0 0 1 4 4v11h-9a4 4 0 0 1-4-4zM5 15.500a4 4 0 0 1 4-4h9M9 8h5",
  system: "M4 5h16v11H4zM9 20h6M12 16v4", close: "M6 6l12 12M18 6L6 18", open: "M9 6l6 6l-6 6", attach: "M19 11l-7.500 7.500a4.500 4.500 0 0 1-6.400-6.400L13 4.300a3 3 0 0 1 4.300 4.300L9.500 16.300a1.500 1.500 0 0 1-2.100-2.100L14.500 7",
  send: "M12 19V5M6 11l6-6l6 6", stop: "M7 7h10v10H7z", keys: "M3 7h18v10H3zM7 10.500v0M11 10.500v0M15 10.500v0M8 14h8", leave: "M14 4h5v16h-5M10 8l-4 4l4 4M6 12h9", plus: "M12 5v14M5 12h14",
};

// icon draws one of the shapes. It says nothing to a screen reader.
export function icon(name) {
  const image = document.createElementNS(svg, "svg");
  image.setAttribute("viewBox", "0 0 24 24");
  image.setAttribute("class", "icon");
  image.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(svg, "path");
  path.setAttribute("d", shapes[name]);
  image.append(path);
  return image;
}

// duration shows seconds: 4 ms, 1.2 s, 3m 05s, 2h 10m.
export function duration(seconds) {
  if (seconds == null || Number.isNaN(seconds)) return "";
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 59.95) return `${seconds.toFixed(seconds < 9.95 ? 1 : 0)} s`;
  const s = Math.round(seconds);
  if (s < 3600) return `${Math.floor(s / 60)}m ${String(s % 60).padStart(2, "0")}s`;
  return `${Math.floor(s / 3600)}h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")}m`;
}

// age shows how long ago a time was, in one unit.
export function age(time) {
  const s = Math.max(0, (Date.now() - new Date(time)) / 1000);
  if (s < 60) return `${Math.floor(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}

// clock shows a time of the day with milliseconds.
export function clock(time) {
  const t = new Date(time);
  return `${t.toLocaleTimeString("en-GB")}.${String(t.getMilliseconds()).padStart(3, "0")}`;
}

export function day(time) {
  return new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

// count shows a number of tokens: 950, 1.2k, 34k, 1.2M.
export function count(n) {
  if (!n) return "0";
  if (n < 1000) return String(n);
  if (n < 999500) return `${(n / 1000).toFixed(n < 9950 ? 1 : 0)}k`;
  return `${(n / 1e6).toFixed(1)}M`;
}

// bytes shows a size: 512 B, 3.4 kB, 12 MB.
export function bytes(n) {
  const [unit, by] = n < 1000 ? ["B", 1] : n < 1e6 ? ["kB", 1e3] : n < 1e9 ? ["MB", 1e6] : ["GB", 1e9];
  return `${by > 1 && n / by < 10 ? (n / by).toFixed(1) : Math.round(n / by)} ${unit}`;
}

// tokens shows a number of tokens with its unit; nothing for none.
export function tokens(n) {
  return n ? `${count(n)} token${n === 1 ? "" : "s"}` : "";
}

// cost shows US dollars of something that has cost, cost_unknown and estimated, and nothing for what costs nothing.
export function cost(of) {
  const dollars = of?.cost ?? of?.cost_usd ?? 0;
  if (!dollars) return of?.cost_unknown ? "unknown" : "";
  const digits = dollars < 0.01 ? 4 : dollars < 1 ? 3 : 2;
  return `${of.cost_unknown ? "≥" : of.estimated ? "≈" : ""}$${dollars.toFixed(digits)}`;
}

// copyButton copies the text that text() returns. A page without TLS has no clipboard, and copies a selection.
export function copyButton(text) {
  const button = h("button.quiet.small", { type: "button", onclick: async () => {
    try {
      await navigator.clipboard.writeText(text());
    } catch {
      const area = h("textarea.unseen", { value: text(), "aria-hidden": "true" });
      button.after(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      button.focus();
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  } }, "Copy");
  return button;
}

export function plural(n, word) {
  return `${n} ${word}${n === 1 ? "" : "s"}`;
}

// oneLine returns the beginning of a text on one line.
export function oneLine(text, most = 240) {
  return (text ?? "").slice(0, most * 2).replace(/\s+/g, " ").trim().slice(0, most);
}

// pretty returns JSON with indents, or the text if it is not JSON.
export function pretty(text) {
  try {
    return JSON.stringify(typeof text === "string" ? JSON.parse(text) : text, null, 2);
  } catch {
    return String(text);
  }
}

// status is a word with a colored dot.
export function status(name, note) {
  return h(`span.status.${safe(name)}`, {}, h("span.dot", { "aria-hidden": "true" }), h("span", {}, name, note && h("span.note", {}, note)));
}

// safe makes a class name of a word of the server, so that it cannot be another one's.
export function safe(name) {
  return `is-${String(name).toLowerCase().replace(/[^a-z_]/g, "")}`;
}

// What a hint names of the API, and where the page has it: words, and the address of a link.
const places = [
  [/POST \/v1\/runs\/(\w+)\/resume with "force": true/, "Continue anyway", (id) => `#/runs/${id}`],
  [/POST \/v1\/runs\/(\w+)\/resume with a member budget/, "Resume with a higher budget", (id) => `#/runs/${id}`],
  [/POST \/v1\/runs\/(\w+)\/resume/, "Resume", (id) => `#/runs/${id}`],
  [/POST \/v1\/runs\/(\w+)\/fork(?: with [^;,]*)?/, "Fork", (id) => `#/runs/${id}`],
  [/POST \/v1\/runs\/(\w+)\/answers(?:\?force=true| with \{[^}]*\})?/, "answer its question", (id) => `#/runs/${id}`],
  [/POST \/v1\/agents\/([\w.-]+)\/runs/, "start a run", (name) => `#/agents/${encodeURIComponent(name)}`],
  [/POST \/v1\/sessions\/[\w-]+\/agent/, "begin a new chat with it", () => "#/chat"],
  [/GET \/v1\/runs\/(\w+)(?:\/questions)?/, "the run", (id) => `#/runs/${id}`],
  [/GET \/v1\/runs\b/, "Runs", () => "#/runs"],
  [/GET \/v1\/agents\b/, "Agents", () => "#/agents"],
  [/GET \/v1\/(models|roles|rags)\b/, "the selector of a new chat", () => "#/chat"],
];

// advice shows a hint, with what it says of the API as what to do in the page.
export function advice(hint) {
  for (const [of, words, to] of places) {
    const found = of.exec(hint);
    if (found) return [advice(hint.slice(0, found.index)), h("a", { href: to(found[1]) }, words), advice(hint.slice(found.index + found[0].length))];
  }
  return hint;
}

// failure shows an error with its hint, and a button if there is something to do.
export function failure(error, again) {
  return h("div.failure", { role: "alert" }, h("p", {}, error.message), error.hint && h("p.hint", {}, advice(error.hint)),
    error.requestID && h("p.hint", {}, "request ", h("code", {}, error.requestID)), again && h("button", { onclick: again }, "Try again"));
}

// dialog shows a form over the page and resolves with what onsubmit returned, or null if it was closed, as it is when the page goes
// to another address.
export function dialog(title, body, submit, onsubmit) {
  return new Promise((resolve) => {
    const problem = h("div");
    const ok = submit && h("button.primary", { type: "submit" }, submit);
    const form = h("form", { method: "dialog" }, h("header", {}, h("h2", { id: "dialog-title" }, title),
      h("button.quiet.square", { type: "button", "aria-label": "Close", onclick: () => box.close() }, icon("close"))), h("div.body", {}, body), problem,
    submit && h("footer", {}, h("button", { type: "button", onclick: () => box.close() }, "Close"), ok));
    let result = null;
    form.addEventListener("submit", async (e) => {
      e.preventDefault();
      ok.disabled = true;
      try {
        result = await onsubmit();
        box.close();
      } catch (error) {
        fill(problem, failure(error));
        ok.disabled = false;
      }
    });
    const leave = () => box.close();
    const box = h("dialog", { "aria-labelledby": "dialog-title", onclose: () => { removeEventListener("hashchange", leave); box.remove(); resolve(result); } }, form);
    addEventListener("hashchange", leave);
    document.body.append(box);
    box.showModal();
  });
}
