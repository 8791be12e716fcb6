// Markdown of models, which is hostile until it has gone through the sanitizer.

import { marked } from "./vendor/marked.js";
import purify from "./vendor/purify.js";
import { post } from "./api.js";
import { copyButton, fill, h } from "./dom.js";

const escape = (text) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

// HTML in Markdown is shown as the text that it is.
marked.use({ gfm: true, breaks: false, async: false, renderer: { html: ({ text }) => escape(text) } });

const allowed = {
  ALLOWED_TAGS: ["p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "del", "code", "pre", "blockquote", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "a", "img", "input"],
  ALLOWED_ATTR: ["href", "title", "alt", "src", "start", "type", "checked", "disabled", "align", "class"],
  ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false, RETURN_DOM_FRAGMENT: true,
};

purify.addHook("afterSanitizeAttributes", (element) => {
  const tag = element.localName;
  if (element.ownerSVGElement === undefined && !(tag === "code" && /^language-[\w+#.-]+$/.test(element.className))) element.removeAttribute("class");
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

const patience = 250; // ms that a block of code stays as it is before it is colored: one that grows is made anew
const longest = 32_000; // characters of code that are colored

// dress gives a block of code a button that copies it, and colors: a difference those of its lines, another language those of the server.
function dress(pre) {
  const code = pre.firstElementChild;
  const text = code?.textContent ?? pre.textContent;
  const box = h("div.code-box");
  pre.replaceWith(box);
  box.append(pre, copyButton(() => text.replace(/\n$/, "")));
  if (!code) return box;
  const language = code.className.slice("language-".length);
  if (language === "diff" || /^@@ .* @@/.test(text)) {
    pre.classList.add("diff");
    fill(code, text.split(/^/m).map((line) => h(/^\+(?!\+\+ )/.test(line) ? "ins" : /^-(?!-- )/.test(line) ? "del" : line.startsWith("@@") ? "span.gap" : "span", {}, line)));
  } else if (language && text.length < longest) {
    setTimeout(async () => {
      if (!box.isConnected) return;
      const { data } = await post("v1/highlight", { language, text }).catch(() => ({ data: [] }));
      if (data.length > 1) fill(code, data.map((token) => (token.kind ? h(`span.${kindOf(token.kind)}`, {}, token.text) : token.text)));
    }, patience);
  }
  return box;
}

// kindOf returns the class of a token: one of few, as a theme has few colors.
function kindOf(scopes) {
  const found = [["comment", "comment"], ["string", "string"], ["constant", "constant"], ["keyword.operator", "plain-token"], ["keyword", "keyword"], ["storage", "keyword"], ["entity.name.tag", "keyword"], ["entity", "name"], ["support", "name"], ["markup.deleted", "string"], ["markup.inserted", "constant"]].find(([scope]) => scopes.startsWith(scope) || scopes.includes(` ${scope}`));
  return `is-${found?.[1] ?? "plain-token"}`;
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
      for (const pre of fragment.querySelectorAll("pre")) dress(pre);
      const nodes = [...fragment.childNodes];
      this.blocks.push({ raw: token.raw, nodes });
      this.element.append(fragment);
    }
  }
}
