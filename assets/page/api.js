// Calls of the API, and streams of events that survive a lost connection.

const base = new URL("./", document.baseURI);

export const key = {
  get: () => sessionStorage.getItem("loki-key") ?? "",
  set: (value) => sessionStorage.setItem("loki-key", value),
  clear: () => sessionStorage.removeItem("loki-key"),
};

// APIError is an answer that is not a success. Status is 0 if there was no answer.
export class APIError extends Error {
  constructor(status, body, retryAfter) {
    super(body?.message || `The server answered with status ${status}.`);
    this.status = status;
    this.code = body?.code ?? "";
    this.hint = body?.hint ?? "";
    this.requestID = body?.request_id ?? "";
    this.retryAfter = retryAfter;
  }
}

function headers(more) {
  const all = new Headers(more);
  if (key.get()) all.set("Authorization", `Bearer ${key.get()}`);
  return all;
}

// unique returns a key of an attempt. Unlike crypto.randomUUID it works on a page without TLS.
function unique() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
}

// send makes a request and returns its response if that is a success. Where the server asks for a key it also fires
// the event "unauthorized" at the window.
async function send(method, path, { body, signal, more, idempotent } = {}) {
  const init = { method, headers: headers(more), signal, cache: "no-store", credentials: "omit", redirect: "error" };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers.set("Content-Type", "application/json");
  }
  if (idempotent) init.headers.set("Idempotency-Key", unique());
  let response;
  try {
    response = await fetch(new URL(path, base), init);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new APIError(0, { message: "The server cannot be reached." });
  }
  if (response.ok) return response;
  const text = await response.text().catch(() => "");
  let problem;
  try {
    problem = JSON.parse(text).error;
  } catch {
    problem = null; // not from the server itself, but from a proxy
  }
  if (response.status === 401) dispatchEvent(new CustomEvent("unauthorized"));
  throw new APIError(response.status, problem, Number(response.headers.get("Retry-After")) || 0);
}

export async function get(path, signal) {
  return (await send("GET", path, { signal })).json();
}

export async function getText(path, signal) {
  return (await send("GET", path, { signal })).text();
}

// post returns the answer, or null if it is empty. Work that it starts is started once.
export async function post(path, body = {}, signal) {
  const response = await send("POST", path, { body, signal, idempotent: true });
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

// change changes a part of something, and returns what it is then.
export async function change(path, body) {
  return (await send("PATCH", path, { body })).json();
}

export async function remove(path) {
  await send("DELETE", path);
}

// stream posts a body and yields the frames of the answer.
export async function* stream(path, body, signal) {
  yield* frames(await send("POST", path, { body, signal, idempotent: true, more: { Accept: "text/event-stream" } }));
}

// batches parses server-sent events. It yields a list of {id, name, data} for each piece that arrives, which is empty if the
// piece holds only comments.
async function* batches(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let frame = { id: "", name: "", data: [] };
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const found = [];
      const lines = (rest + value).split(/\r\n|\n/);
      rest = lines.pop();
      for (const line of lines) {
        if (line === "") {
          if (frame.data.length) found.push({ id: frame.id, name: frame.name, data: frame.data.join("\n") });
          frame = { id: "", name: "", data: [] };
          continue;
        }
        const colon = line.indexOf(":");
        if (colon === 0) continue;
        const field = colon < 0 ? line : line.slice(0, colon);
        const text = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
        if (field === "data") frame.data.push(text);
        else if (field === "event") frame.name = text;
        else if (field === "id") frame.id = text;
      }
      yield found;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function* frames(response) {
  for await (const batch of batches(response)) {
    for (const frame of batch) yield { ...frame, data: JSON.parse(frame.data) };
  }
}

const silence = 45_000; // ms without even a comment after which a connection counts as lost; the server sends one every 15 s

// follow reads a stream of events for as long as it goes on, and again after the last one seen whenever the connection is
// lost. onbatch gets lists of {id, name, data}, with data parsed. A stream that the server ends is over if complete() returns true. onstate gets
// "connecting", "live", "over", "asleep", "lost" with the milliseconds until the next attempt, or "failed" with an error that no other attempt
// would mend. A page that nobody sees gives its connection back after a while: a browser has six for a server.
export function follow(path, { onbatch, onstate, complete, after = "" }) {
  const over = new AbortController();
  let last = after;
  let attempt = 0;
  let current;
  let wake = () => {};

  const visible = () => {
    if (document.visibilityState === "visible") wake();
    else setTimeout(() => document.visibilityState === "hidden" && current?.abort(), 20_000);
  };
  document.addEventListener("visibilitychange", visible);
  addEventListener("online", () => wake(), { signal: over.signal });

  async function once() {
    current = new AbortController();
    over.signal.addEventListener("abort", () => current.abort(), { once: true });
    let alarm = setTimeout(() => current.abort(), silence);
    try {
      const more = { Accept: "text/event-stream" };
      if (last) more["Last-Event-ID"] = last;
      const response = await send("GET", path, { signal: current.signal, more });
      onstate("live");
      for await (const batch of batches(response)) {
        clearTimeout(alarm);
        alarm = setTimeout(() => current.abort(), silence);
        attempt = 0;
        for (const frame of batch) {
          if (frame.id) last = frame.id;
          frame.data = JSON.parse(frame.data);
        }
        if (batch.length) onbatch(batch);
      }
    } finally {
      clearTimeout(alarm);
    }
    return complete();
  }

  (async () => {
    while (!over.signal.aborted) {
      onstate("connecting");
      try {
        if (await once()) return onstate("over");
      } catch (error) {
        if (over.signal.aborted) return;
        if (error instanceof APIError && error.status >= 400 && error.status < 500 && error.status !== 429) return onstate("failed", error);
      }
      if (over.signal.aborted) return;
      const wait = Math.min(15_000, 500 * 2 ** attempt++) * (0.75 + Math.random() / 2);
      const hidden = document.visibilityState === "hidden";
      onstate(hidden ? "asleep" : "lost", wait);
      await new Promise((resolve) => {
        wake = resolve;
        if (!hidden) setTimeout(resolve, wait);
        over.signal.addEventListener("abort", resolve, { once: true });
      });
    }
  })();

  return {
    last: () => last,
    close: () => {
      over.abort();
      document.removeEventListener("visibilitychange", visible);
    },
  };
}

// poll calls load at once and then again and again: after `fast` ms if it returned true, else after `slow` ms, and not while the
// page is hidden. Errors are given to onerror.
export function poll(load, { fast = 2000, slow = 8000, onerror }) {
  const over = new AbortController();
  let timer;
  let busy = false;
  let asked = false; // for another turn, while one is under way
  const turn = async () => {
    if (over.signal.aborted) return;
    if (busy) return void (asked = true);
    clearTimeout(timer);
    busy = true;
    let wait = slow;
    try {
      if (await load(over.signal)) wait = fast;
    } catch (error) {
      if (!over.signal.aborted) onerror(error);
    }
    busy = false;
    if (asked) wait = 0;
    asked = false;
    if (!over.signal.aborted && document.visibilityState === "visible") timer = setTimeout(turn, wait);
  };
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && turn(), { signal: over.signal });
  turn();
  return { again: turn, stop: () => { over.abort(); clearTimeout(timer); } };
}
