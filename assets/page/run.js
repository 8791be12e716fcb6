// One run: its graph, its timeline, and what is known of the chosen row.

import { follow, get, poll, post, remove } from "./api.js";
import { form } from "./ask.js";
import { details, overview } from "./details.js";
import { cost, dialog, duration, failure, fill, h, icon, oneLine, safe, setText, status, tokens } from "./dom.js";
import { Graph } from "./graph.js";
import { Jobs } from "./jobs.js";
import { List } from "./list.js";
import { graphRun, stateOf, took } from "./runs.js";
import { Trace, secondsLeft, visitKey } from "./trace.js";

const filters = {
  all: null, nodes: (row) => row.kind === "node" || row.kind === "agent", models: (row) => row.kind === "model", tools: (row) => row.kind === "tool",
  problems: (row) => row.status === "failed" || row.status === "warning" || row.tries?.length > 0,
};
const over = ["done", "failed", "canceled"];

// How far a map has come, and which of its items failed.
function progressOf(row) {
  const p = row.progress;
  const named = p.failed_items ?? [];
  const failed = p.failed ? `, ${p.failed} failed${named.length ? `: ${named.join(", ")}` : ""}${named.length && p.failed > named.length ? ", …" : ""}` : "";
  const left = secondsLeft(row);
  const limit = row.limited?.at_once && p.done < p.total ? `${left === undefined ? "" : `, about ${duration(left)} left`} (${row.limited.at_once} at once)` : "";
  return `${p.done} of ${p.total}${failed}${limit}`;
}

// Until when a call of a node waits for its provider.
function waitOf(row) {
  if (row.limited?.reason === "spending") return row.end || row.limited.waited_ms ? "" : "waits for other calls, because a limit of spending has no room beside them";
  const until = row.limited && !row.end && row.limited.reason !== "concurrency" ? new Date(row.limited.until) : 0;
  return until > Date.now() ? `waits for the provider until ${until.toLocaleTimeString()}` : "";
}

export function show(main, context) {
  const id = context.path[1];
  const at = `v1/runs/${encodeURIComponent(id)}`;
  let query = context.query;
  let trace = new Trace();
  let info = null;
  let visits = new Map(); // of info, by key
  let stream = null;
  let streaming = "";
  let ended = false; // the stream said so
  let folded = new Set();
  let detail = null;
  let dirty = false;
  let questions = [];
  let word = "";
  const wide = matchMedia("(min-width: 1121px)");

  const title = h("h1", {}, "Run");
  const state = h("span.where");
  const buttons = h("div.row.actions");
  const facts = h("dl.facts");
  const asks = h("div.asks");
  const problem = h("div");
  const jobs = new Jobs(at);
  const search = h("input", { type: "search", placeholder: "Find", "aria-label": "Find in the timeline", oninput: () => { word = search.value.toLowerCase(); draw(); } });
  const tabs = h("div.segments", { role: "group", "aria-label": "Rows of the timeline" }, Object.keys(filters).map((name) => h("button", { "data-filter": name, onclick: () => go({ show: name === "all" ? null : name }) }, name)));
  const tail = h("button.quiet", { "aria-pressed": "false", title: "Follow the end of the timeline", onclick: () => { list.follows = !list.follows; tail.setAttribute("aria-pressed", list.follows); draw(); } }, "Follow");
  const number = h("span.hint.number");
  const list = new List({ height: 28, draw: drawRow, label: "Timeline", onchoose: (row, byKeyboard, enter) => { go({ row: row.id }, byKeyboard); if (enter) panel.querySelector("button, a, summary, [tabindex]")?.focus(); }, onfold: fold });
  let known; // resolves once it is known whether the run is that of a graph
  const graph = new Graph(new Promise((resolve) => { known = resolve; }), (node) => { const row = trace.nodes.get(node)?.row; if (row) go({ row: row.id }); });
  const panel = h("section.details", { "aria-label": "Details" });
  const sides = h("div.segments.sides", { role: "group", "aria-label": "View" }, ["timeline", "graph", "about"].map((name) => h("button", { "data-side": name, onclick: () => go({ side: name === "timeline" ? null : name }) }, name)));
  const view = h("div.run", {}, h("header.run-head", {}, h("div.bar", {}, h("a.back", { href: "#/runs" }, "Runs"), title, state, buttons), facts, problem, jobs.element, asks),
    h("div.panes", {}, h("div.pane.left", { "data-side": "graph" }, graph.element),
      h("div.pane.middle", { "data-side": "timeline" }, h("div.bar.slim", {}, sides, tabs, search, tail, number), list.element), panel));
  fill(main, view);
  graph.ready.then((drawn) => { view.classList.toggle("no-graph", !drawn); paintGraph(); });

  // go changes the address, which is the state of the page.
  function go(changed, replace) {
    const all = new URLSearchParams(query);
    for (const [name, value] of Object.entries(changed)) if (value) all.set(name, value); else all.delete(name);
    const to = `#/runs/${id}${all.size ? `?${all}` : ""}`;
    if (replace) { context.replace(to); update(all); } else if (location.hash === to) update(all); else location.hash = to;
  }

  function fold(row, shut) {
    if (!row.children.length || folded.has(row.id) === shut) return false;
    if (shut) folded.add(row.id); else folded.delete(row.id);
    draw();
    return true;
  }

  function drawRow(row, old) {
    const parts = old?.parts ?? { fold: h("button.fold", { tabindex: "-1", "aria-hidden": "true", onclick: (e) => { e.stopPropagation(); fold(row, !folded.has(row.id)); } }, icon("open")), mark: h("span.mark"), title: h("span.title"), text: h("span.text"), tokens: h("span.tokens"), cost: h("span.cost"), time: h("span.time"), bar: h("span.bar-in") };
    const element = old ?? h("div", { role: "treeitem" }, parts.fold, parts.mark, parts.title, parts.text, parts.tokens, parts.cost, parts.time, h("span.track", {}, parts.bar));
    element.parts = parts;
    const open = !folded.has(row.id);
    const look = `row ${row.kind} ${safe(row.status || "none")}${row.children.length ? " has" : ""}${open ? " open" : ""}`;
    if (element.className !== look) element.className = look;
    if (!old) {
      element.style.setProperty("--depth", Math.min(row.depth, 8));
      element.setAttribute("aria-level", row.depth + 1);
    }
    if (row.children.length) element.setAttribute("aria-expanded", open);
    setText(parts.title, row.title + (row.visit > 1 ? ` ·${row.visit}` : ""));
    const text = row.error ?? (row.kind === "model" && !row.end ? row.text.slice(-160) : row.kind === "tool" && row.end ? `${oneLine(row.text, 80)}  →  ${oneLine(row.result, 100)}` : row.answer !== undefined ? `${oneLine(row.text, 100)}  →  ${row.answer}` : row.progress && !row.end ? progressOf(row) : waitOf(row) ? waitOf(row) : row.kind === "node" ? [row.type, (row.targets ?? []).length ? `→ ${row.targets.join(", ")}` : ""].join("  ") : row.text);
    setText(parts.text, oneLine(text));
    const used = usageOf(row);
    setText(parts.tokens, tokens((used?.input_tokens ?? 0) + (used?.output_tokens ?? 0)));
    setText(parts.cost, used?.cost ? cost(used) : ""); // that a price is unknown is said once, of the whole run
    const seconds = row.end ? row.seconds : (Date.now() - row.start) / 1000;
    setText(parts.time, row.status === "note" || row.status === "warning" ? "" : row.end || info?.status === "running" ? duration(seconds) : "");
    const total = Math.max(1, trace.offset(Infinity));
    const left = trace.offset(row.start) / total;
    const width = (trace.offset(row.end || Infinity) / total) - left;
    parts.bar.style.left = `${(left * 100).toFixed(2)}%`;
    parts.bar.style.width = `max(2px, ${(width * 100).toFixed(2)}%)`;
    return element;
  }

  // usageOf returns what a row used: of a visit of a node what the server says, which includes what is not a model call.
  function usageOf(row) {
    if (row.kind !== "node" || row.agentID) return row.usage;
    return trace.visits.get(visitKey(row)) === row ? (visits.get(visitKey(row))?.usage ?? row.usage) : null;
  }

  function later() {
    if (dirty) return;
    dirty = true;
    requestAnimationFrame(() => { dirty = false; draw(); });
  }

  function draw() {
    const filter = filters[query.get("show")] ?? null;
    const keep = filter || word ? (row) => (!filter || filter(row)) && (!word || `${row.title} ${row.text} ${row.error ?? ""} ${row.result ?? ""} ${row.answer ?? ""}`.toLowerCase().includes(word)) : null;
    const rows = trace.list(keep, folded);
    list.show(rows);
    list.element.classList.toggle("no-cost", !info?.cost);
    setText(number, rows.length === trace.rows.size ? `${trace.count.toLocaleString("en")} events` : `${rows.length.toLocaleString("en")} of ${trace.rows.size.toLocaleString("en")} rows`);
    paintGraph();
    head();
    choose();
  }

  function paintGraph() {
    graph.show(trace.nodes, trace.edges, trace.rows.get(query.get("row"))?.node);
  }

  const shown = {};
  function fact(name, value) {
    shown[name] ??= (() => { const dd = h("dd"); const box = h("div", {}, h("dt", {}, name), dd); facts.append(box); return { box, dd }; })();
    shown[name].box.hidden = !value;
    setText(shown[name].dd, value || "");
  }

  function head() {
    if (!info) return;
    const name = info.agent || info.kind || "chat";
    setText(title, name);
    document.title = `${name} ${id} · Loki`;
    const now = stateOf(info);
    if (state.dataset.now !== `${now}${info.queued ?? ""}`) fill(state, status(now, info.queued ? "queued" : ""), h("code.id", {}, info.id));
    state.dataset.now = `${now}${info.queued ?? ""}`;
    fact("time", duration(took(info)));
    fact("steps", graphRun(info) ? String(info.steps || "") : "");
    fact("tokens", info.tokens ? `${info.tokens.toLocaleString("en")} (${tokens(info.usage?.input_tokens) || "0"} in, ${tokens(info.usage?.output_tokens) || "0"} out)` : "");
    fact("cost", cost(info));
    fact("failures", info.failures ? String(info.failures) : "");
    fact("started", new Date(info.started).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }));
    const can = `${info.status} ${info.kind ?? ""} ${questions.length > 0}`;
    if (buttons.dataset.can === can) return;
    buttons.dataset.can = can;
    fill(buttons, (info.status === "running" || info.status === "suspended") && h("button.danger", { onclick: () => act("cancel") }, "Cancel"),
      info.status !== "running" && info.status !== "done" && !questions.length && h("button.primary", { onclick: resume }, "Resume"),
      graphRun(info) && h("button", { onclick: () => fork() }, "Fork"), h("button", { onclick: compare }, "Compare"),
      info.status !== "running" && h("button.quiet", { onclick: forget }, "Delete"));
  }

  // resume goes on with the run. One that has reached the budget of its request needs a higher one.
  async function resume() {
    if (info.code !== "limit" || !info.budget) return act("resume");
    const units = { tokens: "tokens", usd: "US dollars", seconds: "seconds of work" };
    const inputs = Object.entries(info.budget).map(([bound, n]) => h("input", { id: `budget-${bound}`, name: bound, type: "number", min: "0", step: bound === "tokens" ? "1" : "any", required: true, value: String(bound === "seconds" ? n : 2 * n) }));
    const budget = await dialog("Resume with a higher budget", [h("p.hint", {}, info.error), inputs.map((input) => [h("label", { for: input.id }, `At most, in ${units[input.name]}`), input])], "Resume",
      async () => Object.fromEntries(inputs.map((input) => [input.name, Number(input.value)])));
    if (budget) act("resume", { budget });
  }

  async function act(verb, body) {
    for (const button of buttons.children) button.disabled = true;
    fill(problem);
    try {
      await post(`${at}/${verb}`, body);
    } catch (error) {
      const changed = verb === "resume" && !body?.force && /"force": true/.test(error.hint);
      fill(problem, failure(changed ? Object.assign(new Error(error.message), { requestID: error.requestID }) : error), changed && h("button", { onclick: () => act(verb, { ...body, force: true }) }, "Continue anyway"));
    }
    delete buttons.dataset.can;
    live.again();
  }

  async function forget() {
    const done = await dialog("Delete this run?", h("p", {}, "Its record is removed for good: events, states and answers."), "Delete", async () => {
      if (!over.includes(info.status)) await post(`${at}/cancel`); // only what has ended is removed
      await remove(at);
      return true;
    });
    if (done) location.hash = "#/runs";
  }

  async function compare() {
    const { data } = await get(`v1/runs?limit=50${info.agent ? `&agent=${encodeURIComponent(info.agent)}` : ""}`);
    const others = data.filter((run) => run.id !== info.id);
    const pick = h("select", { "aria-label": "The other run" }, others.map((run) => h("option", { value: run.id, selected: run.id === info.parent?.split("@")[0] }, `${run.id}  ${stateOf(run)}  ${oneLine(run.prompt, 60)}`)));
    const other = await dialog("Compare with", others.length ? pick : h("p", {}, "There is no other run of this agent."), others.length && "Compare", async () => pick.value);
    if (other) location.hash = `#/compare/${other}/${info.id}`;
  }

  // forkable returns the last step after which there is something to run.
  const forkable = () => Math.max(0, (info.steps ?? 0) - (info.status === "done" ? 1 : 0));

  // fork asks for a step and a changed state, and goes to the new run.
  async function fork(step = forkable()) {
    const box = h("div.fields");
    let before = {};
    const inputs = new Map();
    const steps = h("select", { id: "fork-step", onchange: () => load(Number(steps.value)) }, Array.from({ length: forkable() + 1 }, (_, i) => h("option", { value: i, selected: i === step }, i === 0 ? "0 (the start)" : String(i))));
    const added = h("input", { "aria-label": "Name of a new key", placeholder: "new key" });
    const add = (key, value) => {
      const text = typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "";
      const area = h("textarea", { id: `fork-${inputs.size}`, rows: Math.min(8, text.split("\n").length), spellcheck: "false", value: text, oninput: () => label.classList.toggle("changed", area.value !== text) });
      const label = h("label", { for: area.id }, h("code", {}, key), h("span.hint", {}, typeof value === "string" ? "text" : value === undefined ? "new, JSON or text" : "JSON"));
      inputs.set(key, { area, text, value });
      box.append(label, area);
      return area;
    };
    async function load(n) {
      inputs.clear();
      fill(box, h("p.hint", {}, "…"));
      before = (await get(`${at}/state?step=${n}`)).state ?? {};
      fill(box);
      for (const [key, value] of Object.entries(before)) add(key, value);
    }
    try {
      await load(step);
    } catch (error) {
      return fill(problem, failure(error));
    }
    const run = await dialog("Fork", [h("p.hint", {}, "A new run begins with the state after this step. This run stays as it is."), h("label", { for: "fork-step" }, "After step"), steps, box,
      h("div.row", {}, added, h("button", { type: "button", onclick: () => { if (added.value && !inputs.has(added.value)) add(added.value, undefined).focus(); added.value = ""; } }, "Add"))], "Start the fork", async () => {
      const set = {};
      for (const [key, { area, text, value }] of inputs) {
        if (area.value === text && value !== undefined) continue;
        if (typeof value === "string") { set[key] = area.value; continue; }
        try {
          set[key] = JSON.parse(area.value);
        } catch {
          if (value !== undefined) throw new Error(`${key}: this is not JSON.`);
          set[key] = area.value;
        }
      }
      return post(`${at}/fork`, { step: Number(steps.value), set });
    });
    if (run) location.hash = `#/runs/${run.id}`;
  }

  function choose() {
    const row = trace.rows.get(query.get("row"));
    if (detail && detail.of === (row ?? null)) return detail.update();
    if (query.get("row") && !row && streaming !== "over") return; // it is still to come
    list.mark(row?.id ?? "");
    view.classList.toggle("has-row", Boolean(row));
    detail = row ? details(row, { at, info: () => info, usageOf, trace, choose: (other) => go({ row: other.id }), fork: info?.kind === "chat" || info?.kind === "agent" ? null : fork, forkable }) : overview({ info: () => info, trace, choose: (other) => go({ row: other.id }) });
    detail.of = row ?? null;
    const back = row && h("button.quiet.square.shut", { "aria-label": "Close the details", onclick: () => go({ row: null }) }, icon("close"));
    fill(panel, back, wide.matches && asks, detail.element);
    placeQuestions();
    panel.scrollTop = 0;
  }

  // Questions stand above the details where those have a place of their own, unless another row was chosen, else in the head.
  function placeQuestions() {
    const row = trace.rows.get(query.get("row"));
    asks.hidden = wide.matches && Boolean(row) && row.kind !== "question";
    if (wide.matches && asks.parentNode !== panel) panel.prepend(asks);
    else if (!wide.matches && asks.parentNode === panel) view.firstChild.append(asks);
  }
  wide.addEventListener("change", placeQuestions);

  const asked = new Map();
  function drawQuestions() {
    const now = new Set(questions.map((q) => q.id));
    for (const q of questions) {
      if (asked.has(q.id)) continue;
      asked.set(q.id, h("article.card", { "aria-label": `Question of ${q.node || info?.agent}${q.item == null ? "" : ` item ${q.item}`}` }, q.item != null && h("header", {}, h("span.hint", {}, "node ", h("code", {}, q.node), " item ", h("code", {}, q.item))), form(id, q, () => setTimeout(live.again, 150))));
      asks.append(asked.get(q.id));
    }
    for (const [name, card] of asked) if (!now.has(name)) { card.remove(); asked.delete(name); }
  }

  function watch() {
    streaming = "connecting";
    ended = false;
    stream = follow(`${at}/events`, { after: stream?.last() ?? "", complete: () => ended, onstate: (now, detail) => {
      streaming = now;
      if (now === "live" || now === "over") context.online();
      if (now === "lost") context.lost(detail);
      if (now === "failed" && context.problem(detail)) fill(problem, failure(detail));
      if (now === "over") { live.again(); later(); }
    }, onbatch: (batch) => {
      for (const { id: n, name, data } of batch) {
        if (name === "end") { ended = true; continue; }
        trace.add(data, Number(n) || 0);
        if (!data.depth && ["finished", "started", "question", "answer", "job_started", "job_ended"].includes(data.type)) live.again();
      }
      later();
    } });
  }

  // The run itself is asked for from time to time: another tab, or a command, may go on with it.
  const live = poll(async (signal) => {
    const now = await get(at, signal);
    const fresh = !info;
    info = now;
    known(graphRun(info) ? `${at}/graph?format=svg` : "");
    visits = new Map((now.visits ?? []).map((v) => [visitKey(v), v]));
    questions = !over.includes(now.status) && (now.pending?.length || now.waiting) ? (await get(`${at}/questions`, signal)).data : [];
    if (trace.jobs) await jobs.load(signal);
    if (fresh) watch();
    else if (now.status === "running" && (streaming === "over" || streaming === "failed")) { stream.close(); watch(); }
    drawQuestions();
    later();
    return !over.includes(now.status);
  }, { fast: 2000, slow: 10_000, onerror: (error) => context.problem(error) && fill(problem, failure(error, () => { fill(problem); live.again(); })) });
  const clock = setInterval(() => info?.status === "running" && later(), 500);

  function update(now) {
    query = now;
    for (const tab of tabs.children) tab.setAttribute("aria-pressed", tab.dataset.filter === (query.get("show") ?? "all"));
    for (const tab of sides.children) tab.setAttribute("aria-pressed", tab.dataset.side === (query.get("side") ?? "timeline"));
    view.dataset.side = query.get("side") ?? "timeline";
    draw();
  }
  update(query);
  graph.ready.then(() => graph.scale(0));

  const step = (kind, by) => () => {
    const rows = list.rows.filter((row) => row.kind === kind || (kind === "bad" && filters.problems(row)));
    const here = list.rows.indexOf(trace.rows.get(query.get("row")));
    const row = by > 0 ? rows.find((r) => list.rows.indexOf(r) > here) : rows.findLast((r) => list.rows.indexOf(r) < here);
    if (row) go({ row: row.id }, true);
  };
  return {
    title: id, update: (route) => update(route.query), same: (route) => route.path[1] === id,
    close: () => { live.stop(); stream?.close(); clearInterval(clock); list.close(); wide.removeEventListener("change", placeQuestions); },
    escape: () => query.get("row") && go({ row: null }),
    keys: {
      j: ["next row", () => { list.element.focus(); list.choose(list.rows.findIndex((r) => r.id === list.chosen) + 1, true); }], k: ["previous row", () => { list.element.focus(); list.choose(list.rows.findIndex((r) => r.id === list.chosen) - 1, true); }],
      n: ["next node", step("node", 1)], p: ["previous node", step("node", -1)], e: ["next problem", step("bad", 1)],
      "/": ["find", () => search.focus()], z: ["fold all nodes, or none", () => { folded = folded.size ? new Set() : new Set([...trace.rows.values()].filter((r) => r.children.length).map((r) => r.id)); draw(); }],
      f: ["follow the end", () => tail.click()], v: ["timeline, graph or about", () => { const sides = ["timeline", "graph", "about"]; const next = sides[(sides.indexOf(view.dataset.side) + 1) % 3]; go({ side: next === "timeline" ? null : next }); }],
    },
  };
}
