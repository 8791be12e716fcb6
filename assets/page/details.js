// What is known of a row of the timeline, and of a run as a whole.

import { get } from "./api.js";
import { changes } from "./diff.js";
import { clock, cost, count, duration, failure, fill, h, plural, pretty, safe, setText, status, tokens } from "./dom.js";
import { Markdown } from "./markdown.js";

function block(title, ...children) {
  return h("section.block", {}, h("h3", {}, title), children);
}

function code(text, label) {
  return h("pre.code", { tabindex: "0", role: "region", "aria-label": label }, text);
}

function facts(list) {
  return h("dl.facts", {}, list.filter(([, value]) => value).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

function usage(u) {
  if (!u) return [];
  return [["in", tokens(u.input_tokens)], ["cached", tokens(u.cached_input_tokens)], ["out", tokens(u.output_tokens)], ["reasoning", tokens(u.reasoning_tokens)], ["cost", cost(u)], ["", u.estimated && "estimated"]];
}

// reply shows a text as Markdown, or as it is.
function reply(text) {
  const markdown = new Markdown(text);
  const raw = code(text, "text");
  raw.hidden = true;
  const button = h("button.quiet.small", { "aria-pressed": "false", onclick: () => {
    raw.hidden = !raw.hidden;
    markdown.element.hidden = !raw.hidden;
    button.setAttribute("aria-pressed", !raw.hidden);
  } }, "Source");
  return { element: h("div.reply", {}, button, markdown.element, raw), set: (now) => { markdown.set(now); setText(raw, now); } };
}

// lazily fills a block once it comes into sight, as most of them never do.
function lazily(element, load) {
  const seen = new IntersectionObserver(async ([entry]) => {
    if (!entry.isIntersecting) return;
    seen.disconnect();
    try {
      fill(element, await load());
    } catch (error) {
      fill(element, error.status === 404 ? h("p.hint", {}, "Not recorded.") : failure(error));
    }
  });
  fill(element, h("p.hint", {}, "…"));
  seen.observe(element);
  return element;
}

// details returns {element, update} of a row; update is called when the run has gone on.
export function details(row, run) {
  const top = h("header.title");
  const rest = h("div");
  const live = h("div");
  const element = h("div", {}, top, live, rest);
  let mark;
  let text;

  function update() {
    const now = `${row.status} ${row.end} ${row.children.length} ${row.reply ?? ""} ${row.step <= run.info().steps} ${run.forkable()}`;
    if (row.kind === "model" && text) text.set(row.text);
    if (row.kind === "tool" && !row.end && row.lines.length) fill(live, code(row.lines.join("\n"), "output"));
    if (now === mark) return;
    mark = now;
    fill(top, h(`span.tag.${safe(row.kind)}`, {}, row.kind === "node" ? row.type : row.kind), h("h2", {}, row.title), row.status && row.status !== "note" && status(row.status),
      row.kind === "node" && run.fork && row.end && row.step <= run.forkable() && h("button.small", { onclick: () => run.fork(row.step), title: `Start a new run with the state after step ${row.step}` }, "Fork from here"));
    fill(live, facts([["step", row.step && String(row.step)], ["visit", row.visit > 1 && String(row.visit)], ["call", row.turn > 1 && String(row.turn)], ["began", clock(row.start)], ["time", row.end && row.status !== "note" && duration(row.seconds)], ...usage(run.usageOf(row)), ["ended with", row.stop !== "stop" && row.stop]]),
      row.error && h("div.failure", {}, h("p", {}, row.error)));
    fill(rest, shows[row.kind]?.());
  }

  const shows = {
    node: () => [
      row.targets?.length > 0 && block("Goes on to", h("p.row", {}, row.targets.map((id) => h("code.chip", {}, id)))),
      contents(row, run),
      row.end > 0 && !row.agentID && row.step <= run.info().steps && block("State", lazily(h("div"), async () => changes((await get(`${run.at}/diff?a=${row.step - 1}&b=${row.step}`)).data, "This step did not change the state."))),
    ],
    item: () => contents(row, run),
    agent: () => [row.prompt && block("Prompt", new Markdown(row.prompt).element), row.output && block("Answer", new Markdown(row.output).element), contents(row, run)],
    model: () => {
      text = reply(row.text);
      return [
        row.tries.map((t) => h("div.failure", {}, h("p", {}, `Try ${t.attempt} failed: ${t.error}`), h("p.hint", {}, `The next try followed after ${duration(t.wait_seconds)}.`))),
        row.reasoning && h("details.block", {}, h("summary", {}, "Reasoning"), h("div.markdown.plain", {}, row.reasoning)),
        block(row.end ? "Reply" : "Reply, so far", row.text || !row.end ? text.element : h("p.hint", {}, "No text: the model called tools.")),
        row.end > 0 && block("Prompt", lazily(h("div"), () => asked(row, run))),
      ];
    },
    tool: () => [block("Arguments", code(pretty(row.arguments ?? "{}"), "arguments")), row.lines.length > 0 && block("Output", code(row.lines.join("\n"), "output")), row.end > 0 && block(row.status === "failed" ? "Failed with" : "Result", code(pretty(row.result ?? ""), "result"))],
    question: () => [row.text && block("Question", new Markdown(row.text).element), row.answer !== undefined && block("Answer", h("p", {}, row.answer)), row.question?.options?.length > 0 && block("Choices", h("p.row", {}, row.question.options.map((option) => h("span.chip", {}, option))))],
    note: () => [row.text && block("Text", h("p", {}, row.text)), row.event && h("details.block", {}, h("summary", {}, "Event"), code(pretty(row.event), "event"))],
  };
  update();
  return { element, update };
}

// contents lists what happened within a row.
function contents(row, run) {
  if (!row.children.length) return null;
  const most = 200;
  return block("What happened", h("ul.contents", {}, row.children.slice(0, most).map((child) => h("li", {}, h("button.line", { onclick: () => run.choose(child) }, h(`span.tag.${safe(child.kind)}`, {}, child.kind), h("span.title", {}, child.title), h("span.text", {}, child.error ?? child.text.slice(0, 200)), h("span.time", {}, child.end && child.status !== "note" ? duration(child.seconds) : ""))))),
    row.children.length > most && h("p.hint", {}, `and ${plural(row.children.length - most, "row")} more`));
}

// asked shows what a node asks a model: its templates, filled in from the state before its step. The messages of
// a tool loop come after that, and are rows of their own.
async function asked(row, run) {
  if (row.agentID || !row.node || !row.step) return h("p.hint", {}, "Not recorded.");
  const [{ nodes }, { state }] = await Promise.all([get(`${run.at}/graph?format=json`), get(`${run.at}/state?step=${row.step - 1}`)]);
  let node = nodes.find((n) => n.id === row.node);
  let values = state;
  if (node?.branch) {
    const elements = lookUp(state, /^\{\{(.*)\}\}$/.exec(node.over)?.[1] ?? "");
    values = { ...state, [node.as]: Array.isArray(elements) ? elements[row.item] : undefined };
    node = nodes.find((n) => n.id === node.branch);
  }
  if (!node?.prompt) return h("p.hint", {}, "Not recorded.");
  return [["instructions", node.instructions], ["prompt", node.prompt]].map(([name, template]) => template && h("div.message", {}, h("h4", {}, name), h("div.markdown.plain", {}, rendered(template, values))));
}

// lookUp returns the value at a path such as key.list[2].name, or undefined.
function lookUp(values, path) {
  return path.split(/[.[\]]+/).filter(Boolean).reduce((v, name) => (v !== null && typeof v === "object" && Object.hasOwn(v, name) ? v[name] : undefined), values);
}

function rendered(template, values) {
  return template.replace(/\{\{([\w.[\]]+)\}\}/g, (hole, path) => {
    const v = lookUp(values, path);
    return v === undefined ? hole : typeof v === "string" ? v : JSON.stringify(v);
  });
}

// overview shows a run while no row is chosen.
export function overview({ info, trace, choose }) {
  const element = h("div");
  let mark;
  function update() {
    const run = info();
    if (!run) return;
    const now = `${run.status} ${run.steps} ${trace.nodes.size} ${run.updated}`;
    if (now === mark) return;
    mark = now;
    const nodes = run.nodes ?? [];
    const name = (t) => { const row = trace.nodes.get(t.node)?.row; return row ? h("button.link", { onclick: () => choose(row) }, t.node) : t.node; };
    fill(element, run.error && !(run.status === "suspended" && (run.pending?.length || run.waits?.length)) && h("div.failure", {}, h("p", {}, run.error), run.code && h("p.hint", {}, "code ", h("code", {}, run.code))),
      run.status === "suspended" && run.waits?.length > 0 && block("Waits", h("ul", {}, run.waits.map((w) => h("li", {}, `${w.node}: `, [w.signal && `for signal ${w.signal}`, w.until && `until ${new Date(w.until).toLocaleString()}`].filter(Boolean).join(", "))))),
      run.prompt && block("Prompt", h("div.markdown.plain", {}, run.prompt)),
      run.output && block("Answer", reply(run.output).element),
      nodes.length > 0 && block("Nodes", h("table.nodes", {}, h("thead", {}, h("tr", {}, ["Node", "Visits", "Time", "Tokens", "Cost", "Failures"].map((title) => h("th", { scope: "col" }, title)))), h("tbody", {}, nodes.map((t) => h("tr", {}, h("td", {}, name(t)), [String(t.visits), duration(t.seconds), count(t.tokens), t.cost ? cost(t) : "", String(t.failures || "")].map((cell) => h("td", {}, cell))))))),
      run.variables && Object.keys(run.variables).length > 0 && block("Variables", facts(Object.entries(run.variables))),
      block("Origin", facts([["model", run.model], ["directory", run.dir], ["agent", run.agent_dir]]), run.parent && h("p", {}, "Forked from ", h("a", { href: `#/runs/${run.parent.split("@")[0]}` }, run.parent), ". ", h("a", { href: `#/compare/${run.parent.split("@")[0]}/${run.id}` }, "Compare"))));
  }
  update();
  return { element, update };
}
