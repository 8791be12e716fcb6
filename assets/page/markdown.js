// Markdown of models, which is hostile until it has gone through the sanitizer.

import { marked } from "./vendor/marked.js";
import purify from "./vendor/purify.js";
import { h } from "./dom.js";

const escape = (text) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

// HTML in Markdown is shown as the text that it is.
marked.use({ gfm: true, breaks: false, async: false, renderer: { html: ({ text }) => escape(text) } });

const allowed = {
  ALLOWED_TAGS: ["p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "del", "code", "pre", "blockquote", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "a", "img", "input"],
  ALLOWED_ATTR: ["href", "title", "alt", "src", "start", "type", "checked", "disabled", "align"],
  ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false, RETURN_DOM_FRAGMENT: true,
};

purify.addHook("afterSanitizeAttributes", (element) => {
  const tag = element.localName;
  if (tag === "a") {
    const href = element.getAttribute("href") ?? "";
    if (!/^https?:\/\//i.test(href)) element.removeAttribute("href");
    element.setAttribute("rel", "noopener noreferrer nofollow");
    element.setAttribute("target", "_blank");
  } else if (tag === "img" && !/^data:image\/(png|jpeg|gif|webp);base64,/i.test(element.getAttribute("src") ?? "")) {
    // A picture of another host would report that the page was read.
    element.replaceWith(h("span.picture", {}, `[picture: ${element.getAttribute("alt") || element.getAttribute("src") || ""}]`));
  } else if (tag === "input") {
    element.setAttribute("disabled", "");
    element.setAttribute("type", "checkbox");
    element.setAttribute("aria-label", element.hasAttribute("checked") ? "done" : "open");
  }
});

// drawing sanitizes an SVG of the server, in which names are those of an agent's author.
export function drawing(text) {
  const fragment = purify.sanitize(text, { USE_PROFILES: { svg: true }, FORBID_TAGS: ["style", "a", "image", "use", "foreignObject"], FORBID_ATTR: ["style", "href", "xlink:href"], RETURN_DOM_FRAGMENT: true });
  return fragment.querySelector("svg");
}

// Markdown is an element that shows a text that may still grow. Blocks that have not changed stay in the document as they are, so
// that a selection and a scrolled code block survive.
export class Markdown {
  constructor(text = "") {
    this.element = h("div.markdown");
    this.blocks = []; // {raw, nodes}
    this.text = null;
    this.set(text);
  }

  set(text) {
    if (text === this.text) return;
    this.text = text;
    let tokens;
    try {
      tokens = marked.lexer(text);
    } catch {
      tokens = [{ raw: text, type: "text", text }];
    }
    tokens = tokens.filter((t) => t.type !== "space");
    const links = JSON.stringify(tokens.links ?? {});
    let same = 0;
    while (links === this.links && same < this.blocks.length && same < tokens.length && this.blocks[same].raw === tokens[same].raw) same++;
    this.links = links;
    for (const block of this.blocks.splice(same)) for (const node of block.nodes) node.remove();
    for (const token of tokens.slice(same)) {
      const fragment = purify.sanitize(marked.parser([token]), allowed);
      for (const box of fragment.querySelectorAll("table, pre")) box.tabIndex = 0; // they scroll
      const nodes = [...fragment.childNodes];
      this.blocks.push({ raw: token.raw, nodes });
      this.element.append(fragment);
    }
  }
}
