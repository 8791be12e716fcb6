// The week of the schedules: when runs start, the outcome of the last due times, and buttons that pause, continue and start.

import { get, poll, post, remove } from "./api.js";
import { dialog, failure, fill, h } from "./dom.js";

const most = 6; // times that are shown of a schedule on a day

const dayOf = (time) => new Date(time).toLocaleDateString(undefined, { weekday: "long", day: "numeric", month: "long" });
const clock = (time) => new Date(time).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export function show(main, context) {
  const problem = h("div", { role: "status" });
  const list = h("div.cards", { role: "group", "aria-label": "Schedules" });
  const week = h("div.cards", { role: "group", "aria-label": "This week" });
  fill(main, h("div.view", {}, h("div.bar", {}, h("h1", {}, "Schedules")), problem, list, h("h2", {}, "This week"), week));

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

  async function forget(name) {
    if (await dialog("Delete this schedule?", h("p", {}, name), "Delete", async () => { await remove(`v1/schedules/${encodeURIComponent(name)}`); return true; })) load();
  }

  function card(s) {
    const last = s.last?.run_id ? h("a", { href: `#/runs/${s.last.run_id}` }, s.last.run_id) : s.last?.reason;
    const paused = s.state === "paused";
    const works = paused || s.state === "on";
    return h("article.card", { "aria-label": s.name, "data-state": s.state },
      h("header", {}, h("strong", {}, s.name), h("span.hint", {}, s.agent), h("code", {}, s.when), h("span", {}, s.state)),
      s.error && h("p.warning", {}, s.error),
      (s.next || last) && h("p.hint", {}, s.next && `Next: ${dayOf(s.next)}, ${clock(s.next)}`, s.next && last && " · ", last && ["Last: ", last]),
      (works || s.stored) && h("div.row", {}, works && h("button", { onclick: act(s.name, paused ? "continue" : "pause") }, paused ? "Continue" : "Pause"),
        works && h("button", { onclick: act(s.name, "run") }, "Run now"), s.stored && h("button.quiet", { onclick: () => forget(s.name) }, "Delete")));
  }

  // line shows the times of a schedule on a day: the first ones, how many more there are, and once why none of them starts a run.
  function line(name, times) {
    const why = times.every((t) => t.skipped === times[0].skipped) ? times[0].skipped : "";
    const shown = times.slice(0, most).map((t) => `${clock(t.due)}${t.skipped && !why ? ` (${t.skipped})` : ""}`).join(", ");
    return h("li", {}, h("strong", {}, name), ` ${shown}${times.length > most ? ` and ${times.length - most} more` : ""}${why ? ` (${why})` : ""}`);
  }

  async function load(signal) {
    const { schedules, plan } = await get("v1/schedule-plan", signal);
    context.online();
    fill(list, schedules.length
      ? schedules.map(card)
      : h("p.empty", {}, "There are no schedules. ", h("code", {}, "loki --schedule NAME -a AGENT --cron '0 7 * * MON-FRI' TEXT"), " makes one."));
    const days = new Map();
    for (const time of plan) {
      const day = dayOf(time.due);
      if (!days.has(day)) days.set(day, new Map());
      const names = days.get(day);
      if (!names.has(time.name)) names.set(time.name, []);
      names.get(time.name).push(time);
    }
    fill(week, [...days].map(([day, names]) => h("section.card", {}, h("h3", {}, day), h("ul", {}, [...names].map(([name, times]) => line(name, times))))));
  }

  const polling = poll(load, { fast: 5000, slow: 30000, onerror: (error) => { if (context.problem(error)) fill(list, failure(error)); } });
  return { title: "Schedules", update() {}, close() { polling.stop(); } };
}
