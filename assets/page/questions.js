// All questions that wait, with forms to answer them.

import { get, poll } from "./api.js";
import { form, waits } from "./ask.js";
import { failure, fill, h, plural } from "./dom.js";

// waiting returns the open questions that the user may see.
export async function waiting(signal) {
  return (await get("v1/questions?limit=200", signal)).data;
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
    for (const question of found) {
      const id = `${question.run} ${question.id}`;
      gone.delete(id);
      if (cards.has(id)) {
        cards.get(id).since.textContent = waits(question);
        continue;
      }
      const since = h("span.hint", {}, waits(question));
      const card = { since, answered: false };
      card.element = h("article.card", { "aria-label": `Question of ${question.agent}`, tabindex: "-1", onkeydown: enter }, h("header", {}, h("a", { href: `#/runs/${question.run}` }, h("strong", {}, question.agent), " ", h("code.id", {}, question.run)),
        question.node && h("span.hint", {}, "node ", h("code", {}, question.node), question.item != null && [" item ", h("code", {}, question.item)]), since), form(question.run, question, () => { card.answered = true; setTimeout(live.again, 300); }));
      cards.set(id, card);
      list.append(card.element);
    }
    // A card that was answered here stays, so that nothing jumps under the pointer. One that another user answered goes.
    for (const id of gone) {
      if (cards.get(id).answered) continue;
      cards.get(id).element.remove();
      cards.delete(id);
    }
    if (!cards.size && !list.querySelector(".empty")) fill(list, h("p.empty", {}, "No questions are waiting."));
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
    all[Math.max(0, Math.min(all.length - 1, at + by))]?.focus();
  }

  // enter goes from a question to its form.
  function enter(e) {
    if (e.key !== "Enter" || e.target !== e.currentTarget) return;
    e.preventDefault();
    e.target.querySelector("form button:enabled, form textarea, form input")?.focus();
  }
}
