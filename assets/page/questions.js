// All questions that wait, with forms to answer them.

import { get, poll } from "./api.js";
import { form, waits } from "./ask.js";
import { failure, fill, h, oneLine, plural } from "./dom.js";

// waiting returns the open questions that the user may see, as {run, question}, those that wait longest last.
export async function waiting(signal) {
  const { data } = await get("v1/runs?status=suspended,running&limit=200", signal);
  const runs = data.filter((run) => run.waiting ?? run.status === "suspended");
  const lists = await Promise.all(runs.map((run) => get(`v1/runs/${run.id}/questions`, signal).then((list) => list.data.map((question) => ({ run, question })), () => [])));
  return lists.flat();
}

export function show(main, context) {
  const list = h("div.cards");
  const head = h("p.hint");
  fill(main, h("div.view", {}, h("div.bar", {}, h("h1", {}, "Questions"), head), list));
  const cards = new Map();

  async function load(signal) {
    const found = await waiting(signal);
    context.online();
    context.badge(found.length);
    fill(head, found.length ? `${plural(found.length, "question")} wait${found.length === 1 ? "s" : ""} for an answer.` : "");
    const gone = new Set(cards.keys());
    for (const { run, question } of found) {
      const id = `${run.id} ${question.id}`;
      gone.delete(id);
      if (cards.has(id)) {
        cards.get(id).since.textContent = waits(question);
        continue;
      }
      const since = h("span.hint", {}, waits(question));
      const card = { since, answered: false };
      card.element = h("article.card", { "aria-label": `Question of ${run.agent}` }, h("header", {}, h("a", { href: `#/runs/${run.id}` }, h("strong", {}, run.agent || run.kind), " ", h("code.id", {}, run.id)),
        question.node && h("span.hint", {}, "node ", h("code", {}, question.node)), since), run.prompt && h("p.prompt", {}, oneLine(run.prompt)), form(run.id, question, () => { card.answered = true; setTimeout(live.again, 300); }));
      cards.set(id, card);
      list.append(card.element);
    }
    // A card that was answered here stays, so that nothing jumps under the pointer. One that another user answered goes.
    for (const id of gone) {
      if (cards.get(id).answered) continue;
      cards.get(id).element.remove();
      cards.delete(id);
    }
    if (!cards.size && !list.querySelector(".empty")) fill(list, h("p.empty", {}, "Nothing waits for an answer."));
    else if (cards.size) list.querySelector(".empty")?.remove();
    return true;
  }

  const live = poll(load, { fast: 2500, onerror: (error) => context.problem(error) && fill(list, failure(error, () => live.again())) });
  return {
    title: "Questions", update() {}, close: () => live.stop(),
    keys: { j: ["next question", () => move(1)], k: ["previous question", () => move(-1)] },
  };

  function move(by) {
    const all = [...list.querySelectorAll(".card")];
    const at = all.findIndex((card) => card.contains(document.activeElement));
    all[Math.max(0, Math.min(all.length - 1, at + by))]?.querySelector("button, textarea")?.focus();
  }
}
