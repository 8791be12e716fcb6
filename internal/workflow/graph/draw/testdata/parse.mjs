// Reads a Mermaid flowchart from stdin and prints the texts of its vertices and edges
// as Mermaid's own parser sees them.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.env.MERMAID_MODULES + '/');
const { JSDOM } = require('jsdom');
const { window } = new JSDOM('<!DOCTYPE html><body></body>');
Object.assign(globalThis, { window, document: window.document });
const entry = require.resolve('mermaid').replace(/[^/]+$/, 'mermaid.core.mjs');
const { default: mermaid } = await import(pathToFileURL(entry));

const source = readFileSync(0, 'utf8');
mermaid.initialize({ startOnLoad: false });
await mermaid.parse(source);
const { db } = await mermaid.mermaidAPI.getDiagramFromText(source);
// Between parsing and drawing, #NUMBER; is kept in this form.
const decode = (s) => s.replace(/ﬂ°°(\d+)¶ß/g, (_, n) => String.fromCodePoint(Number(n)));
console.log(JSON.stringify({
  vertices: [...db.getVertices().values()].map((v) => decode(v.text)),
  edges: db.getEdges().map((e) => decode(e.text)),
}));
