// A list of rows of the same height, of which only those in sight are in the document.

import { h } from "./dom.js";

export class List {
  // draw(row, old) returns the element of a row; old is the one that showed it before, to be changed and returned, or
  // null. The owner of the list says what is chosen: onchoose(row, byKeyboard).
  constructor({ height, draw, onchoose, onfold, label }) {
    this.height = height;
    this.draw = draw;
    this.onchoose = onchoose;
    this.onfold = onfold;
    this.rows = [];
    this.shown = new Map(); // element by id of its row
    this.chosen = "";
    this.follows = false; // keeps the end in sight
    this.body = h("div.rows");
    this.element = h("div.list", { role: "tree", tabindex: "0", "aria-label": label, onkeydown: (e) => this.key(e) }, this.body);
    this.element.addEventListener("scroll", () => this.paint(), { passive: true });
    this.size = new ResizeObserver(() => this.paint());
    this.size.observe(this.element);
  }

  close() {
    this.size.disconnect();
  }

  // show takes new rows. The rows in sight stay where they are.
  show(rows) {
    this.rows = rows;
    this.body.style.height = `${rows.length * this.height}px`;
    if (this.follows) this.element.scrollTop = rows.length * this.height;
    this.paint();
  }

  paint() {
    const top = this.element.scrollTop;
    const from = Math.max(0, Math.floor(top / this.height) - 8);
    const to = Math.min(this.rows.length, Math.ceil((top + this.element.clientHeight) / this.height) + 8);
    const gone = new Map(this.shown);
    for (let i = from; i < to; i++) {
      const row = this.rows[i];
      const old = gone.get(row.id);
      gone.delete(row.id);
      const element = this.draw(row, old ?? null);
      element.style.transform = `translateY(${i * this.height}px)`;
      element.setAttribute("aria-selected", row.id === this.chosen);
      if (!old) {
        element.id = `row-${row.id}`;
        element.addEventListener("click", () => this.choose(this.rows.indexOf(row), false));
        this.shown.set(row.id, element);
        this.body.append(element);
      }
    }
    for (const [id, element] of gone) {
      element.remove();
      this.shown.delete(id);
    }
    if (this.shown.has(this.chosen)) this.element.setAttribute("aria-activedescendant", `row-${this.chosen}`);
    else this.element.removeAttribute("aria-activedescendant");
  }

  // mark makes a row the chosen one without a call of onchoose, and brings it into sight.
  mark(id) {
    this.chosen = id;
    const i = this.rows.findIndex((row) => row.id === id);
    if (i >= 0) this.reveal(i);
    this.paint();
  }

  reveal(i) {
    const top = i * this.height;
    const view = this.element;
    if (top < view.scrollTop) view.scrollTop = top;
    else if (top + this.height > view.scrollTop + view.clientHeight) view.scrollTop = top + this.height - view.clientHeight;
  }

  choose(i, byKeyboard) {
    const row = this.rows[Math.max(0, Math.min(this.rows.length - 1, i))];
    if (!row) return;
    this.mark(row.id);
    this.onchoose(row, byKeyboard);
  }

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target !== this.element) return;
    const at = this.rows.findIndex((row) => row.id === this.chosen);
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.height) - 1);
    const to = { ArrowDown: at + 1, j: at + 1, ArrowUp: at < 0 ? 0 : at - 1, k: at < 0 ? 0 : at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: this.rows.length - 1 }[e.key];
    const row = this.rows[at];
    if (to !== undefined) this.choose(to, true);
    else if (row && e.key === "ArrowLeft") this.onfold(row, true) || (row.parent && this.choose(this.rows.indexOf(row.parent), true));
    else if (row && e.key === "ArrowRight") this.onfold(row, false);
    else if (row && e.key === "Enter") this.onchoose(row, true, true);
    else return;
    e.preventDefault();
    e.stopPropagation();
  }
}
