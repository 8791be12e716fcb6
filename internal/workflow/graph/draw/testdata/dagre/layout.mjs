// Reads diagrams, [{boxes: [{w, h}], arrows: [{from, to, w, h}]}], and prints what dagre makes of
// them: for each the points of each arrow.
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";

const require = createRequire(process.env.DAGRE_MODULES + "/");
const dagre = require("@dagrejs/dagre");

const diagrams = JSON.parse(await text(process.stdin));
const laidOut = diagrams.map(({ boxes, arrows }) => {
  const g = new dagre.graphlib.Graph({ multigraph: true });
  g.setGraph({});
  boxes.forEach(({ w, h }, i) => g.setNode(String(i), { width: w, height: h }));
  arrows.forEach(({ from, to, w, h }, i) => g.setEdge(String(from), String(to), { width: w, height: h, labelpos: "c" }, String(i)));
  dagre.layout(g);
  return arrows.map(({ from, to }, i) => g.edge(String(from), String(to), String(i)).points);
});
console.log(JSON.stringify(laidOut));
