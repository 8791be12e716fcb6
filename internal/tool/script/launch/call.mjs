import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";

// Calls a function of a file and hands on what it returns.
async function call(file, name, params, data) {
  process.argv.splice(1, process.argv.length - 1, file);
  const module = await import(pathToFileURL(file).href);
  deliver(await find(module, file, name)(...params.map((param) => data[param])));
}

// A default export, and one of a CommonJS module, is in a place of its own.
function find(module, file, name) {
  for (const place of [module, module.default, module.default?.default]) {
    if (typeof place?.[name] === "function") return place[name];
    if (typeof place === "function" && place.name === name) return place;
  }
  throw new Error(`${file} has no function ${name}`);
}

function deliver(result) {
  if (result === undefined || result === null) return;
  let text = String(result);
  if (typeof result === "object") text = JSON.stringify(result, null, 2);
  else if (typeof result === "function" || typeof result === "symbol") return;
  if (process.env.LLM_OUTPUT) writeFileSync(process.env.LLM_OUTPUT, text);
  else console.log(text);
}

// Ends the program when everything is printed, whatever the function left running.
function leave(status) {
  process.stdout.write("", () => process.stderr.write("", () => process.exit(status)));
}

function fail(error) {
  process.stderr.write(`${error?.stack ?? error}\n`);
  leave(1);
}

