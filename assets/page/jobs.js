// The commands that models run as jobs while a run is at work: what they print, and a button that ends one.

import { get, remove } from "./api.js";
import { failure, fill, h, safe } from "./dom.js";

const shown = 8192; // bytes of the end of an output

export class Jobs {
  element = h("section.jobs", { "aria-label": "Jobs" });
  rows = new Map();

  constructor(at) { this.at = `${at}/jobs`; }

  // load brings the list up to date.
  async load(signal) {
    const { data } = await get(this.at, signal);
    for (const job of data) {
      if (!this.rows.has(job.id)) this.add(job);
      const row = this.rows.get(job.id);
      row.job = job;
      row.state.textContent = job.exit == null ? job.status : `${job.status} ${job.exit}`;
      row.element.dataset.status = safe(job.status);
      row.end.hidden = job.status !== "running";
      if (row.element.open) await this.read(row, signal);
    }
    for (const [id, row] of this.rows) if (!data.some((job) => job.id === id)) { row.element.remove(); this.rows.delete(id); }
  }

  add(job) {
    const row = { job, state: h("span.hint"), output: h("pre.output", { tabindex: "0", "aria-label": `Output of ${job.id}` }), problem: h("div") };
    row.end = h("button.quiet.danger", { onclick: () => this.end(row) }, "End");
    const ports = (job.ports ?? []).map((port) => h("span.hint", {}, `127.0.0.1:${port}`));
    row.element = h("details", { ontoggle: () => row.element.open && this.read(row) }, h("summary", {}, h("code", {}, job.id), " ", row.state, " ", h("code", {}, job.command), " ", ports), row.output, row.problem, row.end);
    this.rows.set(job.id, row);
    this.element.append(row.element);
  }

  async read(row, signal) {
    try {
      const part = await get(`${this.at}/${encodeURIComponent(row.job.id)}/output?since=${Math.max(0, row.job.bytes - shown)}`, signal);
      row.output.textContent = part.output || "It has printed nothing.";
    } catch (error) {
      if (!signal?.aborted) fill(row.problem, failure(error));
    }
  }

  async end(row) {
    row.end.disabled = true;
    fill(row.problem);
    try {
      await remove(`${this.at}/${encodeURIComponent(row.job.id)}`);
      row.end.hidden = true;
      row.state.textContent = "killed";
    } catch (error) {
      row.end.disabled = false;
      fill(row.problem, failure(error));
    }
  }
}
