// Markdown while it is written. What is finished of it, paragraph by paragraph, is made into HTML by the server, once; what is open
// stands as text. So an answer costs what it is long. Blocks of code are text alone and need nobody.
import { h, codeBlock } from './dom.js';
import { call } from './api.js';

const most = 32 << 10; // characters of a block that is sent; a longer one stays text
const together = 40 << 10; // characters of all blocks of a request
const fence = /^ {0,3}(`{3,}|~{3,})[ \t]*([^`]*)$/;
const item = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)/;
const indented = /^(?: {2,}|\t)/;

/** Writer writes a text of Markdown into an element as it comes. */
export class Writer {
  constructor(root) {
    this.root = root;
    this.tail = document.createTextNode(''); // the line that has not ended
    this.block = null;
    this.blank = 0; // empty lines since the block's last line
  }

  push(text) {
    for (let from = 0; from < text.length;) {
      const end = text.indexOf('\n', from);
      const piece = text.slice(from, end < 0 ? text.length : end);
      if (piece) {
        if (!this.tail.parentNode) this.open().append(this.tail);
        this.tail.appendData(piece);
      }
      if (end < 0) return;
      this.endLine();
      from = end + 1;
    }
  }

  /** end says that no more comes. */
  end() {
    if (this.tail.data) this.endLine();
    this.finish();
  }

  endLine() {
    const line = this.tail.data.endsWith('\r') ? this.tail.data.slice(0, -1) : this.tail.data;
    this.tail.remove();
    this.tail.data = '';
    this.line(line);
  }

  line(line) {
    const b = this.block;
    if (b?.mark) { // a block of code
      const end = line.trim();
      if (end.length >= b.mark.length && end === b.mark[0].repeat(end.length) && !/^ {4}/.test(line)) this.finish();
      else this.add(line);
      return;
    }
    if (b?.inner) { // code within a list
      if (line.trim().startsWith(b.inner)) b.inner = '';
      this.add(line);
      return;
    }
    if (!line.trim()) {
      if (b) this.blank++;
      return;
    }
    const goesOn = b && (!this.blank || (b.list && (item.test(line) || indented.test(line))));
    if (b && !goesOn) this.finish();
    const opens = fence.exec(line);
    if (opens && !(this.block?.list && indented.test(line))) {
      this.finish();
      this.openCode(opens[1], opens[2].trim().split(/\s/)[0]);
      return;
    }
    this.open();
    if (!this.block.text.length) this.block.list = item.test(line);
    const inner = this.block.list && /^\s+(`{3,}|~{3,})/.exec(line);
    if (inner) this.block.inner = inner[1];
    for (; this.blank; this.blank--) this.add('');
    this.add(line);
  }

  /** open is the element of the block that is being written. */
  open() {
    if (!this.block) {
      const node = h('p.open');
      this.root.append(node);
      this.block = { node, into: node, text: [], list: false, inner: '', mark: '' };
      this.blank = 0;
    }
    return this.block.into;
  }

  openCode(mark, language) {
    const { node, code } = codeIn(language);
    this.root.append(node);
    this.block = { node, into: code, text: [], mark };
    this.blank = 0;
  }

  add(line) {
    const b = this.block;
    b.into.append(document.createTextNode((b.text.length ? '\n' : '') + line));
    b.text.push(line);
  }

  finish() {
    const b = this.block;
    this.block = null;
    this.blank = 0;
    if (!b) return;
    b.into.normalize();
    if (b.mark) return;
    const text = b.text.join('\n');
    if (!text.trim()) b.node.remove();
    else if (text.length <= most) render(text, b.node);
  }
}

/** codeIn is a block of code in a language. */
function codeIn(language) {
  const name = language.slice(0, 32);
  return codeBlock(name || 'text', name ? 'Code, ' + name : 'Code');
}

// What waits to be rendered, and whether somebody is at it.
let waiting = [], busy = false;

function render(text, node) {
  waiting.push({ text, node });
  if (!busy) {
    busy = true;
    queueMicrotask(work);
  }
}

async function work() {
  while (waiting.length) {
    let size = 0, n = 0;
    while (n < waiting.length && n < 64 && (n === 0 || size + waiting[n].text.length <= together)) size += waiting[n++].text.length;
    const some = waiting.splice(0, n);
    try {
      const { html } = await (await call('/v1/markdown', { body: { texts: some.map((s) => s.text) } })).json();
      some.forEach((s, i) => s.node.replaceWith(...elements(html[i])));
    } catch { /* they stay text */
      for (const s of some) s.node.classList.remove('open');
    }
    await new Promise((resolve) => requestAnimationFrame(resolve));
  }
  busy = false;
}

// The one place in which text becomes markup: what the server has made of Markdown, read by a parser that runs nothing, of which
// only elements and attributes of these lists are made again.
const policy = globalThis.trustedTypes?.createPolicy('markdown', { createHTML: (s) => s }) ?? { createHTML: (s) => s };
const kept = new Set('P BR HR H1 H2 H3 H4 H5 H6 BLOCKQUOTE UL OL LI PRE CODE EM STRONG DEL TABLE THEAD TBODY TR TH TD A INPUT'.split(' '));
const address = /^(?:https?:\/\/|mailto:)/i;

function elements(html) {
  const read = new DOMParser().parseFromString(policy.createHTML(String(html)), 'text/html');
  const out = document.createDocumentFragment();
  copyInto(out, read.body);
  return out.children; // between blocks there is nothing but ends of lines
}

function copyInto(to, from) {
  for (const node of from.childNodes) {
    if (node.nodeType === Node.TEXT_NODE) {
      to.append(document.createTextNode(node.data));
    } else if (node.nodeType === Node.ELEMENT_NODE && kept.has(node.tagName)) {
      to.append(made(node));
    }
  }
}

function made(from) {
  const name = from.tagName.toLowerCase();
  if (name === 'pre') {
    const language = /^language-([\w+#.-]{1,32})$/.exec(from.firstElementChild?.className ?? '')?.[1] ?? '';
    const { node, code } = codeIn(language);
    code.textContent = from.textContent.replace(/\n$/, '');
    return node;
  }
  if (name === 'input') return h('input', { type: 'checkbox', disabled: true, checked: from.hasAttribute('checked'), 'aria-label': from.hasAttribute('checked') ? 'done' : 'to do' });
  const e = document.createElement(name);
  const attribute = (key, ok) => { if (ok.test(from.getAttribute(key) ?? '')) e.setAttribute(key, from.getAttribute(key)); };
  if (name === 'a') {
    attribute('href', address);
    e.setAttribute('target', '_blank');
    e.setAttribute('rel', 'noopener noreferrer nofollow');
  }
  if (name === 'ol') attribute('start', /^\d{1,9}$/);
  if (name === 'th' || name === 'td') attribute('align', /^(?:left|center|right)$/);
  copyInto(e, from);
  return name === 'table' ? h('div.scroll', { tabindex: 0, role: 'region', 'aria-label': 'Table' }, e) : e;
}
