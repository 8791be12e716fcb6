// Differences of states and texts.

import { fill, h } from "./dom.js";

const most = 2000; // lines compared; of more the rest is shown as replaced

// lines returns the shortest difference of two lists as {mark: " " | "-" | "+", text}, by the algorithm of Myers (1986).
export function lines(a, b) {
  const out = [];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) out.push({ mark: " ", text: a[start++] });
  let endA = a.length;
  let endB = b.length;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) { endA--; endB--; }
  const tail = a.slice(endA);
  out.push(...middle(a.slice(start, endA), b.slice(start, endB)));
  for (const text of tail) out.push({ mark: " ", text });
  return out;
}

function middle(a, b) {
  const replaced = () => [...a.map((text) => ({ mark: "-", text })), ...b.map((text) => ({ mark: "+", text }))];
  if (!a.length || !b.length || a.length + b.length > most) return replaced();
  const max = a.length + b.length;
  const v = new Map([[1, 0]]);
  const trail = [];
  for (let d = 0; d <= max; d++) {
    if (d > 400) return replaced();
    trail.push(new Map(v));
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && v.get(k - 1) < v.get(k + 1)) ? v.get(k + 1) : v.get(k - 1) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      v.set(k, x);
      if (x >= a.length && x - k >= b.length) return back(a, b, trail);
    }
  }
  return replaced();
}

function back(a, b, trail) {
  const out = [];
  let x = a.length;
  let y = b.length;
  for (let d = trail.length - 1; d >= 0; d--) {
    const v = trail[d];
    const k = x - y;
    const from = k === -d || (k !== d && v.get(k - 1) < v.get(k + 1)) ? k + 1 : k - 1;
    const px = d ? v.get(from) : 0;
    const py = d ? px - from : 0;
    while (x > px && y > py) { out.push({ mark: " ", text: a[--x] }); y--; }
    if (!d) break;
    if (x === px) out.push({ mark: "+", text: b[--y] });
    else out.push({ mark: "-", text: a[--x] });
  }
  return out.reverse();
}

const text = (value) => (value === undefined ? [] : (typeof value === "string" ? value : JSON.stringify(value, null, 2)).split("\n"));

// changes shows how the values of keys changed: a list of {key, before, after}, where undefined means absent.
export function changes(list, empty = "The state did not change.") {
  if (!list.length) return h("p.hint", {}, empty);
  return list.map(({ key, before, after }) => h("details.change", { open: list.length < 12 },
    h("summary", {}, h("code", {}, key), h("span.hint", {}, before === undefined ? "new" : after === undefined ? "removed" : "changed")),
    hunk(lines(text(before), text(after)))));
}

// hunk shows lines with three equal ones around each change.
function hunk(all) {
  const near = all.map((_, i) => all.slice(Math.max(0, i - 3), i + 4).some((l) => l.mark !== " "));
  const pre = h("pre.diff", { tabindex: "0", role: "region", "aria-label": "difference" });
  fill(pre, all.map((line, i) => {
    if (!near[i]) return near[i - 1] || i === 0 ? h("span.gap", {}, "⋯\n") : null;
    return h(line.mark === "+" ? "ins" : line.mark === "-" ? "del" : "span", {}, `${line.mark} ${line.text}\n`);
  }));
  return pre;
}
