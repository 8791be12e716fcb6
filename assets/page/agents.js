// The agents: their graphs, variables and starters, and a form to start one.

import { get, post } from "./api.js";
import { failure, fill, h } from "./dom.js";
import { Graph } from "./graph.js";

export function show(main, context) {
  const list = h("nav.side", { "aria-label": "Agents" });
  const page = h("section.page");
  const search = h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter agents", oninput: () => draw() });
  const view = h("div.split", {}, h("aside", {}, h("div.bar", {}, h("h1", {}, "Agents"), search), list), page);
  fill(main, view);
  let agents = [];
  let name;
  let loading = new AbortController();

  function draw() {
    const word = search.value.toLowerCase();
    fill(list, agents.filter((a) => `${a.name} ${a.description ?? ""}`.toLowerCase().includes(word)).map((a) => h("a.item", { href: `#/agents/${encodeURIComponent(a.name)}`, "aria-current": a.name === name && "page" },
      h("strong", {}, a.name), h("span.hint", {}, a.description || (a.kind === "graph" ? "A graph." : "An agent.")))));
    if (!agents.length) fill(list, h("p.empty", {}, "There are no agents. ", h("code", {}, "loki --install agents"), " copies those that are part of Loki."));
  }

  async function load() {
    try {
      agents = (await get("v1/agents?limit=200")).data;
      context.online();
      draw();
      if (!name) choose();
    } catch (error) {
      if (context.problem(error)) fill(list, failure(error, load));
    }
  }

  async function choose(next) {
    view.classList.toggle("has-page", Boolean(next));
    next ??= innerWidth > 760 ? agents[0]?.name : undefined;
    if (next === name) return;
    name = next;
    loading.abort();
    loading = new AbortController();
    const signal = loading.signal;
    draw();
    if (!name) return fill(page);
    let agent;
    try {
      agent = await get(`v1/agents/${encodeURIComponent(name)}`, signal);
    } catch (error) {
      if (!signal.aborted && context.problem(error)) fill(page, failure(error));
      return;
    }
    const prompt = h("textarea", { rows: 4, id: "prompt", placeholder: "What should the agent do?", onkeydown: (e) => (e.ctrlKey || e.metaKey) && e.key === "Enter" && start.requestSubmit() });
    const fields = (agent.variables ?? []).map((v) => ({ v, input: h("input", { id: `var-${v.name}`, value: v.default ?? "", placeholder: v.default == null ? "required" : "" }) }));
    const model = h("input", { id: "model", list: "models", placeholder: agent.model || "its own" });
    const budget = h("input", { id: "budget", placeholder: "none", inputmode: "decimal", pattern: " *[0-9.]+ *", title: "US dollars, such as 0.50" });
    const models = h("datalist", { id: "models" });
    get("v1/models?limit=200", signal).then((found) => fill(models, found.data.map((m) => h("option", { value: m.id }))), () => {});
    const isGraph = agent.kind === "graph";
    const problem = h("div");
    const button = h("button.primary", { type: "submit" }, "Start run");
    const start = h("form.begin", { onsubmit: async (e) => {
      e.preventDefault();
      button.disabled = true;
      const body = { prompt: prompt.value };
      const variables = Object.fromEntries(fields.filter(({ v, input }) => input.value !== (v.default ?? "")).map(({ v, input }) => [v.name, input.value]));
      if (Object.keys(variables).length) body.variables = variables;
      if (model.value) body.model = model.value;
      if (budget.value.trim()) body.budget = { usd: Number(budget.value) };
      try {
        const run = await post(`v1/agents/${encodeURIComponent(name)}/runs`, body);
        location.hash = `#/runs/${run.id}`;
      } catch (error) {
        fill(problem, failure(error));
        button.disabled = false;
      }
    } }, h("label", { for: "prompt" }, "Prompt"), prompt,
    agent.starters?.length > 0 && h("div.starters", { role: "group", "aria-label": "Starters" }, agent.starters.map((text) => h("button", { type: "button", onclick: () => { prompt.value = text; prompt.focus(); } }, text))),
    fields.map(({ v, input }) => [h("label", { for: input.id }, v.name, v.description && h("span.hint", {}, v.description)), input]),
    h("div.pair", {}, h("div", {}, h("label", { for: "model" }, "Model"), model, models), h("div", {}, h("label", { for: "budget" }, "Budget", h("span.hint", {}, "US dollars")), budget)), problem, h("div.row", {}, button,
      !isGraph && h("a.button", { href: `#/chat?agent=${encodeURIComponent(name)}` }, "Chat with it"), h("a.quiet", { href: `#/runs?agent=${encodeURIComponent(name)}` }, "Its runs")));
    const graph = isGraph && new Graph(`v1/agents/${encodeURIComponent(name)}/graph?format=svg`);
    fill(page, h("header.title", {}, h("a.back", { href: "#/agents" }, "Agents"), h("h2", {}, agent.name), h("span.tag", {}, isGraph ? "graph" : "agent"), agent.model && h("code.hint", {}, agent.model)),
      agent.description && h("p.lead", {}, agent.description), h(isGraph ? "div.halves" : "div", {}, start, graph && graph.element));
  }

  const ready = load();
  choose(context.path[1]);
  return { title: "Agents", ready, update: (route) => choose(route.path[1]), close: () => loading.abort(), keys: { "/": ["filter", () => search.focus()] } };
}
