// Knowledge bases: what they hold, and a search in them.

import { get, poll, post } from "./api.js";
import { age, bytes, failure, fill, h, plural } from "./dom.js";

export function show(main, context) {
  const list = h("nav.side", { "aria-label": "Knowledge bases" });
  const page = h("section.page");
  const view = h("div.split", {}, h("aside", {}, h("div.bar", {}, h("h1", {}, "Knowledge")), list), page);
  fill(main, view);
  let names = [];
  let name;
  let loading = new AbortController();
  let job = null; // poll of a rebuild

  async function load() {
    try {
      names = (await get("v1/rags?limit=200")).data.map((base) => base.name);
      context.online();
      if (!names.length) fill(list, h("p.empty", {}, "There are no knowledge bases. ", h("code", {}, "loki --rag NAME --rag-add DIR"), " makes one."));
      choose(context.path[1]);
    } catch (error) {
      if (context.problem(error)) fill(list, failure(error, load));
    }
  }

  async function choose(next) {
    view.classList.toggle("has-page", Boolean(next));
    next ??= innerWidth > 760 ? names[0] : undefined;
    if (next === name) return;
    name = next;
    loading.abort();
    loading = new AbortController();
    job?.stop();
    if (names.length) fill(list, names.map((n) => h("a.item", { href: `#/knowledge/${encodeURIComponent(n)}`, "aria-current": n === name && "page" }, h("strong", {}, n))));
    fill(page);
    if (name) await draw(name, loading.signal);
  }

  async function draw(base, signal) {
    const at = `v1/rags/${encodeURIComponent(base)}`;
    let found;
    try {
      found = await get(at, signal);
    } catch (error) {
      if (!signal.aborted && context.problem(error)) fill(page, failure(error, () => draw(base, signal)));
      return;
    }
    const state = h("div", { role: "status" });
    const rebuild = h("button", { onclick: async () => {
      rebuild.disabled = true;
      try {
        watch(await post(`${at}/rebuild`));
      } catch (error) {
        rebuild.disabled = false;
        fill(state, failure(error));
      }
    } }, "Rebuild");
    const watch = ({ id }) => {
      job = poll(async (aborted) => {
        const now = await get(`v1/jobs/${id}`, aborted);
        const p = now.progress;
        if (now.status === "running") { fill(state, h("p.hint", {}, p ? `Rebuilding: ${p.done} of ${plural(p.total, "document")}` : "Rebuilding…")); return true; }
        job.stop();
        if (now.status === "done") draw(base, signal);
        else fill(state, failure(new Error(now.error?.message ?? `The rebuild is ${now.status}.`)));
        return false;
      }, { fast: 500, onerror: (error) => context.problem(error) && fill(state, failure(error)) });
    };
    const query = h("input", { id: "query", type: "search", required: true, placeholder: "Search the documents" });
    const results = h("div.cards");
    const search = h("form.begin", { onsubmit: async (e) => {
      e.preventDefault();
      fill(results, h("p.hint", {}, "…"));
      try {
        const { data } = await post(`${at}/query`, { query: query.value }, signal);
        fill(results, data.length ? data.map((p, i) => h("article.card", { "aria-label": `Passage ${i + 1}` }, h("header", {}, h("strong", {}, p.source), p.heading && h("span.hint", {}, p.heading), h("span.hint", {}, `score ${p.score.toFixed(2)}`)), h("pre.code", { tabindex: "0", role: "region", "aria-label": "passage" }, p.text))) : h("p.empty", {}, "Nothing was found."));
      } catch (error) {
        if (!signal.aborted) fill(results, failure(error));
      }
    } }, h("label", { for: "query" }, "Search"), query, h("div.row", {}, h("button.primary", { type: "submit" }, "Search"), h("a.button", { href: `#/chat?rag=${encodeURIComponent(base)}` }, "Chat with it"), rebuild));
    fill(page, h("header.title", {}, h("a.back", { href: "#/knowledge" }, "Knowledge"), h("h2", {}, base)),
      h("p.lead", {}, [plural(found.files.length, "document"), plural(found.chunks, "chunk"), bytes(found.bytes), `built ${age(found.built)} ago with ${found.embedding_model}`].join(" · ")), state, search, results,
      h("section.block", {}, h("h3", {}, "Sources"), h("ul", {}, found.document_paths.map((path) => h("li", {}, h("code", {}, path))))),
      h("section.block", {}, h("h3", {}, "Documents"), h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Documents" }, h("table.nodes", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Document"), h("th", { scope: "col" }, "Chunks"))),
        h("tbody", {}, found.files.map((f) => h("tr", {}, h("th", { scope: "row" }, f.path, f.not_read && h("span.hint", {}, ` not read: ${f.not_read}`)), h("td", {}, String(f.num_chunks)))))))));
  }

  load();
  return { title: "Knowledge", update: (route) => choose(route.path[1]), close: () => { loading.abort(); job?.stop(); }, keys: {} };
}
