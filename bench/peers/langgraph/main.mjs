// LangGraph.js's side of the comparison of graph engines. What it reads and prints is
// told in the command of Loki's side.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { MemorySaver } from "@langchain/langgraph";
import { cases } from "./cases.mjs";

// The SQLite checkpointer has a native part that may not be there.
const SqliteSaver = await import("@langchain/langgraph-checkpoint-sqlite")
  .then((m) => {
    m.SqliteSaver.fromConnString(":memory:").db.close();
    return m.SqliteSaver;
  })
  .catch(() => null);

// newSaver returns a checkpointer of its own and a function that ends it.
async function newSaver() {
  if (!SqliteSaver) return { saver: new MemorySaver(), close: () => {} };
  const dir = mkdtempSync(join(tmpdir(), "loki-bench-"));
  const saver = SqliteSaver.fromConnString(join(dir, "checkpoints.db"));
  await saver.getTuple({ configurable: { thread_id: "none" } }); // makes the tables
  return {
    saver,
    close: () => {
      saver.db.close();
      rmSync(dir, { recursive: true });
    },
  };
}

// measure times the runs of a compiled graph. Opening the checkpointer is not counted.
async function measure({ app, once }, durable, runs) {
  const { saver, close } = durable ? await newSaver() : { close: () => {} };
  app.checkpointer = saver;
  const begin = process.hrtime.bigint();
  for (let i = 0; i < runs; i++) await once(app);
  const took = process.hrtime.bigint() - begin;
  if (saver) await stored(saver);
  close();
  return took;
}

// stored fails if the saver has no checkpoint.
async function stored(saver) {
  for await (const _ of saver.list({}, { limit: 1 })) return;
  throw new Error("no checkpoint was stored");
}

const { version } = JSON.parse(readFileSync(new URL("node_modules/@langchain/langgraph/package.json", import.meta.url)));
console.log(JSON.stringify({
  name: "LangGraph.js",
  version: `v${version}`,
  runtime: `node ${process.version}`,
  durable: SqliteSaver ? "its SqliteSaver on a file, durability \"sync\"" : "its MemorySaver, in memory: its SQLite checkpointer could not be installed",
}));
const made = {};
for await (const line of createInterface({ input: process.stdin })) {
  const [, name, durable, runs] = /^(\w+)(\/durable)? (\d+)$/.exec(line) ?? [];
  if (!name) throw new Error(`request ${JSON.stringify(line)}`);
  if (!cases[name]) {
    console.log("-");
    continue;
  }
  if (!made[name]) {
    const { graph, once } = cases[name]();
    made[name] = { app: graph.compile(), once };
  }
  console.log(String(await measure(made[name], durable, Number(runs))));
}
