// The drawing of a graph, which comes from the server as SVG. What happens shows as classes of its nodes and edges.

import { getText } from "./api.js";
import { fill, h } from "./dom.js";
import { drawing } from "./markdown.js";

export class Graph {
  // path is where the drawing is, or a promise of that, which is empty if there is none. onnode(id) is called when a node is chosen.
  constructor(path, onnode) {
    this.nodes = new Map();
    this.words = new Map(); // of a node in the drawing
    this.edges = [];
    this.branches = []; // edges from maps to the nodes that they run
    this.zoom = 1;
    this.picture = h("div.drawing", { role: "group", "aria-label": "Graph", tabindex: "0" });
    const bar = h("div.zoom", {}, h("button.quiet.square", { "aria-label": "Make the graph smaller", title: "Smaller", onclick: () => this.scale(this.zoom / 1.25) }, "−"),
      h("button.quiet.square", { "aria-label": "Make the graph larger", title: "Larger", onclick: () => this.scale(this.zoom * 1.25) }, "+"),
      h("button.quiet", { "aria-label": "Fit the graph", onclick: () => this.scale(0) }, "Fit"));
    this.element = h("div.canvas", {}, bar, this.picture);
    this.onnode = onnode;
    this.fitted = 0; // the width that the drawing was fitted into; 0 is none, as it is not in sight, NaN one that the user does not want
    new ResizeObserver(() => { if (Math.abs(this.picture.clientWidth - this.fitted) > 24) this.scale(0); }).observe(this.picture); // more than a scroll bar
    this.ready = this.load(path);
  }

  async load(promised) {
    let picture;
    try {
      const path = await promised;
      if (!path) return false;
      picture = drawing(await getText(path));
    } catch (error) {
      fill(this.picture, h("p.empty", {}, error.status === 404 || error.status === 409 || error.status === 400 ? "There is no graph to show." : error.message));
      return false;
    }
    if (!picture) return false;
    const box = (picture.getAttribute("viewBox") ?? "").split(/[\s,]+/).map(Number);
    this.width = box[2] || Number.parseFloat(picture.getAttribute("width")) || 400;
    this.height = box[3] || Number.parseFloat(picture.getAttribute("height")) || 400;
    if (!picture.hasAttribute("viewBox")) picture.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    picture.setAttribute("role", "group");
    picture.removeAttribute("aria-hidden");
    this.svg = picture;
    for (const node of picture.querySelectorAll("[data-node]")) {
      const id = node.getAttribute("data-node");
      this.nodes.set(id, node);
      const texts = [...node.querySelectorAll("text, tspan")].filter((t) => !t.children.length);
      for (const text of texts) text.after(" "); // its name is read with spaces
      const words = texts.map((t) => t.textContent).join(" ");
      if (!this.onnode) continue;
      node.setAttribute("tabindex", "0");
      node.setAttribute("role", "button");
      node.setAttribute("aria-label", words);
      this.words.set(id, words);
      const choose = (e) => { this.onnode(id); e.preventDefault(); e.stopPropagation(); };
      node.addEventListener("click", choose);
      node.addEventListener("keydown", (e) => (e.key === "Enter" || e.key === " ") && choose(e));
    }
    this.edges = [...picture.querySelectorAll("[data-from]")];
    this.branches = this.edges.filter((edge) => edge.classList.contains("branch"));
    fill(this.picture, picture);
    this.scale(0);
    this.redraw?.();
    return true;
  }

  // scale sets the size of the drawing; 0 fits it into the width, and never makes it larger than it is.
  scale(to) {
    const room = this.picture.clientWidth;
    if (!this.svg || (!to && !room)) return;
    this.fitted = to ? Number.NaN : room;
    const fit = Math.min(1, (room - 2) / this.width);
    this.zoom = Math.min(4, Math.max(0.15, to || fit));
    this.svg.setAttribute("width", this.width * this.zoom);
    this.svg.setAttribute("height", this.height * this.zoom);
  }

  // taken reports whether a run went along an edge: its events name edges, apart from those of next that a node has without a condition.
  taken(edge, states, edges) {
    const from = edge.getAttribute("data-from");
    if (edge.classList.contains("branch")) return Boolean(states.get(from)?.branch);
    if (edge.getAttribute("data-edges").split("\n").some((id) => edges.has(id))) return true;
    return (edge.classList.contains("next") || edge.classList.contains("parallel")) && edges.has(`${from}\u0000${edge.getAttribute("data-to")}`);
  }

  // show marks nodes by state, "running" for instance, the edges that were taken, and the chosen node.
  show(states, edges, chosen) {
    this.redraw = () => {
      const map = new Map(this.branches.map((edge) => [edge.getAttribute("data-to"), states.get(edge.getAttribute("data-from"))]));
      for (const [id, node] of this.nodes) {
        const of = map.get(id); // the map whose items it runs
        const state = states.get(id) ?? (of?.branch && { status: of.branch === "running" ? of.status : of.branch });
        for (const name of ["running", "done", "failed", "waiting", "stopped"]) node.classList.toggle(name, state?.status === name);
        node.classList.toggle("chosen", id === chosen);
        node.classList.toggle("idle", !state && states.size > 0);
        if (this.onnode) node.setAttribute("aria-label", `${this.words.get(id)}${state ? `, ${state.status}` : ""}`);
      }
      for (const edge of this.edges) edge.classList.toggle("taken", this.taken(edge, states, edges));
    };
    this.redraw();
  }
}
