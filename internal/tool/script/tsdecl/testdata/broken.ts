#!/usr/bin/env tsx
import fs, { readFile as read } from "node:fs/promises";
import type { Thing } from "./thing";

type Mode = "fast" | "slow" | { [key: string]: number[] };
const LIMIT: number = 0xff + 1_000 - 3.5e-2 ** 2;
const table = { a: [1, 2, 3], ...{ b: (4) }, "c": /[/"]+\/x/g, [`d${LIMIT}`]: null };

abstract class Box<T extends object = {}> implements Iterable<T> {
  private readonly items: T[] = [];
  static count = 0;
  get size(): number { return this.items.length; }
  constructor(public name?: string) {}
  *[Symbol.iterator]() { yield* this.items; }
}

function helper(path: string, { mode = "r", ...rest }: { mode?: string } = {}): asserts path is string {
  if (!path || path.length / 2 > 3) throw new Error(`no ${mode ? `path ${path}` : "mode"}`);
  else if (path!.match(/x/)) return;
}

/**
 * Say hello.
 * @param name - whom to greet
 * @param count - how often
 */
export default async function run(name: string, count?: number, tags: Array<string> = ["a", "b"], map = new Map<string, number>()): Promise<string> {
  let text = name as unknown as string;
  for (const [key, value] of Object.entries(table)) {
    text += `${key}: ${JSON.stringify({ value })}\n`;
  }
  while (count !== undefined && count-- > 0 || !name) {
    switch (name) {
      case "a": break;
      default: continue;
    }
  }
  try {
    const f = async <U,>(x: U): Promise<U> => x ?? (await read(name, "utf8")) as any;
    await f?.(tags.map((t, i) => t + i));
  } catch (e: any) {
    console.error(e?.message, typeof e === "object" ? +1 : -1);
  } finally {
    delete (table as any).a;
  }
  return text;
}
