// The cases. Each maker returns {graph, once}: a graph that is not compiled yet, and a
// function that goes through the compiled graph once and fails if the result is not the
// one it has to be. The names are the same for all engines.
import { Annotation, END, Send, START, StateGraph } from "@langchain/langgraph";

export const cases = {
  chain_3: () => counting(1),
  burst_10000: () => counting(10_000),
  fanout_5: fanOut,
  chain_10: () => noops(10),
  chain_1000: () => noops(1000),
  react_agent_10: () => react(10),
  react_agent_100: () => react(100),
  subgraph_10: () => subgraph(10),
  subgraph_100: () => subgraph(100),
  loop_100: () => loop(100),
  choose_5_of_10: () => choose(5, 10),
  map_chains_100: () => mapChains(100),
  wide_state_25x300: () => wide(5, 5, 300),
  wide_state_15x600: () => wide(3, 5, 600),
  wide_state_9x1200: () => wide(3, 3, 1200),
};

let threads = 0;

// invoke runs a compiled graph as a new thread.
function invoke(app, input) {
  return app.invoke(input, {
    configurable: { thread_id: `${++threads}` },
    recursionLimit: 1_000_000,
    // The checkpoint of a super-step is stored before the next one begins.
    ...(app.checkpointer ? { durability: "sync" } : {}),
  });
}

function want(what, got, want) {
  if (got !== want) throw new Error(`${what}: got ${got}, want ${want}`);
}

const appending = () => Annotation({ reducer: (old, more) => old.concat(more), default: () => [] });
const merging = () => Annotation({ reducer: (old, more) => ({ ...old, ...more }), default: () => ({}) });

// chain is a row of n nodes that all do the same.
function chain(n, work) {
  const graph = new StateGraph(Annotation.Root({ n: Annotation() }));
  let previous = START;
  for (let i = 0; i < n; i++) {
    const name = `n${i}`;
    graph.addNode(name, work).addEdge(previous, name);
    previous = name;
  }
  return graph.addEdge(previous, END);
}

// counting is a chain of three nodes that add one to a counter, run so many times at
// once.
function counting(times) {
  const once = async (app) => want("n", (await invoke(app, { n: 0 })).n, 3);
  return {
    graph: chain(3, ({ n }) => ({ n: n + 1 })),
    once: times === 1 ? once : (app) => Promise.all(Array.from({ length: times }, () => once(app))),
  };
}

// noops is a chain of nodes that do nothing.
function noops(n) {
  return { graph: chain(n, () => ({})), once: (app) => invoke(app, { n: 0 }) };
}

// fanOut is a node, five side by side that each append to a list, and one that counts
// the list.
function fanOut() {
  const graph = new StateGraph(Annotation.Root({ results: appending(), total: Annotation() }))
    .addNode("split", () => ({}))
    .addNode("join", ({ results }) => ({ total: results.length }))
    .addEdge(START, "split")
    .addEdge("join", END);
  for (const w of ["w1", "w2", "w3", "w4", "w5"]) {
    graph.addNode(w, () => ({ results: [w] })).addEdge("split", w).addEdge(w, "join");
  }
  return { graph, once: async (app) => want("total", (await invoke(app, { results: [] })).total, 5) };
}

// react is a model that asks n times for a tool and then answers, and the tool. The
// messages are the state.
function react(n) {
  const replies = Array.from({ length: n }, (_, i) => {
    const id = `00000000-0000-0000-0000-${String(i).padStart(12, "0")}`;
    return { role: "assistant", content: "", tool_calls: [{ id, name: "search", args: { query: id.repeat(100) } }] };
  });
  replies.push({ role: "assistant", content: "answer".repeat(100) });
  const graph = new StateGraph(Annotation.Root({ messages: appending() }))
    .addNode("model", ({ messages }) => ({ messages: [replies[Math.floor(messages.length / 2)]] }))
    .addNode("tools", ({ messages }) => {
      const [call] = messages.at(-1).tool_calls;
      const content = `result for query: ${call.args.query}`.repeat(10);
      return { messages: [{ role: "tool", tool_call_id: call.id, content }] };
    })
    .addEdge(START, "model")
    .addEdge("tools", "model")
    .addConditionalEdges("model", ({ messages }) => (messages.at(-1).tool_calls ? "tools" : END), ["tools", END]);
  return {
    graph,
    once: async (app) => {
      const { messages } = await invoke(app, { messages: [{ role: "user", content: "hi?" }] });
      want("messages", messages.length, 2 * n + 2);
      want("length of a tool result", messages[2].content.length, 36_180);
    },
  };
}

// subgraph runs, for each of n subjects at once, a graph of twelve node runs of which
// ten are a loop.
function subgraph(n) {
  const bumped = " a".repeat(10);
  const inner = new StateGraph({
    input: Annotation.Root({ subject: Annotation() }),
    output: Annotation.Root({ jokes: Annotation() }),
    stateSchema: Annotation.Root({ subject: Annotation(), jokes: Annotation() }),
  })
    .addNode("edit", ({ subject }) => ({ subject: `${subject} - hohoho` }))
    .addNode("generate", ({ subject }) => ({ jokes: [`Joke about ${subject}`] }))
    .addNode("bump", ({ jokes }) => ({ jokes: [`${jokes[0]} a`] }))
    .addEdge(START, "edit")
    .addEdge("edit", "generate")
    .addEdge("generate", "bump")
    .addConditionalEdges("bump", ({ jokes }) => (jokes[0].endsWith(bumped) ? END : "bump"), ["bump", END])
    .compile();
  const graph = new StateGraph(Annotation.Root({ subjects: Annotation(), jokes: appending() }))
    .addNode("one", inner)
    .addConditionalEdges(START, ({ subjects }) => subjects.map((subject) => new Send("one", { subject })), ["one"])
    .addEdge("one", END);
  const subjects = Array.from({ length: n }, (_, i) => String(i).padStart(5, "0") + "subjects ".repeat(555));
  return {
    graph,
    once: async (app) => {
      const { jokes } = await invoke(app, { subjects });
      want("jokes", jokes.length, n);
      want("length of a joke", jokes[n - 1].length, "Joke about ".length + 5000 + " - hohoho".length + bumped.length);
    },
  };
}

// loop is a node that adds one to a counter and goes back to itself as long as a condition
// holds.
function loop(rounds) {
  const graph = new StateGraph(Annotation.Root({ n: Annotation() }))
    .addNode("work", ({ n }) => ({ n: n + 1 }))
    .addEdge(START, "work")
    .addConditionalEdges("work", ({ n }) => (n < rounds ? "work" : END), ["work", END]);
  return { graph, once: async (app) => want("n", (await invoke(app, { n: 0 })).n, rounds) };
}

// choose is a node that goes on to those of n nodes whose condition holds, which are k, and
// one that counts their results.
function choose(k, n) {
  const names = Array.from({ length: n }, (_, i) => `w${i}`);
  const graph = new StateGraph(Annotation.Root({ n: Annotation(), results: appending(), total: Annotation() }))
    .addNode("split", () => ({}))
    .addNode("join", ({ results }) => ({ total: results.length }))
    .addEdge(START, "split")
    .addConditionalEdges("split", ({ n }) => names.filter((_, i) => n > i), names)
    .addEdge("join", END);
  for (const w of names) graph.addNode(w, () => ({ results: [w] })).addEdge(w, "join");
  return { graph, once: async (app) => want("total", (await invoke(app, { n: k, results: [] })).total, k) };
}

// mapChains runs a chain of three nodes for each of n numbers.
function mapChains(n) {
  const inner = new StateGraph({
    input: Annotation.Root({ n: Annotation() }),
    output: Annotation.Root({ results: Annotation() }),
    stateSchema: Annotation.Root({ n: Annotation(), results: Annotation() }),
  })
    .addNode("a", ({ n }) => ({ n: n + 1 }))
    .addNode("b", ({ n }) => ({ n: n + 1 }))
    .addNode("c", ({ n }) => ({ results: [n + 1] }))
    .addEdge(START, "a")
    .addEdge("a", "b")
    .addEdge("b", "c")
    .addEdge("c", END)
    .compile();
  const graph = new StateGraph(Annotation.Root({ items: Annotation(), results: appending() }))
    .addNode("one", inner)
    .addConditionalEdges(START, ({ items }) => items.map((n) => new Send("one", { n })), ["one"])
    .addEdge("one", END);
  const items = Array.from({ length: n }, (_, i) => i);
  return {
    graph,
    once: async (app) => {
      const { results } = await invoke(app, { items });
      want("sum", results.reduce((a, b) => a + b, 0), (n * (n - 1)) / 2 + 3 * n);
    },
  };
}

// wide is a loop of six nodes, two of them side by side, over a state of fifteen keys
// whose lists grow by a factor of about three in each round, until there are more than
// limit messages. The first message is an object of outer objects of inner lists.
function wide(outer, inner, limit) {
  // text is limit letters that begin with the number of messages.
  const text = ({ messages }) => String(messages.length).padEnd(limit, "x");
  const graph = new StateGraph(
    Annotation.Root({
      messages: appending(),
      trigger_events: appending(),
      categorizations: appending(),
      responses: appending(),
      slack_participants: merging(),
      notified_assignees: merging(),
      primary_issue_medium: Annotation(),
      autoresponse: Annotation(),
      issue: Annotation(),
      relevant_rules: Annotation(),
      memory_docs: Annotation(),
      user_info: Annotation(),
      crm_info: Annotation(),
      email_thread_id: Annotation(),
      bot_id: Annotation(),
    }),
  )
    .addNode("one", (s) => ({ trigger_events: s.messages, primary_issue_medium: text(s) }))
    .addNode("two", ({ trigger_events }) => ({ autoresponse: trigger_events.at(-1), issue: trigger_events.at(-1) }))
    .addNode("three", ({ autoresponse }) => ({ relevant_rules: [autoresponse] }))
    .addNode("four", ({ trigger_events: all }) => ({ categorizations: all, responses: all, memory_docs: all }))
    .addNode("five", (s) => {
      const category = s.categorizations.at(-1);
      return {
        user_info: category,
        crm_info: category,
        slack_participants: category,
        notified_assignees: category,
        email_thread_id: text(s),
        bot_id: text(s),
      };
    })
    .addNode("six", ({ responses }) => ({ messages: responses }))
    .addEdge(START, "one")
    .addEdge("one", "two")
    .addEdge("two", "three")
    .addEdge("two", "four")
    .addEdge(["three", "four"], "five")
    .addEdge("five", "six")
    .addConditionalEdges("six", ({ messages }) => (messages.length > limit ? END : "one"), ["one", END]);
  const items = Array.from({ length: 5 }, () => ["hi?".repeat(10), true, 1, 6327816386138, null]).flat();
  const object = (n, value) => Object.fromEntries(Array.from({ length: n }, (_, i) => [String(i).repeat(10), value]));
  const message = object(outer, object(inner, items));
  let [messages, events, responses] = [1, 0, 0];
  while (messages <= limit) {
    events += messages;
    responses += events;
    messages += responses;
  }
  return {
    graph,
    once: async (app) => {
      const state = await invoke(app, { messages: [message] });
      want("events", state.trigger_events.length, events);
      want("keys", Object.keys(state).length, 15);
      want("messages", state.messages.length, messages);
    },
  };
}
