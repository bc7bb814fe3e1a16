// What is stored of prompts, as a picture: bars from left to right, as long as their tokens are many (by the square root); a
// beginning that several conversations share is as high as all that goes on from it.
import { h, drawing, bytes, count, seconds } from './dom.js';

const row = 24, gap = 2, least = 5; // pixels: a row, between two bars, the narrowest bar

let made = 0;

export class Tree {
  static most = 160; // nodes that are asked for

  constructor() {
    this.picture = drawing('svg', { class: 'tree', role: 'tree', 'aria-label': 'Stored prompts' });
    this.hatch = 'hatch-' + ++made;
    this.about = h('p.tree-about.small', {}, '');
    this.list = h('details.numbers', { toggle: () => this.fillList() }, h('summary', {}, 'As a list'), this.lists = h('div'));
    this.sum = h('p.muted.small');
    const key = (look, text) => h('li', {}, h('i.tree-key.' + look), text);
    this.node = h('section.part', { 'aria-label': 'Stored prompts', hidden: true }, h('div', {}, h('h2', {}, 'Stored prompts'), this.sum),
      h('div.card.tree-card', {}, h('ul.series', {}, key('shared', 'Shared by several'), key('single', 'Of one'), key('busy', 'In use now'), key('disk', 'On disk as well'), key('alone', 'On disk only: it is read back, not computed, when a prompt begins with it')), h('div.tree-scroll', {}, this.picture), this.about, this.list));
    this.picture.addEventListener('keydown', (e) => this.key(e));
    for (const kind of ['pointerover', 'focusin', 'click']) {
      this.picture.addEventListener(kind, (e) => {
        const at = this.nodes?.get(e.target.closest('.node')?.getAttribute('data-at'));
        if (at) this.tell(at);
        if (at && kind === 'click') this.go(at);
      });
    }
    this.resized = new ResizeObserver(() => requestAnimationFrame(() => { if (this.nodes && this.width !== this.room()) this.draw(); }));
    this.resized.observe(this.picture.parentNode);
  }

  /** show takes the tree as the server tells it. */
  show({ nodes, left_out: left }) {
    this.nodes = new Map();
    for (const n of nodes) this.nodes.set(String(n.id), { ...n, at: String(n.id), children: [] });
    this.roots = [];
    for (const n of this.nodes.values()) {
      n.up = n.parent === null ? null : this.nodes.get(String(n.parent));
      (n.up ? n.up.children : this.roots).push(n);
    }
    const place = (list, depth) => {
      list.sort((a, b) => b.ends - a.ends || b.tokens - a.tokens);
      for (const n of list) {
        n.depth = depth;
        place(n.children, depth + 1);
      }
    };
    place(this.roots, 1);
    this.node.hidden = false;
    const shown = this.order();
    const sum = (key, among = shown) => among.reduce((all, n) => all + (Number(n[key]) || 0), 0);
    const alone = shown.filter((n) => !n.in_memory), kept = sum('tokens') - sum('tokens', alone);
    const places = [kept ? count(kept) + ' tokens in ' + bytes(sum('bytes')) + ' of memory' : '', alone.length ? count(sum('tokens', alone)) + ' tokens on disk only' : ''].filter(Boolean).join(', ');
    this.sum.textContent = shown.length ? places + '. Prompts that begin alike share their beginning, which is computed and kept once; time goes to what is new.' +
      (left ? ' ' + count(left) + ' small parts are not drawn.' : '') : 'Nothing is stored yet.';
    this.node.lastChild.hidden = !shown.length;
    if (!this.nodes.has(this.current)) this.current = shown[0]?.at;
    this.draw();
    if (this.list.open) this.fillList();
    const at = this.nodes.get(this.current);
    if (at) this.tell(at);
  }

  /** order is all nodes, parents first, as they stand in the picture. */
  order() {
    const out = [];
    const walk = (list) => { for (const n of list) { out.push(n); walk(n.children); } };
    walk(this.roots);
    return out;
  }

  /** room is how wide the picture may be, in pixels. */
  room() {
    return Math.floor(this.picture.getBoundingClientRect().width);
  }

  draw() {
    const width = this.width = this.room();
    if (!width) return;
    // How long the longest way is, and how many rows there are.
    let longest = 0, rows = 0;
    const measure = (list, before, steps) => {
      for (const n of list) {
        n.from = before;
        n.steps = steps;
        n.long = Math.sqrt(n.tokens);
        n.y = rows;
        longest = Math.max(longest, before + n.long);
        if (n.children.length) measure(n.children, before + n.long, steps + 1);
        else rows++;
        n.rows = rows - n.y;
      }
    };
    measure(this.roots, 0, 0);
    const scale = (width - 2) / Math.max(1, longest);
    const shapes = [drawing('defs', {}, drawing('pattern', { id: this.hatch, width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' }, drawing('rect', { class: 'hatch', width: 2, height: 6 })))];
    const labels = []; // beside the bars, not in them: a bar's name is its facts
    const focused = this.picture.contains(document.activeElement);
    for (const n of this.order()) {
      const x = 1 + n.from * scale, w = Math.max(least, n.long * scale - gap), y = n.y * row, height = n.rows * row - gap;
      const lines = wrap(n.label || count(n.tokens), w - 10, Math.min(4, n.rows));
      labels.push(drawing('text', { x: x + 6, y: y + height / 2 - lines.length * 7 + 11 }, ...lines.map((line, i) => drawing('tspan', { x: x + 6, dy: i && 14 }, line))));
      shapes.push(n.g = drawing('g', { class: 'node ' + looks(n), role: 'treeitem', 'aria-level': n.depth, 'aria-label': words(n), 'data-at': n.at, tabindex: n.at === this.current ? 0 : -1 },
        drawing('rect', { class: 'body', x, y, width: w, height, rx: 3 }), ...(n.on_disk ? [drawing('rect', { class: 'disk', x, y, width: w, height, rx: 3, fill: 'url(#' + this.hatch + ')' })] : [])));
    }
    this.picture.setAttribute('viewBox', '0 0 ' + width + ' ' + Math.max(row, rows * row));
    this.picture.setAttribute('width', width);
    this.picture.setAttribute('height', Math.max(row, rows * row));
    this.picture.replaceChildren(...shapes, drawing('g', { class: 'labels', 'aria-hidden': 'true' }, ...labels));
    if (focused) this.nodes.get(this.current)?.g.focus();
  }

  /** key moves between bars: to the right is what goes on from this, to the left what it goes on from, up and down are neighbours. */
  key(e) {
    const at = this.nodes.get(this.current);
    const beside = at?.up ? at.up.children : this.roots, i = beside?.indexOf(at);
    const order = this.order();
    const to = { ArrowRight: at?.children[0], ArrowLeft: at?.up, ArrowUp: beside?.[i - 1], ArrowDown: beside?.[i + 1], Home: order[0], End: order.at(-1) }[e.key];
    if (e.key.startsWith('Arrow') || e.key === 'Home' || e.key === 'End') e.preventDefault();
    if (to) this.go(to);
  }

  go(n) {
    this.nodes.get(this.current)?.g.setAttribute('tabindex', -1);
    this.current = n.at;
    n.g.setAttribute('tabindex', 0);
    n.g.focus();
  }

  tell(n) {
    this.about.replaceChildren(...(n.label ? [h('strong', {}, '“' + n.label + '”'), ' '] : []), facts(n));
  }

  fillList() {
    if (!this.list.open || !this.nodes) return;
    const make = (nodes) => h('ul', {}, ...nodes.map((n) => h('li', {}, words(n), n.children.length ? make(n.children) : null)));
    this.lists.replaceChildren(make(this.roots));
  }
}

const looks = (n) => (n.children.length > 1 || n.ends > 1 || n.sessions > 1 ? 'shared' : 'single') + (n.in_use ? ' busy' : '') + (n.in_memory ? '' : ' alone');

/** wrap breaks a text into as many lines as there is room for, and cuts what is left. */
function wrap(text, width, most) {
  const wide = Math.floor(width / 6.6), lines = [];
  if (wide < 3) return lines;
  for (const word of text.split(/\s+/)) {
    if (lines.length && (lines.at(-1) + ' ' + word).length <= wide) lines[lines.length - 1] += ' ' + word;
    else if (lines.length === most) return [...lines.slice(0, -1), lines.at(-1).slice(0, wide - 1) + '…'];
    else lines.push(word.length > wide ? word.slice(0, wide - 1) + '…' : word);
  }
  return lines;
}

function facts(n) {
  const disk = !n.in_memory ? bytes(n.disk_bytes) + ' on disk only' : n.on_disk >= n.tokens ? 'on disk as well' : n.on_disk ? count(n.on_disk) + ' of them on disk as well' : '';
  return [n.model ?? '', count(n.tokens) + ' tokens', n.folded_nodes ? count(n.folded_tokens) + ' more in small parts that go on from it' : '', n.in_memory ? bytes(n.bytes) : '', n.ends > 1 ? count(n.ends) + ' stored conversations have it' : '', n.sessions > 1 ? count(n.sessions) + ' sessions' : '', disk,
    n.in_use ? 'in use by ' + count(n.in_use) + (n.in_use === 1 ? ' request' : ' requests') : 'last used ' + seconds(n.used_s) + ' ago'].filter(Boolean).join(', ') + '.';
}

const words = (n) => (n.label ? '“' + n.label + '”: ' : '') + facts(n);
