// What is remembered for later conversations, and what models propose.

import { change, get, post, remove } from "./api.js";
import { age, dialog, failure, fill, h, plural } from "./dom.js";

export function show(main, context) {
  const proposals = h("div.cards", { role: "group", "aria-label": "Proposals" });
  const facts = h("div.cards", { role: "group", "aria-label": "Facts" });
  const head = h("p.hint", { role: "status" });
  const query = h("input", { id: "find", type: "search", placeholder: "Find facts by words", oninput: () => { clearTimeout(timer); timer = setTimeout(load, 250); } });
  const text = h("textarea", { id: "fact", rows: 2, required: true, maxlength: 2000, placeholder: "Something to remember in later conversations" });
  const problem = h("div");
  const form = h("form.begin", { onsubmit: async (e) => {
    e.preventDefault();
    if (await attempt(problem, () => post("v1/memory", { text: text.value }))) text.value = "";
  } }, h("label", { for: "fact" }, "New fact"), text, problem, h("div.row", {}, h("button.primary", { type: "submit" }, "Remember")));
  fill(main, h("div.view", {}, h("div.bar", {}, h("h1", {}, "Memory"), head), proposals, form, h("div.begin", {}, h("label", { for: "find" }, "Search"), query), facts));
  let timer = 0;
  let loading = new AbortController();

  // attempt does something and shows the facts anew, or what went wrong. It returns whether it was done.
  async function attempt(place, act) {
    try {
      await act();
    } catch (error) {
      if (context.problem(error)) fill(place, failure(error));
      return false;
    }
    fill(place);
    await load();
    return true;
  }

  async function load() {
    loading.abort();
    loading = new AbortController();
    const { signal } = loading;
    const words = query.value.trim();
    try {
      const all = (await get("v1/memory", signal)).data;
      const found = words ? (await get(`v1/memory?limit=200&q=${encodeURIComponent(words)}`, signal)).data : all.filter((f) => !f.proposed);
      context.online();
      const proposed = all.filter((f) => f.proposed);
      fill(head, `${plural(all.length - proposed.length, "fact")}${proposed.length ? `, ${plural(proposed.length, "proposal")}` : ""}`);
      fill(proposals, proposed.map((f) => proposal(f, all)));
      fill(facts, found.length ? found.map(fact) : h("p.empty", {}, words ? "Nothing was found." : "Nothing is remembered yet."));
    } catch (error) {
      if (!signal.aborted && context.problem(error)) fill(facts, failure(error, load));
    }
  }

  const about = (f) => h("span.hint", {}, [f.scope === "user" ? "" : `${f.scope} ${f.of}`, f.by === "model" ? "proposed by a model" : "", f.pinned ? "with each question" : "", f.expires ? `until ${f.expires.slice(0, 10)}` : "", ...(f.tags ?? []).map((tag) => `#${tag}`), `${age(f.updated)} ago`].filter(Boolean).join(" · "));
  const body = (f) => h("div.markdown.plain", {}, f.text);
  const at = (f) => `v1/memory/${encodeURIComponent(f.id)}`;

  // proposal shows what a model proposes, with all that it says.
  function proposal(f, all) {
    const problem = h("div");
    const of = f.changes && all.find((other) => other.id === f.changes);
    const what = f.forgets ? "Forget" : f.changes ? "Change" : "Remember";
    return h("article.card", { "aria-label": `Proposal: ${f.title}` }, h("header", {}, h("strong", {}, `${what}: ${f.title}`), about(f)), of && h("del.markdown.plain", {}, of.text), body(f),
      f.tainted && h("p.warning", {}, "The model had read what others wrote. Look closely before you accept."), problem,
      h("div.row", {}, h("button.primary", { onclick: () => attempt(problem, () => post(`${at(f)}/accept`)) }, "Accept"), h("button", { onclick: () => attempt(problem, () => remove(at(f))) }, "Refuse")));
  }

  // fact shows a fact, which can be changed and forgotten.
  function fact(f) {
    const problem = h("div");
    const shown = h("div", {}, body(f));
    const element = h("article.card", { "aria-label": f.title }, h("header", {}, h("strong", {}, f.title), about(f)), shown, problem,
      h("div.row", {}, h("button", { onclick: edit }, "Edit"), h("button", { onclick: () => attempt(problem, () => change(at(f), { pinned: !f.pinned, version: f.version })) }, f.pinned ? "Unpin" : "Pin"),
        h("button.quiet", { onclick: async () => {
          if (await dialog("Forget this fact?", h("p", {}, f.title), "Forget", async () => { await remove(at(f)); return true; })) load();
        } }, "Forget")));
    function edit() {
      const field = h("textarea", { rows: Math.min(12, 2 + f.text.split("\n").length), maxlength: 2000, "aria-label": "Text of the fact" });
      field.value = f.text;
      const title = h("input", { value: f.title, maxlength: 100, "aria-label": "Title of the fact" });
      fill(shown, h("form", { onsubmit: (e) => { e.preventDefault(); attempt(problem, () => change(at(f), { title: title.value, text: field.value, version: f.version })); } }, title, field,
        h("div.row", {}, h("button.primary", { type: "submit" }, "Save"), h("button", { type: "button", onclick: () => fill(shown, body(f)) }, "Cancel"))));
      field.focus();
    }
    return element;
  }

  load();
  return { title: "Memory", update: load, close: () => { clearTimeout(timer); loading.abort(); }, keys: { i: ["a new fact", () => text.focus()] } };
}
