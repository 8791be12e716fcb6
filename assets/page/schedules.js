// The week of the schedules: when runs start, the outcome of the last due times, and buttons that pause, continue and start.

import { get, poll, post } from "./api.js";
import { failure, fill, h } from "./dom.js";

const dayOf = (time) => new Date(time).toLocaleDateString(undefined, { weekday: "long", day: "numeric", month: "long" });
const clock = (time) => new Date(time).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export function show(main, context) {
  const problem = h("div", { role: "status" });
  const list = h("div");
  const week = h("div");
  fill(main, h("section.page", {}, h("h1", {}, "Schedules"), problem, list, h("h2", {}, "This week"), week));

  const act = (name, verb) => async (e) => {
    e.target.disabled = true;
    fill(problem);
    try {
      const done = await post(`v1/schedules/${encodeURIComponent(name)}/${verb}`);
      if (done.run_id) location.hash = `#/runs/${done.run_id}`;
      else await load();
    } catch (error) {
      fill(problem, failure(error));
    }
    e.target.disabled = false;
  };

  function row(s) {
    const last = s.last?.run_id ? h("a", { href: `#/runs/${s.last.run_id}` }, s.last.run_id) : s.last?.reason ?? "";
    const paused = s.state === "paused";
    return h("tr", { "data-state": s.state }, h("th", { scope: "row" }, s.name), h("td", {}, s.agent), h("td", {}, h("code", {}, s.when)), h("td", {}, s.state),
      h("td", {}, s.next ? `${dayOf(s.next)}, ${clock(s.next)}` : ""), h("td", {}, last),
      h("td", {}, (paused || s.state === "on") && h("button.quiet", { onclick: act(s.name, paused ? "continue" : "pause") }, paused ? "Continue" : "Pause"),
        (paused || s.state === "on") && h("button.quiet", { onclick: act(s.name, "run") }, "Run now")));
  }

  async function load(signal) {
    const { schedules, plan } = await get("v1/schedule-plan", signal);
    context.online();
    fill(list, schedules.length
      ? h("table", {}, h("thead", {}, h("tr", {}, ["Name", "Agent", "When", "State", "Next", "Last", "Actions"].map((text) => h("th", { scope: "col" }, text)))), h("tbody", {}, schedules.map(row)))
      : h("p.empty", {}, "There are no schedules. ", h("code", {}, "loki --schedule NAME -a AGENT --cron '0 7 * * MON-FRI' TEXT"), " makes one."));
    const days = new Map();
    for (const time of plan) {
      const day = dayOf(time.due);
      if (!days.has(day)) days.set(day, new Map());
      const names = days.get(day);
      if (!names.has(time.name)) names.set(time.name, []);
      names.get(time.name).push(time);
    }
    fill(week, [...days].map(([day, names]) => h("section", {}, h("h3", {}, day), h("ul", {}, [...names].map(([name, times]) =>
      h("li", {}, h("strong", {}, name), " ", times.slice(0, 12).map((t) => `${clock(t.due)}${t.skipped ? ` (${t.skipped})` : ""}`).join(", "), times.length > 12 && ` and ${times.length - 12} more`))))));
  }

  const polling = poll(load, { fast: 5000, slow: 30000, onerror: (error) => { if (context.problem(error)) fill(list, failure(error)); } });
  return { title: "Schedules", update() {}, close() { polling.stop(); } };
}
