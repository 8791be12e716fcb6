// The list of runs.

import { get, poll } from "./api.js";
import { age, cost, count, day, duration, failure, fill, h, oneLine, plural, setText, status } from "./dom.js";

const groups = { all: "", working: "running", waiting: "suspended", failed: "failed,interrupted,canceled", done: "done" };

export function working(run) {
  return run.status === "running";
}

// stateOf is the status of a run in a word that says what to do: one with open questions is waiting.
export function stateOf(run) {
  return run.status === "suspended" && run.waiting ? "waiting" : run.status;
}

// graphRun reports whether a run is that of a graph. Others have no super-steps and no state.
export const graphRun = (run) => !run.kind || run.kind === "graph";

// took returns the seconds from the start of a run to its end, or to now.
export function took(run) {
  return ((run.status === "running" ? Date.now() : new Date(run.updated)) - new Date(run.started)) / 1000;
}

export function show(main, context) {
  let query = context.query;
  let pages = 1;
  let runs = [];
  let more = "";
  const chosen = new Set();
  const drawn = new Map(); // row by id

  const search = h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter by agent, prompt or id", value: query.get("q") ?? "", oninput: () => change("q", search.value) });
  const tabs = h("div.segments", { role: "group", "aria-label": "Status" }, Object.keys(groups).map((name) => h("button", { "data-group": name, onclick: () => change("status", name === "all" ? "" : name) }, name)));
  const compare = h("button", { disabled: true, title: "Select two runs", onclick: () => { const [a, b] = chosen; location.hash = `#/compare/${a}/${b}`; } }, "Compare");
  const body = h("tbody");
  const head = ["", "Status", "Agent", "Prompt", "Age", "Time", "Steps", "Tokens", "Cost"];
  const table = h("table.runs", {}, h("thead", {}, h("tr", {}, head.map((name, i) => h(`th.c${i}`, { scope: "col" }, name || h("span.unseen", {}, "Compare"))))), body);
  const note = h("p.empty", { hidden: true });
  const next = h("button.more", { hidden: true, onclick: () => { pages++; live.again(); } }, "Show older runs");
  fill(main, h("div.view.wide", {}, h("div.bar", {}, h("h1", {}, "Runs"), tabs, search, compare, h("a.button.primary", { href: "#/agents" }, "New run")), table, note, next));

  function change(name, value) {
    const all = new URLSearchParams(query);
    if (value) all.set(name, value);
    else all.delete(name);
    context.replace(`#/runs${all.size ? `?${all}` : ""}`);
    update(all);
  }

  function row(run) {
    const cells = head.map((_, i) => h(`td.c${i}`));
    const tr = h("tr", { onclick: (e) => { if (!e.target.closest("a, input, label")) location.hash = `#/runs/${run.id}`; } }, cells);
    const box = h("input", { type: "checkbox", "aria-label": `Compare run ${run.id}`, onchange: () => {
      if (box.checked) chosen.add(run.id); else chosen.delete(run.id);
      compare.disabled = chosen.size !== 2;
    } });
    cells[0].append(box);
    const link = h("a", { href: `#/runs/${run.id}` }, run.agent || run.kind || "chat");
    cells[2].append(link, h("code.id", {}, run.id));
    const seen = {};
    // Only what differs is drawn again: a list that is loaded every two seconds keeps focus and selection.
    return { tr, box, draw(r) {
      const state = stateOf(r);
      const mark = `${state} ${r.waiting ?? 0} ${r.failures ?? 0} ${r.queued ?? ""}`;
      if (seen.mark !== mark) fill(cells[1], status(state, r.waiting ? plural(r.waiting, "question") : r.queued ? "queued" : r.status === "done" && r.failures ? plural(r.failures, "failure") : ""));
      seen.mark = mark;
      setText(cells[3], oneLine(r.status === "failed" && r.error ? r.error : r.prompt));
      cells[3].classList.toggle("bad", r.status === "failed" && Boolean(r.error));
      cells[3].title = oneLine(r.prompt, 600);
      setText(cells[4], age(r.started));
      cells[4].title = day(r.started);
      setText(cells[5], duration(took(r)));
      setText(cells[6], graphRun(r) ? String(r.steps || "") : "");
      setText(cells[7], r.tokens ? count(r.tokens) : "");
      setText(cells[8], cost(r));
    } };
  }

  function draw() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kept = runs.filter((run) => words.every((word) => `${run.id} ${run.agent} ${run.prompt} ${run.status}`.toLowerCase().includes(word)));
    const gone = new Set(drawn.keys());
    let before = null;
    for (const run of kept) {
      let line = drawn.get(run.id);
      if (!line) drawn.set(run.id, (line = row(run)));
      gone.delete(run.id);
      line.draw(run);
      const place = before ? before.nextSibling : body.firstChild;
      if (place !== line.tr) body.insertBefore(line.tr, place);
      before = line.tr;
    }
    for (const id of gone) {
      drawn.get(id).tr.remove();
      drawn.delete(id);
    }
    note.hidden = kept.length > 0;
    if (!kept.length) fill(note, runs.length ? "No run of this list matches the filter." : query.get("status") ? "No run has this status." : ["No runs are recorded. ", h("a", { href: "#/agents" }, "Start an agent"), " to see one."]);
    table.hidden = !kept.length;
    next.hidden = !more;
  }

  async function load(signal) {
    const all = [];
    let cursor = "";
    for (let i = 0; i < pages; i++) {
      const ask = new URLSearchParams({ limit: "50" });
      if (cursor) ask.set("cursor", cursor);
      for (const [name, value] of [["agent", query.get("agent")], ["status", groups[query.get("status") ?? "all"]]]) if (value) ask.set(name, value);
      const list = await get(`v1/runs?${ask}`, signal);
      all.push(...list.data);
      cursor = list.next_cursor;
      if (!cursor) break;
    }
    runs = all;
    more = cursor;
    context.online();
    draw();
    return runs.some(working);
  }

  const live = poll(load, { fast: 1500, slow: 5000, onerror: (error) => {
    if (!context.problem(error)) return;
    note.hidden = false;
    fill(note, failure(error, () => live.again()));
  } });
  const clock = setInterval(draw, 1000);

  function update(now) {
    query = now;
    for (const tab of tabs.children) tab.setAttribute("aria-pressed", tab.dataset.group === (query.get("status") ?? "all"));
    if (document.activeElement !== search) search.value = query.get("q") ?? "";
    live.again();
  }
  update(query);

  return {
    title: "Runs",
    update: (route) => update(route.query),
    close: () => { live.stop(); clearInterval(clock); },
    keys: {
      j: ["next run", () => move(1)], k: ["previous run", () => move(-1)],
      x: ["choose the run to compare it", () => document.activeElement?.closest("tr")?.querySelector("input")?.click()],
      "/": ["filter", () => search.focus()],
    },
  };

  function move(by) {
    const links = [...body.querySelectorAll("a")];
    const at = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
    links[Math.max(0, Math.min(links.length - 1, at + by))]?.focus();
  }
}
