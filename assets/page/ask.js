// The form that answers a question.

import { post } from "./api.js";
import { age, clock, dialog, failure, fill, h, oneLine, plural } from "./dom.js";
import { Markdown } from "./markdown.js";

// ruleWords returns the condition of an answer, such as len(input) <= 40, in words.
function ruleWords(rule) {
  const [, op, n] = /^\s*len\(input\)\s*(>=|<=|==|>|<)\s*(\d+)\s*$/.exec(rule) ?? [];
  if (!op) return ["The answer must satisfy ", h("code", {}, rule)];
  const limit = Number(n) + (op === ">" ? 1 : op === "<" ? -1 : 0);
  const most = op === "<" || op === "<=";
  if (!most && op !== "==" && limit === 1) return "An answer is required";
  return `${op === "==" ? "Exactly" : most ? "At most" : "At least"} ${plural(limit, "character")}`;
}

// form shows a question {id, kind, text, options, default, open, multi, deadline, node} of a run. done(answer) is called when the server
// has taken an answer.
export function form(run, question, done) {
  const options = question.options ?? [];
  const open = question.open || !options.length;
  const problem = h("div");
  const name = `q-${run}-${question.id}`;
  const secret = question.kind === "secret";
  const field = h(secret ? "input" : "textarea", { ...(secret ? { type: "password", autocomplete: "off" } : { rows: options.length ? 1 : 3 }), "aria-label": "Answer in your own words", placeholder: options.length ? "or in your own words" : question.default ? `Leave empty for ${oneLine(question.default, 60)}` : "Your answer",
    onkeydown: (e) => (e.ctrlKey || e.metaKey) && e.key === "Enter" && send(field.value), oninput: () => { own.disabled = !field.value.trim() && question.default == null; } });
  if (!options.length && (question.default?.startsWith("{") || question.default?.includes("\n"))) { // arguments of a call, or a plan, to be edited
    field.value = question.default;
    field.rows = Math.min(20, 1 + question.default.split("\n").length);
  }
  const own = h("button", { type: "submit", disabled: question.default == null }, "Answer");
  const boxes = question.multi ? options.map((option) => h("input", { type: "checkbox", value: option, name })) : [];
  const choices = question.multi
    ? h("fieldset.choices", {}, h("legend.unseen", {}, "Any number of these"), options.map((option, i) => h("label.choice", {}, boxes[i], option)), h("button", { type: "button", onclick: () => send(boxes.filter((b) => b.checked).map((b) => b.value)) }, "Answer with these"))
    : h("div.choices", { role: "group", "aria-label": "Choices" }, options.map((option) => h("button.choice", { type: "button", onclick: () => send(option) }, option)));
  const element = h("form.ask", { onsubmit: (e) => { e.preventDefault(); send(field.value); } }, h("div.question", {}, new Markdown(question.text).element),
    question.rule && h("p.hint", {}, ruleWords(question.rule), "."),
    question.deadline && !question.deadline.startsWith("0001") && h("p.hint", {}, `${question.default ? `"${question.default}" is taken` : "It is over"} at ${clock(question.deadline).slice(0, 8)}.`),
    question.assignees?.length > 0 && h("p.hint", {}, `For ${question.assignees.join(", ")}.`),
    options.length > 0 && choices, (open || !options.length) && h("div.own", {}, field, own), problem, h("div.row", {}, h("button.quiet.small", { type: "button", onclick: withdraw }, "Cancel the run")));

  async function send(answer, force) {
    const controls = element.querySelectorAll("button, textarea, input");
    for (const control of controls) control.disabled = true;
    try {
      await post(`v1/runs/${encodeURIComponent(run)}/answers?via=page${force ? "&force=true" : ""}`, { [question.id]: answer });
      fill(element, h("p.answered", { role: "status" }, secret ? "Answered." : ["Answered: ", h("strong", {}, Array.isArray(answer) ? answer.join(", ") : answer || question.default)]));
      done?.(answer);
    } catch (error) {
      for (const control of controls) control.disabled = false;
      const changed = !force && /"force": true|force=true/.test(error.hint);
      fill(problem, failure(changed ? Object.assign(new Error(error.message), { requestID: error.requestID }) : error), changed && h("div.row", {}, h("button", { type: "button", onclick: () => send(answer, true) }, "Continue anyway")));
    }
  }

  async function withdraw() {
    const canceled = await dialog("Cancel this run?", h("p", {}, "Its questions are withdrawn. What it has done can be undone as its agent says; it can be resumed from its page."), "Cancel the run", async () => { await post(`v1/runs/${encodeURIComponent(run)}/cancel`); return true; });
    if (!canceled) return;
    fill(element, h("p.answered", { role: "status" }, "The run is canceled."));
    done?.();
  }
  return element;
}

// waits says since when a question waits.
export function waits(question) {
  return question.asked ? `waits for ${age(question.asked)}` : "";
}
