// Two runs side by side.

import { get } from "./api.js";
import { changes } from "./diff.js";
import { cost, count, duration, failure, fill, h, oneLine, status } from "./dom.js";
import { stateOf, took } from "./runs.js";

export function show(main, context) {
  const view = h("div.view");
  fill(main, view);

  async function load(route) {
    const ids = route.path.slice(1, 3).map((id) => decodeURIComponent(id));
    fill(view, h("p.empty", {}, "…"));
    try {
      const [a, b] = await Promise.all(ids.map((id) => get(`v1/runs/${encodeURIComponent(id)}`)));
      const graphs = a.kind === "graph" && b.kind === "graph"; // others have no state
      const steps = [Number(route.query.get("a") ?? a.steps ?? 0), Number(route.query.get("b") ?? b.steps ?? 0)];
      const diff = graphs ? (await get(`v1/runs/${a.id}/diff?a=${steps[0]}&b=${encodeURIComponent(`${b.id}@${steps[1]}`)}`)).data : null;
      context.online();
      draw(a, b, steps, diff);
    } catch (error) {
      if (context.problem(error)) fill(view, failure(error, () => load(route)));
    }
  }

  function draw(a, b, steps, diff) {
    const go = (i, step) => { const now = [...steps]; now[i] = step; location.hash = `#/compare/${a.id}/${b.id}?a=${now[0]}&b=${now[1]}`; };
    const column = (run, i) => h("article.card", {}, h("header", {}, h("a", { href: `#/runs/${run.id}` }, h("strong", {}, run.agent || run.kind), " ", h("code.id", {}, run.id)), status(stateOf(run))), h("p.prompt", {}, oneLine(run.prompt)),
      diff && h("label", {}, "State after step ", h("select", { onchange: (e) => go(i, Number(e.target.value)) }, Array.from({ length: (run.steps ?? 0) + 1 }, (_, n) => h("option", { value: n, selected: n === steps[i] }, String(n))))));
    const nodes = [...new Set([...(a.nodes ?? []), ...(b.nodes ?? [])].map((n) => n.node))];
    const of = (run, id) => (run.nodes ?? []).find((n) => n.node === id);
    const rows = [["whole run", total(a), total(b)], ...nodes.map((id) => [id, of(a, id), of(b, id)])];
    const cells = (n) => n ? [String(n.visits ?? ""), duration(n.seconds), count(n.tokens), n.cost || n.whole ? cost(n) : "", String(n.failures || "")].map((text) => h("td", {}, text)) : [h("td", { colspan: 5 }, "did not run")];
    const columns = ["Visits", "Time", "Tokens", "Cost", "Failures"];
    const texts = (title, key, same) => (a[key] || b[key]) && h("section.block", {}, h("h3", {}, title), changes(a[key] === b[key] ? [] : [{ key: title.toLowerCase(), before: a[key] || undefined, after: b[key] || undefined }], same));
    fill(view, h("div.bar", {}, h("h1", {}, "Compare"), h("a.button", { href: `#/compare/${b.id}/${a.id}` }, "Swap")), h("div.halves.equal", {}, column(a, 0), column(b, 1)),
      h("section.block", {}, h("h3", {}, diff ? "Nodes" : "Totals"), h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Nodes" }, h("table.nodes", {}, h("thead", {}, h("tr", {}, h("th"), h("th", { colspan: 5, scope: "colgroup" }, a.id), h("th", { colspan: 5, scope: "colgroup" }, b.id)), h("tr", {}, ["Node", ...columns, ...columns].map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, rows.map(([id, x, y]) => h("tr", { class: Boolean(x) !== Boolean(y) && "odd" }, h("th", { scope: "row" }, id), cells(x), cells(y))))))),
      diff ? h("section.block", {}, h("h3", {}, "State"), changes(diff, "Both states are the same.")) : texts("Prompt", "prompt", "Both prompts are the same."),
      texts("Answer", "output", "Both answers are the same."));
  }

  const total = (run) => ({ whole: true, seconds: took(run), tokens: run.tokens, cost: run.cost, cost_unknown: run.cost_unknown, estimated: run.estimated, failures: run.failures });
  load(context);
  return { title: "Compare", update: load, close() {}, keys: {} };
}
