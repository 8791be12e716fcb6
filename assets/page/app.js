// The frame of the page: navigation, sign-in, connection, shortcuts.

import { get, key, poll, post } from "./api.js";
import { dialog, failure, fill, h, icon } from "./dom.js";
import * as agents from "./agents.js";
import * as chat from "./chat.js";
import * as compare from "./compare.js";
import * as knowledge from "./knowledge.js";
import * as memory from "./memory.js";
import * as questions from "./questions.js";
import * as run from "./run.js";
import * as runs from "./runs.js";
import * as schedules from "./schedules.js";

const views = { runs, questions, chat, agents, knowledge, compare, schedules, memory };
const places = [["runs", "Runs"], ["questions", "Questions"], ["chat", "Chat"], ["agents", "Agents"], ["knowledge", "Knowledge"], ["schedules", "Schedules"], ["memory", "Memory"]];

const badge = h("span.badge", { hidden: true });
const links = places.map(([name, text]) => h("a", { href: `#/${name}`, "data-view": name }, icon(name), h("span", {}, text), name === "questions" && badge));
links.at(-1).hidden = true; // until the server says that it remembers
const line = h("div.connection", { role: "status", hidden: true });
const main = h("main", { id: "main", tabindex: "-1" });
const leave = h("button.quiet.square", { hidden: true, "aria-label": "Sign out", title: "Sign out", onclick: () => { key.clear(); signIn(); } }, icon("leave"));
const themeButton = h("button.quiet.square", { onclick: nextTheme });

let current = null; // what is shown: {module, route, view}
let asking = false; // whether the sign-in is shown
let lostTimer = 0;

// route reads the address: {path, query} of #/path/to?query.
function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const context = {
  // replace changes the address without a step in the history.
  replace: (hash) => { history.replaceState(null, "", hash); if (current) current.route = route(); },
  online: () => { clearInterval(lostTimer); line.hidden = true; },
  // lost says that a stream broke, and when it is tried again.
  lost: (wait) => {
    clearInterval(lostTimer);
    const until = Date.now() + wait;
    const say = () => { const s = Math.ceil((until - Date.now()) / 1000); fill(line, h("span.dot"), s > 0 ? `Connection lost. Trying again in ${s} s.` : "Connecting…"); };
    say();
    line.hidden = false;
    lostTimer = setInterval(say, 500);
  },
  badge: (n) => { badge.hidden = !n; badge.textContent = n; badge.setAttribute("aria-label", `${n} waiting`); },
  // problem takes an error that says something about the connection or the key, and returns whether it is left to the caller to show.
  problem: (error) => {
    if (error.status === 401) return false;
    if (error.status === 0 || error.status === 502 || error.status === 503) {
      clearInterval(lostTimer);
      fill(line, h("span.dot"), `Connection lost. ${error.message}`);
      line.hidden = false;
      return false;
    }
    return true;
  },
};

function moduleOf({ path }) {
  if (path[0] === "runs" && path[1]) return run;
  return views[path[0]] ?? runs;
}

function navigate() {
  if (asking) return;
  const to = route();
  if (!to.path.length) return context.replace("#/runs"), navigate();
  const module = moduleOf(to);
  const name = to.path[0];
  for (const link of links) {
    if (link.dataset.view === (name === "compare" ? "runs" : name)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (current?.module === module && (current.view.same?.(to) ?? true)) {
    current.route = to;
    return current.view.update(to);
  }
  const first = !current;
  current?.view.close();
  main.className = `is-${module === run ? "run" : name}`;
  scrollTo(0, 0);
  current = { module, route: to, view: module.show(main, { ...context, ...to }) };
  document.title = `${current.view.title} · Loki`;
  if (!first && !current.view.focus?.()) main.focus({ preventScroll: true });
}

// signIn asks for a key. Nothing else is shown until the server has taken one.
async function signIn(message) {
  asking = true;
  current?.view.close();
  current = null;
  count?.stop();
  const input = h("input", { id: "key", type: "password", autocomplete: "current-password", required: true, spellcheck: "false" });
  const problem = h("div", {}, message && h("p.hint", {}, message));
  const button = h("button.primary", { type: "submit" }, "Sign in");
  fill(main, h("form.sign-in", { onsubmit: async (e) => {
    e.preventDefault();
    button.disabled = true;
    key.set(input.value.trim());
    try {
      await post("v1/auth/check");
      asking = false;
      begin();
    } catch (error) {
      key.clear();
      button.disabled = false;
      fill(problem, error.status === 401 ? h("div.failure", { role: "alert" }, h("p", {}, "The server rejected this key.")) : failure(error));
    }
  } }, h("h1", {}, "Sign in"), h("label", { for: "key" }, "API key"), input, problem, button, h("p.hint", {}, h("code", {}, "loki --key add NAME"), " makes one on the server. It is kept in this tab until you close it.")));
  document.title = "Sign in · Loki";
  input.focus();
}

let count; // of questions

function begin() {
  leave.hidden = !key.get();
  get("v1/info").then((info) => { links.at(-1).hidden = info.memory === "off"; }, () => {});
  count?.stop();
  count = poll(async (signal) => { context.badge((await questions.waiting(signal)).length); return false; }, { slow: 10_000, onerror: () => {} });
  navigate();
}

// Themes: as the system says, light, dark.
const themes = ["system", "light", "dark"];
function theme(name) {
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  fill(themeButton, icon(name));
  themeButton.setAttribute("aria-label", `Theme: ${name}`);
  themeButton.title = `Theme: ${name}`;
}
function nextTheme() {
  const next = themes[(themes.indexOf(localStorage.getItem("loki-theme") ?? "system") + 1) % themes.length];
  localStorage.setItem("loki-theme", next);
  theme(next);
}

// Shortcuts.
let prefix = 0; // until when a "g" waits for its second letter
const global = { "g r": ["runs", () => go("runs")], "g q": ["questions", () => go("questions")], "g c": ["chat", () => go("chat")], "g a": ["agents", () => go("agents")], "g k": ["knowledge bases", () => go("knowledge")], "g m": ["memory", () => go("memory")], "g s": ["schedules", () => go("schedules")], t: ["change the theme", nextTheme], "?": ["this list", help] };
const singleKeys = () => localStorage.getItem("loki-keys") !== "off";

function go(name) {
  location.hash = `#/${name}`;
  navigate(); // at once: the next key is meant for the new view
}

function help() {
  if (document.querySelector("dialog")) return;
  const group = (title, keys) => Object.keys(keys).length > 0 && h("section", {}, h("h3", {}, title), h("dl.keys", {}, Object.entries(keys).map(([name, [text]]) => h("div", {}, h("dt", {}, name.split(" ").map((k) => h("kbd", {}, k))), h("dd", {}, text)))));
  const single = h("input", { type: "checkbox", checked: singleKeys(), onchange: () => localStorage.setItem("loki-keys", single.checked ? "on" : "off") });
  dialog("Keyboard", [group("Everywhere", global), group("Here", { ...current?.view.hints, ...current?.view.keys }), group("Lists and forms", { "↑ ↓": ["move in a list"], "← →": ["fold and unfold"], Enter: ["open, or go to the details"], Esc: ["close"], "Ctrl Enter": ["send an answer or a form"] }), h("label.choice", {}, single, "Single keys are shortcuts")]);
}

addEventListener("keydown", (e) => {
  if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || asking || document.querySelector("dialog")) return;
  const typing = e.target.closest?.("input:not([type=checkbox]), textarea, select");
  if (e.key === "Escape") {
    if (typing) typing.blur();
    else current?.view.escape?.();
    return;
  }
  if (typing || !singleKeys()) return;
  let name = e.key;
  if (prefix > Date.now()) name = `g ${e.key}`;
  prefix = e.key === "g" && prefix <= Date.now() ? Date.now() + 1200 : 0;
  const found = global[name] ?? current?.view.keys?.[name];
  if (!found) return;
  e.preventDefault();
  found[1]();
});

addEventListener("hashchange", navigate);
addEventListener("unauthorized", () => asking || signIn(key.get() ? "The key is no longer valid." : ""));

theme(localStorage.getItem("loki-theme") ?? "system");
document.body.append(
  h("a.skip", { href: "#main", onclick: (e) => { e.preventDefault(); main.focus(); } }, "Skip to the content"),
  h("header.top", {}, h("a.brand", { href: "#/runs", "aria-label": "Loki, runs" }, h("span.logo", { "aria-hidden": "true" }), h("span", {}, "loki")), h("nav", { "aria-label": "Main" }, links), line,
    h("div.tools", {}, h("button.quiet.square", { "aria-label": "Keyboard shortcuts", title: "Keyboard shortcuts (?)", onclick: help }, icon("keys")), themeButton, leave)),
  main,
);

// The first request decides whether a key is needed.
async function start() {
  try {
    await get("v1/info");
    if (!asking) begin();
  } catch (error) {
    if (error.status === 401) return;
    if (error.status === 403) return begin(); // the key may do other things
    fill(main, h("div.view", {}, failure(error, () => { fill(main); start(); })));
  }
}
start();
