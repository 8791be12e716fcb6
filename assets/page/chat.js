// Talking with a model, a role or an agent, in sessions.

import { get, poll, post, remove, stream } from "./api.js";
import { form } from "./ask.js";
import { age, cost, count, dialog, failure, fill, h, icon, oneLine, plural, pretty } from "./dom.js";
import { Markdown } from "./markdown.js";

const size = (bytes) => (bytes < 1 << 20 ? `${Math.floor(bytes / 1024)} KiB` : `${(bytes / (1 << 20)).toFixed(1)} MiB`);

export function show(main, context) {
  const list = h("nav.side", { "aria-label": "Sessions" });
  const talk = h("div.talk", { tabindex: "0", role: "log", "aria-label": "Conversation" });
  const who = h("select", { "aria-label": "Model, role or agent", onchange: () => { if (id) wanted = who.value.replace(/^model:/, ""); else chosen = who.value; } });
  const partner = h("span.hint"); // role or agent of the session
  const files = h("div.row.files");
  const field = h("textarea", { rows: 1, placeholder: "Write a message", "aria-label": "Message", oninput: grow, onkeydown: (e) => { if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); send(); } },
    onpaste: (e) => { if (e.clipboardData.files.length) { attach(e.clipboardData.files); e.preventDefault(); } } });
  const pick = h("input", { type: "file", multiple: true, hidden: true, onchange: () => { attach(pick.files); pick.value = ""; } });
  const button = h("button.primary.square", { type: "submit", "aria-label": "Send" }, icon("send"));
  const title = h("h2", {}, "New chat");
  const forget = h("button.quiet.small", { hidden: true, onclick: erase }, "Delete");
  const composer = h("form.composer", { onsubmit: (e) => { e.preventDefault(); if (sending) sending.abort(); else send(); } }, files, h("div.line", {}, h("button.quiet.square", { type: "button", "aria-label": "Attach files", title: "Attach files", onclick: () => pick.click() }, icon("attach")), pick, field, button));
  const view = h("div.split.chat", { ondragover: (e) => e.preventDefault(), ondrop: (e) => { e.preventDefault(); attach(e.dataTransfer.files); } },
    h("aside", {}, h("div.bar", {}, h("h1", {}, "Chat"), h("a.button.small", { href: "#/chat" }, icon("plus"), "New")), list),
    h("section.page", {}, h("header.title", {}, h("a.back", { href: "#/chat?list=1" }, "Sessions"), title, partner, who, forget), talk, composer));
  fill(main, view);

  let id = ""; // of the session; empty until the first message of a new one
  let shown = null; // id of the session whose messages are shown
  let sending = null; // AbortController of a message under way
  let attached = [];
  let chosen = ""; // who answers in a new chat
  let wanted = ""; // model that was chosen for the next message of a session
  let model = ""; // of the session, if it has one of its own
  let known = { models: [], roles: [], agents: [] };
  let most = null; // bytes of a body, once they are known
  let loading = new AbortController();

  function grow() {
    field.style.height = "auto";
    field.style.height = `${Math.min(220, field.scrollHeight + 2)}px`;
  }

  async function attach(all) {
    for (const file of [...all]) { // the list of a field is empty once that is
      const most = await limit();
      const room = Math.floor((most - 2048 - attached.reduce((n, f) => n + f.content_base64.length, 0)) * 0.75); // they travel as base64
      if (file.size > room) {
        say(failure(Object.assign(new Error(`${file.name} (${size(file.size)}) was not attached: a message can have at most ${size(Math.floor(most * 0.75))} of files.`), { hint: "The server's configuration sets the limit: api.limits.max_body_bytes" })));
        continue;
      }
      const url = await new Promise((resolve, reject) => { const reader = new FileReader(); reader.onload = () => resolve(reader.result); reader.onerror = () => reject(reader.error); reader.readAsDataURL(file); });
      attached.push({ name: file.name, media_type: file.type || "application/octet-stream", content_base64: url.slice(url.indexOf(",") + 1) });
    }
    drawFiles();
  }

  // focus puts the cursor where one writes, but does not open the keyboard of a phone. It returns whether it did.
  function focus() {
    if (innerWidth > 760) field.focus({ preventScroll: true });
    return innerWidth > 760;
  }

  // limit returns how many bytes the body of a request may have.
  async function limit() {
    most ??= await get("v1/info").then(({ limits }) => limits.max_body_bytes || Infinity, () => Infinity); // the server says so itself then
    return most;
  }

  function drawFiles() {
    fill(files, attached.map((file) => h("span.chip", {}, file.name, h("button.quiet", { type: "button", "aria-label": `Remove ${file.name}`, onclick: () => { attached = attached.filter((f) => f !== file); drawFiles(); } }, icon("close")))));
  }

  // say adds something to the conversation and keeps its end in sight, if it was.
  function say(element) {
    const end = talk.scrollHeight - talk.scrollTop - talk.clientHeight < 80;
    talk.append(element);
    if (end) talk.scrollTop = talk.scrollHeight;
    return element;
  }

  function follow(change) {
    const end = talk.scrollHeight - talk.scrollTop - talk.clientHeight < 80;
    change();
    if (end) talk.scrollTop = talk.scrollHeight;
  }

  function mine(text, names = []) {
    return h("article.turn.mine", { "aria-label": "You" }, h("div.markdown.plain", {}, text), names.length > 0 && h("p.row", {}, names.map((name) => h("span.chip", {}, name))));
  }

  // calls shows a tool call, folded.
  function call(of) {
    const result = h("pre.code", { tabindex: "0", role: "region", "aria-label": "result" });
    const mark = h("span.hint", {}, "…");
    const element = h("details.tool", {}, h("summary", {}, h("code", {}, of.name), h("span.text", {}, oneLine(argumentsOf(of), 90)), mark), h("pre.code", { tabindex: "0", role: "region", "aria-label": "arguments" }, pretty(argumentsOf(of))), result);
    return { element, end(text, failed) {
      mark.textContent = failed ? "failed" : "";
      element.classList.toggle("bad", Boolean(failed));
      result.textContent = pretty(text);
    } };
  }
  const argumentsOf = (of) => (typeof of.args === "string" ? of.args : typeof of.arguments === "string" ? of.arguments : JSON.stringify(of.args ?? of.arguments ?? {}));

  // Answer is a reply that grows: texts, reasoning, tool calls, questions in the order in which they come.
  function answer() {
    const body = h("div");
    const foot = h("footer.hint");
    const calls = new Map();
    let text = null;
    let thought = null;
    const element = h("article.turn", { "aria-label": "Answer" }, body, foot);
    const add = (part) => { text = thought = null; body.append(part); };
    return {
      element, foot,
      text(piece) {
        if (!text) { thought = null; text = { markdown: new Markdown(), all: "" }; body.append(text.markdown.element); }
        text.all += piece;
        text.dirty ||= requestAnimationFrame(((part) => () => { part.dirty = 0; follow(() => part.markdown.set(part.all)); })(text));
      },
      reasoning(piece) {
        if (!thought) { text = null; thought = h("div.markdown.plain"); body.append(h("details.thought", {}, h("summary", {}, "Reasoning"), thought)); }
        thought.append(piece);
      },
      call(of) { const c = call(of); calls.set(of.id, c); add(c.element); },
      result(of) { calls.get(of.id)?.end(of.result ?? of.text ?? "", of.is_error ?? of.failed); },
      add,
    };
  }

  // history shows the messages of a session.
  function history(messages) {
    let turn = null;
    const parts = (m) => (typeof m.content === "string" ? [{ type: "text", text: m.content }] : m.parts ?? []);
    for (const m of messages) {
      const texts = parts(m).filter((p) => p.type === "text").map((p) => p.text).join("");
      if (m.role === "user" && !m.continuation) {
        turn = null;
        talk.append(mine(texts, parts(m).filter((p) => p.type !== "text" && p.type !== "reasoning").map((p) => p.type)));
      } else if (m.role === "assistant") {
        if (!turn) talk.append((turn = answer()).element);
        for (const p of parts(m)) if (p.type === "reasoning" && p.text) turn.reasoning(p.text);
        if (texts) turn.add(new Markdown(texts).element);
        for (const c of m.tool_calls ?? []) turn.call(c);
      } else if (m.role === "tool") {
        turn?.result({ id: m.tool_call_id, text: texts, failed: m.failed });
      }
    }
    talk.scrollTop = talk.scrollHeight;
  }

  // send sends a message: what was written and attached, or one that failed before.
  async function send(again) {
    const prompt = again?.prompt ?? field.value.trim();
    const sent = again?.sent ?? attached;
    if ((!prompt && !sent.length) || sending) return;
    const abort = (sending = new AbortController());
    button.setAttribute("aria-label", "Stop");
    fill(button, icon("stop"));
    talk.querySelector(".empty")?.remove();
    const said = say(mine(prompt, sent.map((f) => f.name)));
    const reply = answer();
    say(reply.element);
    reply.element.classList.add("live");
    talk.scrollTop = talk.scrollHeight;
    if (!again) {
      field.value = "";
      attached = [];
      drawFiles();
      grow();
    }
    let made = false;
    let begun = false; // the server has taken the message
    let done = false;
    try {
      if (new Blob([JSON.stringify({ prompt, files: sent })]).size + 64 > await limit()) throw new Error(`The message was not sent: a request can have at most ${size(await limit())}.`);
      if (!id) {
        const [kind, ...name] = who.value.split(":");
        const session = await post("v1/sessions", who.value ? { [kind]: name.join(":") } : {}, abort.signal);
        id = shown = session.id;
        made = true;
        context.replace(`#/chat/${encodeURIComponent(id)}`);
        enter(session);
      }
      const body = { prompt, stream: true };
      if (wanted) body.model = wanted;
      if (sent.length) body.files = sent;
      let run = "";
      for await (const { name, data } of stream(`v1/sessions/${encodeURIComponent(id)}/completions`, body, abort.signal)) {
        begun = true;
        run = data.run ?? data.run_id ?? run;
        if (name === "assistant_delta") reply.text(data.text);
        else if (name === "reasoning_delta") reply.reasoning(data.text);
        else if (name === "tool_call") follow(() => reply.call(data));
        else if (name === "tool_result") follow(() => reply.result(data));
        else if (name === "warning") follow(() => reply.add(h("p.warning", {}, data.message ?? data.text)));
        else if (name === "node_started") follow(() => reply.add(h("p.hint.node", {}, "▸ ", data.node)));
        else if (name === "question") await ask(reply, run, data);
        else if (name === "usage") reply.usage = data.usage;
        else if (name === "error") throw Object.assign(new Error(data.message ?? data.error?.message), { hint: data.hint ?? data.error?.hint });
        else if (name === "finished") foot(reply, { ...data, ...data.outcome });
      }
      done = true;
      if (title.textContent === "New chat") title.textContent = oneLine(prompt, 60) || "Files";
    } catch (error) {
      if (abort.signal.aborted) reply.foot.textContent = "Stopped.";
      else if (context.problem(error) || error.status !== 401) failed(reply, said, error, begun && { prompt, sent });
      if (!begun && !abort.signal.aborted) await unsent(prompt, sent, said);
    }
    if (made && !done) await dropEmpty();
    sending = null;
    reply.element.classList.remove("live");
    button.setAttribute("aria-label", "Send");
    fill(button, icon("send"));
    sessions.again();
    field.focus();
  }

  // failed shows why there is no answer, and sends the message again if the user wants, to another model if one was chosen meanwhile.
  function failed(reply, said, error, again) {
    const hint = /POST \/v1\/runs\/\w+\/resume$/.test(error.hint ?? "") && again ? "Try again, or choose another model first." : error.hint;
    const box = failure(Object.assign(new Error(error.message), { hint, requestID: error.requestID }), again && (() => {
      if (sending) return;
      said.remove();
      reply.element.remove();
      send(again);
    }));
    follow(() => reply.add(box));
  }

  // unsent gives back a message that the server did not take.
  async function unsent(prompt, sent, said) {
    said.remove();
    field.value = prompt;
    attached = sent;
    drawFiles();
    grow();
  }

  // dropEmpty removes a session that was made for a message, if it has nothing of it. The conversation begins again with the next one.
  async function dropEmpty() {
    const session = await get(`v1/sessions/${encodeURIComponent(id)}`).catch(() => null);
    if (!session || session.messages?.length) return;
    await remove(`v1/sessions/${encodeURIComponent(id)}`).catch(() => {}); // it stays in the list, empty
    id = shown = "";
    context.replace("#/chat");
    forget.hidden = true;
    partner.textContent = "";
    chosen = wanted ? `model:${wanted}` : chosen;
    offer(false);
  }

  // ask shows a question of the run of an answer. Once it has been answered the run goes on without this page, and the session
  // has the rest when it is done.
  async function ask(reply, run, data) {
    const found = await get(`v1/runs/${encodeURIComponent(run)}/questions`).then((list) => list.data.find((q) => q.id === data.id), () => null);
    follow(() => reply.add(h("article.card", {}, form(run, found ?? data, async () => {
      follow(() => reply.add(h("p.hint", {}, "The answer continues in ", h("a", { href: `#/runs/${run}` }, "its run"), ".")));
      const session = id;
      const wait = poll(async (signal) => {
        if (id !== session) return void wait.stop();
        const { status } = await get(`v1/runs/${encodeURIComponent(run)}`, signal);
        if (status === "running") return true;
        wait.stop();
        shown = null;
        choose({ path: ["chat", session], query: new URLSearchParams() });
      }, { fast: 700, slow: 2000, onerror: (error) => context.problem(error) });
    }))));
  }

  function foot(reply, outcome) {
    const u = outcome.usage ?? reply.usage ?? {};
    const run = outcome.run_id ?? outcome.run;
    fill(reply.foot, [outcome.model, u.input_tokens != null && `${count(u.input_tokens)} in`, u.output_tokens != null && `${count(u.output_tokens)} out`, cost(u)].filter(Boolean).join(" · "), run && [" · ", h("a", { href: `#/runs/${run}` }, "run")]);
  }

  async function erase() {
    const done = await dialog("Delete this session?", h("p", {}, "Its messages are removed for good."), "Delete", async () => { await remove(`v1/sessions/${encodeURIComponent(id)}`); return true; });
    if (done) { location.hash = "#/chat"; sessions.again(); }
  }

  const sessions = poll(async (signal) => {
    const { data } = await get("v1/sessions?limit=100", signal);
    context.online();
    const focused = document.activeElement?.getAttribute("href");
    fill(list, data.length ? data.map((s) => h("a.item", { href: `#/chat/${encodeURIComponent(s.id)}`, "aria-current": s.id === id && "page" }, h("strong", {}, s.alias || oneLine(s.first, 60) || "Empty session"), h("span.hint", {}, [s.agent, s.error || plural(s.turns, "turn"), age(s.modified_at)].filter(Boolean).join(" · ")))) : h("p.empty", {}, "No sessions yet."));
    if (focused) [...list.children].find((a) => a.getAttribute("href") === focused)?.focus();
    return false;
  }, { slow: 15_000, onerror: (error) => context.problem(error) && fill(list, failure(error)) });

  // enter shows who answers in a session. Its role or agent stays; its model can change with each message.
  function enter(session) {
    forget.hidden = false;
    wanted = "";
    model = session.model ?? "";
    partner.textContent = session.agent || session.role || "";
    chosen = session.agent ? `agent:${session.agent}` : session.role ? `role:${session.role}` : session.model ? `model:${session.model}` : "";
    offer(true, model);
  }

  // offer fills the selector: with models for a session, with all who can answer for a new one.
  function offer(inSession, model) {
    const group = (label, options) => options.length > 0 && h("optgroup", { label }, options);
    const models = known.models.map((m) => h("option", { value: `model:${m.id}` }, m.id));
    who.setAttribute("aria-label", inSession ? "Model" : "Model, role or agent");
    if (inSession) fill(who, !model && h("option", { value: "" }, partner.textContent ? `Model of ${partner.textContent}` : "Default model"), models);
    else fill(who, h("option", { value: "" }, "Default model"), group("Models", models), group("Roles", known.roles.map((r) => h("option", { value: `role:${r.name}` }, r.name))), group("Agents", known.agents.map((a) => h("option", { value: `agent:${a.name}` }, a.name))));
    select(inSession ? (model ? `model:${model}` : "") : chosen);
  }

  async function partners() {
    const [models, roles, found] = await Promise.all(["models", "roles", "agents"].map((kind) => get(`v1/${kind}?limit=200`).then((l) => l.data, () => [])));
    known = { models: models.filter((m) => (m.kind ?? "chat") === "chat"), roles, agents: found.filter((a) => a.kind !== "graph") };
    if (id) return offer(true, wanted || model);
    const [kind, name] = [chosen.split(":", 1)[0], chosen.slice(chosen.indexOf(":") + 1)];
    const there = !chosen || (kind === "agent" ? known.agents.some((a) => a.name === name) : kind === "role" ? roles.some((r) => r.name === name) : true);
    if (!there) chosen = "";
    offer(false);
    if (!there) fill(talk, h("p.empty", {}, found.some((a) => a.name === name) ? [`${name} is a graph and works in runs, not in conversations. `, h("a", { href: `#/agents/${encodeURIComponent(name)}` }, "Start a run")] : `There is no ${kind} ${name}.`));
  }

  // select chooses a partner, also one that is not in the list.
  function select(value) {
    if (![...who.options].some((o) => o.value === value)) who.append(h("option", { value }, value.slice(value.indexOf(":") + 1) || "Default model"));
    who.value = value;
  }

  async function choose(route) {
    view.classList.toggle("has-page", !route.query.get("list"));
    chosen = route.query.get("agent") ? `agent:${route.query.get("agent")}` : chosen;
    const next = route.path[1] ?? "";
    for (const item of list.querySelectorAll(".item")) if (item.getAttribute("href") === `#/chat/${encodeURIComponent(next)}`) item.setAttribute("aria-current", "page"); else item.removeAttribute("aria-current");
    if (next === shown) return;
    if (next !== id) sending?.abort();
    loading.abort();
    loading = new AbortController();
    const signal = loading.signal;
    id = shown = next;
    fill(talk);
    forget.hidden = !id;
    wanted = partner.textContent = "";
    title.textContent = "New chat";
    if (!id) {
      offer(false);
      fill(talk, h("p.empty", {}, "Choose a model, a role or an agent, and write a message."));
      return void focus();
    }
    try {
      let after = 0;
      do {
        const session = await get(`v1/sessions/${encodeURIComponent(id)}${after ? `?after=${after}` : ""}`, signal);
        if (!after) title.textContent = session.title || session.alias || oneLine((session.messages.find((m) => m.role === "user")?.parts ?? [])[0]?.text, 60) || "Empty session";
        if (!after) enter(session);
        history(session.messages);
        after = session.next_after;
      } while (after);
    } catch (error) {
      if (!signal.aborted && context.problem(error)) fill(talk, failure(error));
    }
  }

  partners();
  choose(context);
  return { title: "Chat", update: (to) => { choose(to); if (!to.query.get("list")) focus(); }, focus, close: () => { sessions.stop(); sending?.abort(); loading.abort(); }, keys: { i: ["write a message", () => field.focus()], n: ["new chat", () => { location.hash = "#/chat"; }] } };
}
