// Talking with a model, a role or an agent, in sessions.

import { get, poll, post, remove, stream } from "./api.js";
import { form } from "./ask.js";
import { age, copyButton, cost, dialog, failure, fill, h, icon, oneLine, plural, pretty, tokens } from "./dom.js";
import { Markdown } from "./markdown.js";
import { planOf } from "./plan.js";

const size = (bytes) => (bytes < 1 << 20 ? `${Math.floor(bytes / 1024)} KiB` : `${(bytes / (1 << 20)).toFixed(1)} MiB`);

// modes remembers the mode that was chosen for a session, until the tab is closed.
const modes = {
  of: (id) => sessionStorage.getItem(`loki-mode-${id}`),
  keep: (id, mode) => { if (id) sessionStorage.setItem(`loki-mode-${id}`, mode); },
};

// accepts reports whether an answer to a question accepts a plan.
const accepts = (question, answer) => /^accept/.test(answer ?? "") && question.options?.includes("no, and say why");

let draft = ""; // what was written and not sent when the view was left

export function show(main, context) {
  const list = h("nav.side", { "aria-label": "Sessions" });
  const talk = h("div.talk", { tabindex: "0", role: "log", "aria-label": "Conversation" });
  const who = h("select", { "aria-label": "Model, role or agent", onchange: () => { if (id) wanted = who.value.replace(/^model:/, ""); else { chosen = who.value; blank(); } } });
  const mode = h("select.mode", { "aria-label": "Mode", title: "What tools may change", onchange: () => modes.keep(id, mode.value) }, h("option", { value: "ask" }, "Ask"), h("option", { value: "plan" }, "Plan"));
  const partner = h("span.hint"); // role or agent of the session
  const files = h("div.row.files");
  const field = h("textarea", { rows: 1, placeholder: "Write a message", "aria-label": "Message", oninput: grow, onkeydown: (e) => { if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); if (sending) steer(e.altKey ? "now" : "next"); else send(); } },
    onpaste: (e) => { if (e.clipboardData.files.length) { attach(e.clipboardData.files); e.preventDefault(); } } });
  const pick = h("input", { type: "file", multiple: true, hidden: true, onchange: () => { attach(pick.files); pick.value = ""; } });
  const button = h("button.primary.square", { type: "submit", "aria-label": "Send" }, icon("send"));
  const title = h("h2", {}, "New chat");
  const forget = h("button.quiet.small", { hidden: true, onclick: erase }, "Delete");
  const notice = h("p.hint.notice", { role: "status" });
  const composer = h("form.composer", { onsubmit: (e) => { e.preventDefault(); if (sending) sending.abort(); else send(); } }, notice, files, h("div.line", {}, h("button.quiet.square", { type: "button", "aria-label": "Attach files", title: "Attach files", onclick: () => pick.click() }, icon("attach")), pick, field, button));
  const view = h("div.split.chat", { ondragover: (e) => e.preventDefault(), ondrop: (e) => { e.preventDefault(); attach(e.dataTransfer.files); } },
    h("aside", {}, h("div.bar", {}, h("h1", {}, "Chat"), h("a.button.small", { href: "#/chat" }, icon("plus"), "New")), list),
    h("section.page", {}, h("header.title", {}, h("a.back", { href: "#/chat?list=1" }, "Sessions"), title, partner, who, mode, forget), talk, composer));
  fill(main, view);

  let id = ""; // of the session; empty until the first message of a new one
  let shown = null; // id of the session whose messages are shown
  let sending = null; // AbortController of a message under way
  let attached = [];
  let chosen = ""; // who answers in a new chat
  let wanted = ""; // model that was chosen for the next message of a session
  let model = ""; // of the session, if it has one of its own
  let ownMode = "ask"; // of the session
  let turns = []; // of the session, as they are shown: {said, reply, prompt, sent}
  let edited = null; // the turn whose message is in the composer
  let given = {}; // values of the variables of an agent, for a new session
  const begins = new Map(); // titles of sessions whose first answer is under way
  let known = { models: [], roles: [], agents: [], rags: [] };
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
    return h("article.turn.mine", { "aria-label": "You" }, h("div.markdown.plain", {}, text), names.length > 0 && h("p.row", {}, names.map((name) => h("span.chip", {}, name))), h("div.acts"));
  }

  // calls shows a tool call, folded.
  function call(of) {
    const plan = planOf(of.name, argumentsOf(of));
    if (plan) return { element: h("details.tool.plan", { open: true }, h("summary", {}, "Plan"), new Markdown(plan).element), end() {} };
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
    const foot = h("span");
    const acts = h("span.acts");
    const calls = new Map();
    const texts = [];
    let text = null;
    let thought = null;
    const element = h("article.turn", { "aria-label": "Answer" }, body, h("footer.hint", {}, foot, acts));
    const add = (part) => { text = thought = null; body.append(part); };
    return {
      element, foot, acts,
      source: () => texts.map((part) => part.all).join("\n\n"),
      text(piece) {
        if (!text) { thought = null; texts.push((text = { markdown: new Markdown(), all: "" })); body.append(text.markdown.element); }
        text.all += piece;
        text.dirty ||= requestAnimationFrame(((part) => () => { part.dirty = 0; follow(() => part.markdown.set(part.all)); })(text));
      },
      reasoning(piece) {
        if (!thought) { text = null; thought = h("div.markdown.plain"); body.append(h("details.thought", {}, h("summary", {}, "Reasoning"), thought)); }
        thought.append(piece);
      },
      cut() { text = null; }, // what comes next is another part
      call(of) { const c = call(of); calls.set(of.id, c); add(c.element); },
      result(of) { calls.get(of.id)?.end(of.result ?? of.text ?? "", of.is_error ?? of.failed); },
      add,
    };
  }

  const parts = (m) => (typeof m.content === "string" ? [{ type: "text", text: m.content }] : m.parts ?? []);
  const textOf = (m) => parts(m).filter((p) => p.type === "text").map((p) => p.text).join("");

  // draw shows messages of the session.
  function draw(messages) {
    let turn = turns.at(-1)?.reply ?? null;
    for (const m of messages) {
      const texts = textOf(m);
      if (m.role === "user" && m.steer) {
        turn?.add(h("p.hint.steer", {}, "» ", texts));
      } else if (m.role === "user" && !m.continuation) {
        const pictures = parts(m).filter((p) => p.type === "image").map((p, i) => pictureOf(p, i));
        turn = answer();
        turns.push({ said: mine(texts, pictures.map((p) => p.name)), reply: turn, prompt: texts, sent: pictures });
        talk.append(turns.at(-1).said, turn.element);
      } else if (m.role === "assistant") {
        if (!turn) talk.append((turn = answer()).element);
        for (const p of parts(m)) if (p.type === "reasoning" && p.text) turn.reasoning(p.text);
        if (texts) { turn.text(texts); turn.cut(); }
        for (const c of m.tool_calls ?? []) turn.call(c);
      } else if (m.role === "tool") {
        turn?.result({ id: m.tool_call_id, text: texts, failed: m.failed });
      }
    }
    mark();
    talk.scrollTop = talk.scrollHeight;
  }

  // drawWaiting shows turns that wait for answers, which the session has not yet.
  async function drawWaiting(waiting, signal) {
    for (const { run, prompt } of waiting ?? []) {
      const { data } = await get(`v1/runs/${encodeURIComponent(run)}/questions`, signal);
      const turn = { said: mine(prompt), reply: answer(), prompt, run };
      turns.push(turn);
      talk.append(turn.said, turn.reply.element);
      for (const question of data) await ask(turn.reply, run, question);
    }
    talk.scrollTop = talk.scrollHeight;
  }

  // pictureOf returns a picture of a message as a file that can be sent again.
  function pictureOf(part, i) {
    const [, type, data] = /^data:([^;,]*);base64,(.*)$/.exec(part.url ?? "") ?? [];
    return { name: `picture ${i + 1}`, ...(data ? { media_type: type, content_base64: data } : { url: part.url }) };
  }

  // working runs do(signal) with the button that stops it.
  async function working(go) {
    sending = new AbortController();
    button.setAttribute("aria-label", "Stop");
    fill(button, icon("stop"));
    try {
      await go(sending.signal);
    } finally {
      sending = null;
      button.setAttribute("aria-label", "Send");
      fill(button, icon("send"));
      sessions.again();
      mark();
      field.focus();
    }
  }

  // hear shows an answer in reply as it comes, and returns how that ended: whether the server took the request, its outcome, an error.
  async function hear(reply, verb, body, signal) {
    let begun = false;
    let run = "";
    let outcome = null;
    reply.element.classList.add("live");
    try {
      for await (const { name, data } of stream(`v1/sessions/${encodeURIComponent(id)}/${verb}`, { ...body, stream: true, ...(wanted && { model: wanted }), ...(mode.value !== ownMode && { mode: mode.value }) }, signal)) {
        begun = true;
        run = data.run ?? data.run_id ?? run;
        if (name === "assistant_delta") reply.text(data.text);
        else if (name === "reasoning_delta") reply.reasoning(data.text);
        else if (name === "tool_call") follow(() => reply.call(data));
        else if (name === "tool_result") follow(() => reply.result(data));
        else if (name === "warning") follow(() => reply.add(h("p.warning", {}, data.message ?? data.text)));
        else if (name === "steered") follow(() => reply.add(h("p.hint.steer", {}, "» ", data.text)));
        else if (name === "node_started") follow(() => reply.add(h("p.hint.node", {}, "▸ ", data.node)));
        else if (name === "question") await ask(reply, run, data);
        else if (name === "usage") reply.usage = data.usage;
        else if (name === "error") throw Object.assign(new Error(data.message ?? data.error?.message), { hint: data.hint ?? data.error?.hint });
        else if (name === "finished") foot(reply, (outcome = { ...data, ...data.outcome }));
      }
      return { begun, outcome };
    } catch (error) {
      if (signal.aborted) reply.foot.textContent = "Stopped.";
      return { begun, outcome, error: signal.aborted ? null : error };
    } finally {
      reply.element.classList.remove("live");
    }
  }

  // steer says what is written to the model that is answering: after the next results of its tools (now), or when the answer is complete.
  async function steer(when) {
    const text = field.value.trim();
    if (!text || !id) return;
    try {
      await post(`v1/sessions/${encodeURIComponent(id)}/messages`, { text, when });
      field.value = "";
      grow();
      notice.textContent = `The model reads this ${when === "now" ? "next" : "when the answer is complete"}: ${oneLine(text, 80)}`;
    } catch (error) {
      notice.textContent = error.message;
    }
  }

  // send sends a message: what was written and attached, or one that failed before.
  async function send(again) {
    const prompt = again?.prompt ?? field.value.trim();
    const sent = again?.sent ?? attached;
    if ((!prompt && !sent.length) || sending) return;
    let made = ""; // id of a session that was made for the message
    let said = null;
    let reply = null;
    let heard = { begun: false };
    await working(async (signal) => {
      const begin = { ...given };
      if (!id && !talk.querySelector(".turn")) fill(talk);
      try {
        if (new Blob([JSON.stringify({ prompt, files: sent })]).size + 64 > await limit()) throw new Error(`The message was not sent: a request can have at most ${size(await limit())}.`);
        if (edited && !await branch(edited, false)) {
          field.value = prompt; // which reading the session again has emptied
          return void grow();
        }
      } catch (error) {
        if (context.problem(error)) say(failure(error));
        return;
      }
      said = say(mine(prompt, sent.map((f) => f.name)));
      reply = answer();
      say(reply.element);
      reply.element.classList.add("live");
      talk.scrollTop = talk.scrollHeight;
      edit(null);
      if (!again) {
        field.value = "";
        attached = [];
        drawFiles();
        grow();
      }
      try {
        if (!id) {
          const [kind, ...name] = who.value.split(":");
          const session = await post("v1/sessions", who.value ? { [kind]: name.join(":"), ...(kind === "agent" && { variables: begin }) } : {}, signal);
          id = shown = session.id;
          made = id;
          context.replace(`#/chat/${encodeURIComponent(id)}`);
          modes.keep(id, mode.value);
          enter(session);
        }
        if (!turns.length) begins.set(id, named(oneLine(prompt, 60) || "Files"));
        sessions.again();
        heard = await hear(reply, "completions", { prompt, ...(sent.length && { files: sent }) }, signal);
      } catch (error) {
        heard.error = error;
        if (signal.aborted) { heard = { begun: false }; reply.foot.textContent = "Stopped."; }
      }
      reply.element.classList.remove("live");
      const { begun, error, outcome } = heard;
      if (error && (context.problem(error) || error.status !== 401)) failed(reply, error, begun && (() => { said.remove(); send({ prompt, sent }); }));
      else if (begun && outcome?.finish_reason !== "question") turns.push({ said, reply, prompt, sent });
      if (error && !begun) unsent(prompt, sent, said);
      if (made && error) await dropEmpty(made); // a message that was stopped stays
      if (outcome?.compressed) reread();
    });
  }

  // regenerate has the last question answered again. The old answer is shown again if that fails.
  async function regenerate(turn) {
    if (sending) return;
    const old = turn.reply;
    const reply = answer();
    await working(async (signal) => {
      let heard = {};
      try {
        const begun = await asSeen(turn, async ({ version }) => {
          old.element.hidden = true;
          old.element.after(reply.element);
          heard = await hear(reply, "regenerate", { version }, signal);
          if (heard.error?.status === 409) throw heard.error;
        });
        if (!begun) return;
      } catch (error) {
        heard = { error };
        old.element.after(reply.element);
      }
      const { error, outcome } = heard;
      if (error && context.problem(error)) {
        old.element.hidden = false;
        failed(reply, error, () => regenerate(turn));
      } else {
        old.element.remove();
        turn.reply = reply;
        if (outcome?.compressed) reread();
      }
    });
  }

  // place returns where the messages of a turn are in the session, and the version of the session in which they are there. If the
  // session has other turns than the page, which happens with two tabs, it is shown as it is now, and nothing is returned.
  async function place(turn) {
    const starts = [];
    const said = [];
    let page = { next_after: 0 };
    for (let after = 0; after != null; after = page.next_after) {
      page = await get(`v1/sessions/${encodeURIComponent(id)}?limit=200&after=${after}`);
      page.messages.forEach((m, i) => {
        if (m.role !== "user" || m.continuation || m.steer) return;
        starts.push(after + i);
        said.push(textOf(m));
      });
    }
    const own = turns.filter((t) => !t.run);
    if (said.length !== own.length || !own.every((t, i) => said[i].includes(t.prompt))) return void await changed();
    const at = own.indexOf(turn);
    return { from: starts[at], to: starts[at + 1] ?? page.message_count, version: page.version };
  }

  // changed shows a session that another tab or program has changed.
  async function changed() {
    await reread();
    say(h("p.warning", { role: "status" }, "This page was out of date. The chat is shown as it is now, and nothing was done."));
  }

  // asSeen runs act(place of a turn), which the server refuses if the session has changed since. It returns whether act ran.
  async function asSeen(turn, act) {
    const at = await place(turn);
    if (!at) return false;
    try {
      await act(at);
      return true;
    } catch (error) {
      if (error.status !== 409) throw error;
      await changed();
      return false;
    }
  }

  // branch continues in a new session with the turns up to one, with that or without it.
  async function branch(turn, whole) {
    let session = null;
    if (!await asSeen(turn, async ({ from, to, version }) => { session = await post(`v1/sessions/${encodeURIComponent(id)}/fork`, { messages: whole ? to : from, version }); })) return false;
    history.pushState(null, "", location.hash);
    id = shown = session.id;
    context.replace(`#/chat/${encodeURIComponent(id)}`);
    turns.splice(turns.indexOf(turn) + (whole ? 1 : 0));
    for (const element of [...talk.children]) if (!turns.some((t) => t.said === element || t.reply.element === element)) element.remove();
    const model = wanted;
    enter(session);
    wanted = model;
    sessions.again();
    mark();
    return true;
  }

  // edit puts an earlier message into the composer. Sent, it begins a new chat with what came before it; null ends that.
  function edit(turn) {
    const before = edited;
    edited = turn;
    fill(notice, turn && ["Sending begins a new chat with what came before this message. The old one stays. ", h("button.small", { type: "button", onclick: () => edit(null) }, "Cancel the edit")]);
    for (const t of turns) t.said?.classList.toggle("edited", t === turn);
    if (turn) {
      field.value = turn.prompt;
      attached = turn.sent ?? [];
      field.focus();
    } else if (before && !sending) {
      field.value = "";
      attached = [];
    }
    drawFiles();
    grow();
  }

  // mark gives each turn the buttons for what can be done with it.
  function mark() {
    const own = turns.filter((t) => !t.run);
    for (const turn of own) {
      const act = (text, go) => h("button.quiet.small", { type: "button", onclick: go }, text);
      if (turn.said) fill(turn.said.lastChild, act("Edit", () => sending || edit(turn)));
      fill(turn.reply.acts, copyButton(() => turn.reply.source()), turn === own.at(-1) && turn.said && act("Regenerate", () => regenerate(turn)),
        act("Branch", async () => {
          if (sending) return;
          try {
            if (await branch(turn, true)) say(h("p.hint.node", { role: "status" }, "This is a new chat with what was said so far. The other one stays as it is."));
          } catch (error) {
            if (context.problem(error)) say(failure(error));
          }
        }));
    }
  }

  // failed shows why there is no answer, and asks again if the user wants, another model if one was chosen meanwhile.
  function failed(reply, error, again) {
    const hint = /POST \/v1\/runs\/\w+\/resume$/.test(error.hint ?? "") && again ? "Try again, or choose another model first." : error.hint;
    const box = failure(Object.assign(new Error(error.message), { hint, requestID: error.requestID }), again && (() => {
      if (sending) return;
      reply.element.remove();
      again();
    }));
    follow(() => reply.add(box));
  }

  // unsent gives back a message that the server did not take.
  function unsent(prompt, sent, said) {
    said.remove();
    field.value = prompt;
    attached = sent;
    drawFiles();
    grow();
  }

  // dropEmpty removes a session that was made for a message, if it has nothing of it. The conversation begins again with the next one.
  async function dropEmpty(made) {
    const session = await get(`v1/sessions/${encodeURIComponent(made)}`).catch(() => null);
    if (!session || session.messages?.length) return;
    await remove(`v1/sessions/${encodeURIComponent(made)}`).catch(() => {}); // it stays in the list, empty
    if (id !== made) return; // the user has gone elsewhere
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
    follow(() => reply.add(h("article.card", {}, form(run, found ?? data, async (given) => {
      if (accepts(found ?? data, given)) modes.keep(id, mode.value = "ask"); // its work has begun
      follow(() => reply.add(h("p.hint", {}, "The answer continues in ", h("a", { href: `#/runs/${run}` }, "its run"), ".")));
      const session = id;
      const wait = poll(async (signal) => {
        if (id !== session) return void wait.stop();
        const { status } = await get(`v1/runs/${encodeURIComponent(run)}`, signal);
        if (status === "running") return true;
        wait.stop();
        reread();
      }, { fast: 700, slow: 2000, onerror: (error) => context.problem(error) });
    }))));
  }

  function foot(reply, outcome) {
    const u = outcome.usage ?? reply.usage ?? {};
    const run = outcome.run_id ?? outcome.run;
    fill(reply.foot, [outcome.model, u.input_tokens != null && `${tokens(u.input_tokens) || "0 tokens"} in`, u.output_tokens != null && `${tokens(u.output_tokens) || "0 tokens"} out`, u.cost_usd ? cost(u) : ""].filter(Boolean).join(" · "), run && [" · ", h("a", { href: `#/runs/${run}` }, "run")]);
  }

  async function erase() {
    const done = await dialog("Delete this session?", h("p", {}, "Its messages are removed for good."), "Delete", async () => { await remove(`v1/sessions/${encodeURIComponent(id)}`); return true; });
    if (done) { location.hash = "#/chat"; sessions.again(); }
  }

  const sessions = poll(async (signal) => {
    const { data } = await get("v1/sessions?limit=100", signal);
    context.online();
    const focused = document.activeElement?.getAttribute("href");
    fill(list, data.length ? data.map((s) => h("a.item", { href: `#/chat/${encodeURIComponent(s.id)}`, "aria-current": s.id === id && "page" }, h("strong", {}, titleOf(s)), h("span.hint", {}, [s.agent, s.error || (sending && s.id === id ? "answering…" : !s.turns && begins.has(s.id) ? "not answered yet" : plural(s.turns, "turn")), `${age(s.modified_at)} ago`].filter(Boolean).join(" · ")))) : h("p.empty", {}, "No sessions yet."));
    if (focused) [...list.children].find((a) => a.getAttribute("href") === focused)?.focus();
    return false;
  }, { slow: 15_000, onerror: (error) => context.problem(error) && fill(list, failure(error)) });

  // titleOf returns what a session is called: a name that the user gave, or how it begins.
  function titleOf(s) {
    return (s.alias ?? "").replace(/^\d{8}T\d{6}-?/, "") || s.title || oneLine(s.first, 60) || begins.get(s.id) || "Empty session";
  }

  // named shows a title, and returns it.
  function named(text) {
    title.textContent = text;
    document.title = `${text} · Loki`;
    return text;
  }

  // reread shows the session as the server has it.
  function reread() {
    shown = null;
    return choose({ path: ["chat", id], query: new URLSearchParams() });
  }

  // enter shows who answers in a session. Its role or agent stays; its model can change with each message.
  function enter(session) {
    forget.hidden = false;
    wanted = "";
    model = session.model ?? "";
    ownMode = session.settings?.mode ?? "ask";
    mode.value = modes.of(id) || ownMode;
    partner.textContent = session.agent || session.role || session.rag || "";
    chosen = session.agent ? `agent:${session.agent}` : session.role ? `role:${session.role}` : session.rag ? `rag:${session.rag}` : session.model ? `model:${session.model}` : "";
    offer(true, model);
  }

  // offer fills the selector: with models for a session, with all who can answer for a new one.
  function offer(inSession, model) {
    const group = (label, options) => options.length > 0 && h("optgroup", { label }, options);
    const models = known.models.map((m) => h("option", { value: `model:${m.id}` }, m.id));
    who.setAttribute("aria-label", inSession ? "Model" : "Model, role or agent");
    if (inSession) fill(who, !model && h("option", { value: "" }, partner.textContent ? `Model of ${partner.textContent}` : "Default model"), models);
    else fill(who, h("option", { value: "" }, "Default model"), group("Models", models), group("Roles", known.roles.map((r) => h("option", { value: `role:${r.name}` }, r.name))), group("Agents", known.agents.map((a) => h("option", { value: `agent:${a.name}` }, a.name))), group("Knowledge bases", known.rags.map((r) => h("option", { value: `rag:${r.name}` }, r.name))));
    select(inSession ? (model ? `model:${model}` : "") : chosen);
  }

  async function partners() {
    const [models, roles, found, rags] = await Promise.all(["models", "roles", "agents", "rags"].map((kind) => get(`v1/${kind}?limit=200`).then((l) => l.data, () => [])));
    known = { models: models.filter((m) => (m.kind ?? "chat") === "chat"), roles, rags, agents: found.filter((a) => a.kind !== "graph") };
    if (id) return offer(true, wanted || model);
    const [kind, name] = [chosen.split(":", 1)[0], chosen.slice(chosen.indexOf(":") + 1)];
    const there = !chosen || (kind === "agent" ? known.agents.some((a) => a.name === name) : kind === "role" ? roles.some((r) => r.name === name) : true);
    if (!there) chosen = "";
    offer(false);
    if (there) return blank();
    fill(talk, h("p.empty", {}, found.some((a) => a.name === name) ? [`${name} is a graph and works in runs, not in conversations. `, h("a", { href: `#/agents/${encodeURIComponent(name)}` }, "Start a run")] : `There is no ${kind} ${name}.`));
  }

  // blank shows a chat that has not begun: with the variables and the starters of an agent.
  async function blank() {
    if (talk.querySelector(".turn") || (talk.dataset.blank === chosen && talk.firstChild)) return; // a message that failed, or it is shown
    talk.dataset.blank = chosen;
    given = {};
    const [kind, ...name] = chosen.split(":");
    const text = h("p.empty", {}, "Choose who answers, and write a message.");
    fill(talk, text);
    const agent = kind === "agent" && await get(`v1/agents/${encodeURIComponent(name.join(":"))}`).catch(() => null);
    if (!agent || !text.isConnected) return;
    fill(text, agent.description || `Write a message to ${agent.name}.`);
    talk.append(h("div.begin", {}, (agent.variables ?? []).map((v) => [h("label", { for: `var-${v.name}` }, v.name, v.description && h("span.hint", {}, v.description)),
      h("input", { id: `var-${v.name}`, value: v.default ?? "", placeholder: v.default == null ? "required" : "", oninput: (e) => { given[v.name] = e.target.value; } })]),
    agent.starters?.length > 0 && h("div.starters", { role: "group", "aria-label": "Starters" }, agent.starters.map((starter) => h("button", { type: "button", onclick: () => { field.value = starter; grow(); field.focus(); } }, starter)))));
  }

  // select chooses a partner, also one that is not in the list.
  function select(value) {
    if (![...who.options].some((o) => o.value === value)) who.append(h("option", { value }, value.slice(value.indexOf(":") + 1) || "Default model"));
    who.value = value;
  }

  async function choose(route) {
    view.classList.toggle("has-page", !route.query.get("list"));
    for (const kind of ["agent", "rag"]) if (route.query.get(kind)) chosen = `${kind}:${route.query.get(kind)}`;
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
    turns = [];
    edit(null);
    named("New chat");
    if (!id) {
      mode.value = ownMode = "ask";
      offer(false);
      blank();
      return void focus();
    }
    try {
      let after = 0;
      do {
        const session = await get(`v1/sessions/${encodeURIComponent(id)}${after ? `?after=${after}` : ""}`, signal);
        if (!after) named(titleOf({ ...session, first: (session.messages.find((m) => m.role === "user")?.parts ?? [])[0]?.text }));
        if (!after) enter(session);
        draw(session.messages);
        after = session.next_after;
        if (!after) await drawWaiting(session.waiting, signal);
      } while (after);
    } catch (error) {
      if (!signal.aborted && context.problem(error)) fill(talk, failure(error));
    }
  }

  partners();
  choose(context);
  field.value = draft;
  grow();
  return { title: "Chat", update: (to) => { choose(to); if (!to.query.get("list")) focus(); }, focus, close: () => { draft = edited ? "" : field.value; sessions.stop(); sending?.abort(); loading.abort(); }, hints: { Enter: ["send the message"], "Shift Enter": ["begin a new line"], "Alt Enter": ["tell the model while it answers"] }, keys: { i: ["write a message", () => field.focus()], n: ["new chat", () => { location.hash = "#/chat"; }] } };
}
