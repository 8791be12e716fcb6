// A run as a tree of rows, made of its events alone. Events may come one at a time or by the thousand.

// visitKey names the visit of a node that a row or a visit of the API is.
export const visitKey = (v) => `${v.step}\u0000${v.node}\u0000${v.visit ?? 1}`;

// Row: {id, kind, parent, depth, children, n, title, text, status, start, end, seconds, usage, step, node, ...}. Kinds: node, item, agent,
// model, tool, question, state, note. Times are milliseconds since 1970.

export class Trace {
  constructor() {
    this.rows = new Map(); // by id
    this.roots = [];
    this.nodes = new Map(); // state of each node of the run's own graph: {status, visits, row}
    this.edges = new Set(); // that were taken: by their ids, or "from\u0000to" where a node went on to all of its next
    this.agents = new Map(); // row of each child agent
    this.open = new Map(); // rows that have not ended, by what closes them
    this.visits = new Map(); // the last row of each visit of a node; a visit that was interrupted has several
    this.segments = []; // {start, end}: the times at which a process ran it
    this.count = 0;
    this.finished = null; // event
    this.changes = 0;
    this.jobs = false; // there were some
  }

  // add takes one event, in the order of the stream. n is its number, 0 for a live piece.
  add(e, n) {
    const time = Date.parse(e.time);
    const last = this.segments.at(-1);
    if (!last || (e.type === "started" && !e.depth)) this.segments.push({ start: time, end: time });
    else last.end = Math.max(last.end, time);
    if (n) this.count++;
    this.changes++;
    this[`on_${e.type}`]?.(e, n, time);
    const map = !e.depth && (e.item !== undefined || e.total) && this.nodes.get(e.node);
    if (map) map.branch = e.failed_items?.length ? "failed" : (map.branch ?? "running"); // the items are at work
  }

  // row makes a row below the node, item and agent that an event belongs to.
  row(kind, e, n, time, more) {
    const parent = kind === "node" ? this.agents.get(e.agent_id) : this.scope(e, n, time);
    const row = {
      id: `${kind}-${n || `live-${this.changes}`}`, kind, parent, depth: parent ? parent.depth + 1 : 0, children: [], n, start: time, end: 0, status: "",
      step: e.step, node: e.node, item: e.item, agentID: e.agent_id, title: "", text: "", ...more,
    };
    this.rows.set(row.id, row);
    (parent ? parent.children : this.roots).push(row);
    return row;
  }

  place(e) {
    return `${e.agent_id ?? ""}\u0000${e.node ?? ""}`;
  }

  // scope returns the row that an event is shown below: an element of a map, a node, a child agent, or none.
  scope(e, n, time) {
    const node = e.node !== undefined ? this.open.get(`node\u0000${this.place(e)}`) : undefined;
    if (e.item === undefined || !node) return node ?? this.agents.get(e.agent_id);
    const place = `item\u0000${this.place(e)}\u0000${e.item}\u0000${node.id}`;
    let item = this.open.get(place);
    if (!item) {
      item = { id: `item-${node.id}-${e.item}`, kind: "item", parent: node, depth: node.depth + 1, children: [], n, start: time, end: 0, status: "running", step: e.step, node: e.node, item: e.item, title: `${e.node}[${e.item}]`, text: "" };
      this.rows.set(item.id, item);
      this.open.set(place, item);
      node.children.push(item);
    }
    return item;
  }

  close(row, time, status) {
    row.end = time;
    row.seconds ??= Math.max(0, (time - row.start) / 1000);
    row.status = status;
    for (let p = row.parent; p?.kind === "item"; p = p.parent) {
      p.end = time;
      p.seconds = (time - p.start) / 1000;
      p.status = p.children.some((c) => c.status === "failed") ? "failed" : p.children.every((c) => c.end) ? "done" : "running";
    }
  }

  on_started(e, n, time) {
    if (!e.depth) {
      this.finished = null;
      if (e.resumed) {
        this.cut(time);
        this.row("note", e, n, time, { title: "resumed", status: "note", end: time });
      }
      return;
    }
    const parent = this.open.get(`node\u0000${e.parent ?? ""}\u0000${e.parent_node ?? ""}`) ?? this.agents.get(e.parent);
    const row = { id: `agent-${e.agent_id}`, kind: "agent", parent, depth: parent ? parent.depth + 1 : 0, children: [], n, start: time, end: 0, status: "running", step: e.step ?? parent?.step, agentID: e.agent_id, title: e.agent, text: e.prompt ?? "", prompt: e.prompt };
    if (this.agents.has(e.agent_id)) return; // it goes on after an interruption
    this.rows.set(row.id, row);
    this.agents.set(e.agent_id, row);
    (parent ? parent.children : this.roots).push(row);
  }

  on_finished(e, n, time) {
    if (e.depth) {
      const row = this.agents.get(e.agent_id);
      if (!row) return;
      row.seconds = e.seconds;
      row.output = e.output;
      row.error = e.error;
      row.usage = e.usage;
      this.close(row, time, e.error ? "failed" : "done");
      return;
    }
    this.finished = e;
    this.cut(time, e.code === "suspended" ? "waiting" : "stopped");
  }

  // cut ends what was at work when a run was interrupted.
  cut(time, status = "stopped") {
    for (const [key, row] of this.open) {
      if (row.kind !== "question" && !row.end) this.close(row, time, row.status === "waiting" ? "waiting" : status);
      if (row.kind !== "question") this.open.delete(key);
    }
    for (const state of this.nodes.values()) if (state.status === "running") state.status = status === "waiting" ? "waiting" : "stopped";
  }

  on_node_started(e, n, time) {
    const row = this.row("node", e, n, time, { title: e.node, type: e.node_type, visit: e.visit, status: "running", parallel: e.parallel });
    this.open.set(`node\u0000${this.place(e)}`, row);
    if (!e.depth) {
      this.visits.set(visitKey(row), row);
      this.nodes.set(e.node, { status: "running", visits: e.visit ?? 1, row });
      if (e.undoes) this.edges.add(`${e.undoes}.compensate`);
    }
  }

  on_node_finished(e, n, time) {
    const key = `node\u0000${this.place(e)}`;
    const row = this.open.get(key);
    if (!row) return;
    row.seconds = e.seconds;
    row.targets = e.targets;
    row.error = e.error;
    row.last = e.end;
    const status = e.waiting ? "waiting" : e.error ? "failed" : "done";
    this.close(row, time, status);
    this.open.delete(key);
    // A call that failed has no reply.
    for (const [name, call] of this.open) {
      if (call.kind !== "model" || !name.startsWith(`model\u0000${this.place(e)}\u0000`)) continue;
      call.error = e.error;
      this.close(call, time, e.waiting ? "waiting" : "failed");
      this.open.delete(name);
    }
    const state = !e.depth && this.nodes.get(e.node);
    if (!state) return;
    state.status = status;
    if (state.branch && e.tolerated) state.branch = "failed"; // the record does not have how far a map had come
    for (const edge of e.edges ?? (e.targets ?? []).map((to) => `${e.node}\u0000${to}`)) this.edges.add(edge);
  }

  call(e) {
    return `model\u0000${this.place(e)}\u0000${e.item ?? ""}`;
  }

  on_model_call(e, n, time) {
    this.open.set(this.call(e), this.row("model", e, n, time, { title: e.model, status: "running", turn: e.turn, reasoning: "", tries: [] }));
  }

  on_delta(e) {
    const row = this.open.get(this.call(e));
    if (row) row.text += e.text;
  }

  on_reasoning(e) {
    const row = this.open.get(this.call(e));
    if (row) row.reasoning += e.text;
  }

  on_retry(e, n, time) {
    const row = this.open.get(this.call(e));
    if (!row) return this.row("note", e, n, time, { title: `try ${e.attempt} failed`, text: e.error, status: "warning", end: time });
    row.tries.push(e);
    row.text = row.reasoning = "";
  }

  on_reply(e, n, time) {
    const row = this.open.get(this.call(e)) ?? this.row("model", e, n, time, { title: e.model, reasoning: "", tries: [] });
    this.open.delete(this.call(e));
    row.text = e.text;
    row.stop = e.stop;
    row.usage = e.usage;
    row.reply = n;
    this.close(row, time, "done");
    for (let p = row.parent; p; p = p.parent) if (p.kind !== "agent") p.usage = sum(p.usage, e.usage);
  }

  on_tool_call(e, n, time) {
    this.open.set(`tool\u0000${this.place(e)}\u0000${e.item ?? ""}\u0000${e.id}`, this.row("tool", e, n, time, { title: e.name, text: e.arguments, arguments: e.arguments, status: "running", call: e.id, lines: [] }));
  }

  on_tool_result(e, n, time) {
    const key = `tool\u0000${this.place(e)}\u0000${e.item ?? ""}\u0000${e.id}`;
    const row = this.open.get(key) ?? this.row("tool", e, n, time, { title: e.name, lines: [] });
    this.open.delete(key);
    row.result = e.text;
    if (e.original_arguments) row.text = row.arguments = e.arguments;
    this.close(row, time, e.failed ? "failed" : "done");
  }

  on_question(e, n, time) {
    this.open.set(`question\u0000${e.agent_id ?? ""}\u0000${e.id}`, this.row("question", e, n, time, { title: e.id, text: e.text, question: e, status: "waiting" }));
    const state = !e.depth && this.nodes.get(e.node);
    if (state) state.status = "waiting";
  }

  on_answer(e, n, time) {
    const key = `question\u0000${e.agent_id ?? ""}\u0000${e.id}`;
    const row = this.open.get(key) ?? this.row("question", e, n, time, { title: e.id, text: "", question: null });
    this.open.delete(key);
    row.answer = e.text;
    this.close(row, time, "done");
    const state = !e.depth && this.nodes.get(e.node);
    if (state?.status === "waiting" && !state.row.end) state.status = "running";
  }

  on_escalation(e, n, time) {
    this.open.set(`escalation\u0000${e.id}`, this.row("question", e, n, time, { title: "asks the agents above", text: e.text, question: e, status: "waiting", escalated: true }));
  }

  on_escalation_answered(e, n, time) {
    const row = this.open.get(`escalation\u0000${e.id}`);
    if (!row) return;
    this.open.delete(`escalation\u0000${e.id}`);
    row.answer = e.text ?? "(no answer in time)";
    this.close(row, time, e.timed_out ? "failed" : "done");
  }

  on_map_progress(e, n, time) {
    const row = this.open.get(`node\u0000${this.place(e)}`);
    if (!row) return;
    row.progress = e;
    const mark = { time, done: e.done };
    if (!row.pace) row.pace = { before: mark, last: mark };
    else if (time - row.pace.last.time >= 20_000) row.pace = { before: row.pace.last, last: mark };
    row.pace.now = mark;
  }

  on_limited(e) { // a call of a map, or of another node, waits for its provider
    const row = this.open.get(`node\u0000${this.place(e)}`);
    if (row) row.limited = e;
  }

  note(e, n, time, title, text, more) {
    this.row("note", e, n, time, { title, text, status: "note", end: time, event: e, ...more });
  }

  on_warning(e, n, time) { this.note(e, n, time, "warning", e.text, { status: "warning" }); }
  on_retrieved(e, n, time) { this.note(e, n, time, `search in ${e.base}`, `${e.sources?.length ?? 0} passages for: ${e.query}`); }
  on_todo_updated(e, n, time) { this.note(e, n, time, "todo list", `${e.todos.filter((t) => t.done).length} of ${e.todos.length} done`); }
  on_auto_continue(e, n, time) { this.note(e, n, time, "goes on by itself", `${e.count} of ${e.max}, ${e.open} open`); }
  on_skill_loaded(e, n, time) { this.note(e, n, time, `skill ${e.name} loaded by the ${e.by}`, e.directory); }
  on_plan(e, n, time) { this.note(e, n, time, `plan ${e.state}: ${e.title}`, e.reason || ""); }
  on_memory(e, n, time) { this.note(e, n, time, `memory: ${e.action}`, e.facts.map((f) => `${f.title} (${f.id})`).join(", ")); }
  on_job_started(e, n, time) { this.jobs = true; this.note(e, n, time, `${e.id} started`, e.command); }
  on_job_ended(e, n, time) { this.note(e, n, time, `${e.id} ${e.status}`, e.reason ?? `with status ${e.exit}`); }
  on_instructions(e, n, time) { this.note(e, n, time, "instructions of the workspace", e.files.map((f) => `${f.path}: ${f.state}`).join(", ")); }
  on_steered(e, n, time) { this.note(e, n, time, "message of the user", e.text); }
  on_message_sent(e, n, time) { this.note(e, n, time, `message to ${e.to || "the first agent"}`, e.text); }
  on_task_updated(e, n, time) { this.note(e, n, time, `task ${e.id}`, `${e.subject}: ${e.status}`); }
  on_index_finished(e, n, time) { this.note(e, n, time, `index ${e.base}`, e.error ?? `${e.files} documents, ${e.chunks} chunks`, e.error ? { status: "failed" } : {}); }
  on_webhook(e, n, time) { this.note(e, n, time, "webhook", e.error ?? e.url ?? "", e.error ? { status: "warning" } : {}); }
  on_compression_finished(e, n, time) { this.note(e, n, time, "compressed", e.error ?? `${e.before} to ${e.after} tokens`); }
  on_tool_output(e) {
    for (const row of this.open.values()) if (row.kind === "tool" && row.title === e.name && row.node === e.node && row.item === e.item) return void row.lines.push(e.text);
  }

  // offset returns the milliseconds of work before a time; what lies between two executions does not count.
  offset(time) {
    let before = 0;
    for (const { start, end } of this.segments) {
      if (time < start) break;
      before += Math.min(time, end) - start;
    }
    return before;
  }

  // list returns the rows from top to bottom that keep wants, each with those it is below, and without what is below a
  // row of the set folded.
  list(keep, folded) {
    const out = [];
    const walk = (row) => {
      const at = out.push(row) - 1;
      const shut = folded.has(row.id);
      let any = false;
      if (!shut) for (const child of row.children) any = walk(child) || any;
      if (any || !keep || keep(row) || (shut && row.children.some(deep))) return true;
      out.length = at;
      return false;
    };
    const deep = (row) => keep(row) || row.children.some(deep);
    for (const row of this.roots) walk(row);
    return out;
  }
}

function sum(a, b) {
  if (!b) return a;
  const out = { ...a };
  for (const [name, n] of Object.entries(b)) out[name] = typeof n === "number" ? (out[name] ?? 0) + n : n || out[name];
  return out;
}

// secondsLeft estimates how long a map is likely to take whose provider limits its calls; undefined if that is not known.
export function secondsLeft(row) {
  const { before, now } = row.pace ?? {};
  const done = now?.done - before?.done;
  if (!row.limited?.at_once || !(done > 0) || now.time - before.time < 1000 || row.progress.done >= row.progress.total) return undefined;
  return (now.time - before.time) / 1000 / done * (row.progress.total - row.progress.done);
}
