// Charts of the last minutes, and bars of parts. They are made of SVG elements, with words for those who do not see them, and
// their colours and dashes are in the style sheet, by the class of each series.
import { h, bytes, drawing } from './dom.js';

const height = 180, left = 48, right = 10, top = 24, bottom = 24;

/** nice is the number at or above v at which an axis ends; of whole numbers one whose half is whole. */
function nice(v, whole) {
  if (!(v > 0)) return whole ? 2 : 1;
  const unit = 10 ** Math.floor(Math.log10(v));
  return (whole ? [2, 4, 6, 8, 10] : [1, 2, 4, 5, 10]).map((m) => m * unit).find((n) => n >= v * .999);
}

/** short is a number where there is little room. */
export const short = (v) => (v >= 999_500 ? (v / 1e6).toFixed(1) + 'M' : v >= 9_995 ? Math.round(v / 1000) + 'k' : v >= 100 || Number.isInteger(v) ? Math.round(v).toLocaleString('en') : v.toFixed(v < 10 ? 1 : 0));

let made = 0;

/**
 * Chart shows columns of numbers over time. Of it are told: a title, the unit of its axis, the series by name and class, whether
 * it has lines, areas that are stacked, or bars that are stacked; how a number is written; whether the axis has whole numbers.
 */
export class Chart {
  constructor({ title, unit, series, kind = 'lines', format = short, whole = false }) {
    Object.assign(this, { title, unit, series, kind, format, whole, counts: kind === 'bars' });
    const id = 'chart-' + ++made;
    this.name = drawing('title', { id: id + '-title' }, title);
    this.words = drawing('desc', { id: id + '-words' });
    this.svg = drawing('svg', { class: 'chart-picture ' + kind, role: 'img', 'aria-labelledby': id + '-title', 'aria-describedby': id + '-words', height });
    this.values = series.map(() => h('span.value'));
    this.when = h('span.muted.small');
    this.body = h('tbody');
    this.table = h('details.numbers', { toggle: () => this.fillTable() }, h('summary', {}, 'Numbers'), h('div.scroll', { tabindex: 0, role: 'region', 'aria-label': title + ', numbers' }, h('table', {},
      h('thead', {}, h('tr', {}, ...['', kind === 'bars' ? 'In all' : 'Now', 'Mean', 'Highest'].map((t) => (t ? h('th', { scope: 'col' }, t) : h('td'))))), this.body)));
    this.node = h('section.card.chart', { 'aria-label': title }, h('div.row', {}, h('h3.grow', {}, title), this.when), this.svg,
      h('ul.series', {}, ...series.map((s, i) => h('li', {}, swatch(kind, s.look), h('span', {}, s.name), this.values[i]))), this.table);
    this.svg.addEventListener('pointermove', (e) => this.point(e.offsetX));
    this.svg.addEventListener('pointerleave', () => this.point(null));
  }

  /** draw shows what history.steps gives. */
  draw(data, span) {
    this.data = data;
    this.span = span;
    const width = Math.max(200, Math.round(this.svg.clientWidth || 400));
    this.svg.setAttribute('viewBox', '0 0 ' + width + ' ' + height);
    const { at, columns, step, end } = data;
    const sums = at.map((_, i) => columns.reduce((sum, c) => sum + (c[i] || 0), 0));
    const highest = this.kind === 'lines' ? Math.max(0, ...columns.flat().filter((v) => v > 0)) : Math.max(0, ...sums);
    const to = nice(highest, this.whole);
    const from = end - span;
    this.x = (t) => left + (width - left - right) * Math.max(0, Math.min(1, (t - from) / span));
    const y = (v) => top + (height - top - bottom) * (1 - v / to);
    const parts = [];
    for (const v of this.whole && to === 2 ? [0, 1, 2] : [0, to / 2, to]) {
      parts.push(drawing('line', { class: 'grid', x1: left, x2: width - right, y1: y(v), y2: y(v) }), drawing('text', { class: 'tick y', x: left - 6, y: y(v) + 4 }, this.format(v)));
    }
    const minutes = span / 60, every = { 5: 1, 15: 5, 60: 15 }[minutes];
    for (let m = minutes; m >= 0; m -= every) {
      const x = this.x(end - m * 60);
      if (m !== minutes && x < left + 62) continue; // there stands the first
      parts.push(drawing('text', { class: 'tick x' + (m === minutes ? ' begin' : m === 0 ? ' end' : ''), x, y: height - 6 }, m === 0 ? 'now' : m === minutes ? m + ' min ago' : '−' + m));
    }
    const middle = (i) => Math.min(at[i] + step / 2, end);
    if (this.kind === 'lines') {
      columns.forEach((c, s) => parts.push(drawing('path', { class: 'line ' + this.series[s].look, d: path(c.map((v, i) => [this.x(middle(i)), y(v), v])) })));
    } else {
      const below = at.map(() => 0);
      columns.forEach((c, s) => {
        const lower = [...below];
        c.forEach((v, i) => { below[i] += v || 0; });
        const d = this.kind === 'bars' ? c.map((v, i) => (v > 0 ? box(this.x(at[i]) + .5, y(below[i]), this.x(at[i] + step) - .5, y(lower[i])) : '')).join('') : area(c.map((v, i) => [this.x(middle(i)), y(below[i]), y(lower[i]), v]));
        parts.push(drawing('path', { class: 'area ' + this.series[s].look, d }));
      });
    }
    this.mark = drawing('line', { class: 'mark', y1: top, y2: height - bottom, visibility: 'hidden' });
    parts.push(drawing('text', { class: 'tick unit', x: 0, y: 11 }, this.unit), this.mark);
    this.svg.replaceChildren(this.name, this.words, ...parts);
    const said = this.figures().map((f) => f.name + ' ' + this.format(f.now) + (this.counts ? ' in all, ' : ' now, ') + this.format(f.mean) + ' in the mean, ' + this.format(f.highest) + ' at most');
    this.words.textContent = this.unit + ' over the last ' + minutes + ' minutes: ' + said.join('; ') + '.';
    if (this.table.open) this.fillTable();
    this.point(this.at);
  }

  figures() {
    return this.series.map((s, i) => {
      const known = this.data.columns[i].filter((v) => !isNaN(v));
      return { name: s.name, now: this.counts ? known.reduce((a, b) => a + b, 0) : known.at(-1) ?? 0, mean: known.length ? known.reduce((a, b) => a + b, 0) / known.length : 0, highest: Math.max(0, ...known) };
    });
  }

  fillTable() {
    if (this.data) this.body.replaceChildren(...this.figures().map((f) => h('tr', {}, h('th', { scope: 'row' }, f.name), ...[f.now, f.mean, f.highest].map((v) => h('td', {}, this.format(v))))));
  }

  /** point shows the numbers of a place; null: those of now, or of all of the time where things are counted. */
  point(at = null) {
    this.at = at;
    if (!this.data) return;
    const { columns, at: times, step, end } = this.data;
    let i = times.length - 1;
    if (at !== null) while (i > 0 && this.x(times[i]) > at) i--;
    const figures = at === null ? this.figures().map((f) => f.now) : columns.map((c) => c[i]);
    figures.forEach((v, s) => { this.values[s].textContent = isNaN(v) ? '–' : this.format(v); });
    this.when.textContent = at === null ? '' : at >= this.x(times.at(-1)) ? 'now' : clock(times[i] + step / 2);
    this.mark.setAttribute('visibility', at === null ? 'hidden' : 'visible');
    const x = this.x(Math.min(times[i] + step / 2, end));
    this.mark.setAttribute('x1', x);
    this.mark.setAttribute('x2', x);
  }
}

/** clock is the time of day of a second. */
export const clock = (s) => new Date(s * 1000).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false });

const fixed = (v) => v.toFixed(1);

/** path goes through points, and has a gap where nothing is known. */
function path(points) {
  let d = '', on = false;
  for (const [x, y, v] of points) {
    if (!isNaN(v)) d += (on ? 'L' : 'M') + fixed(x) + ' ' + fixed(y);
    on = !isNaN(v);
  }
  return d;
}

/** area is between an upper and a lower edge, over the points that are known. */
function area(points) {
  const known = points.filter(([, , , v]) => !isNaN(v));
  if (!known.length) return '';
  return 'M' + known.map(([x, y]) => fixed(x) + ' ' + fixed(y)).join('L') + 'L' + known.reverse().map(([x, , y]) => fixed(x) + ' ' + fixed(y)).join('L') + 'Z';
}

const box = (x1, y1, x2, y2) => 'M' + fixed(x1) + ' ' + fixed(y1) + 'H' + fixed(Math.max(x2, x1 + 1)) + 'V' + fixed(y2) + 'H' + fixed(x1) + 'Z';

/** swatch shows how a series looks. */
export const swatch = (kind, look) => drawing('svg', { class: 'swatch ' + kind, viewBox: '0 0 20 10', 'aria-hidden': 'true' },
  kind === 'lines' ? drawing('path', { class: 'line ' + look, d: 'M1 5H19' }) : drawing('rect', { class: 'area ' + look, x: 1, y: 0, width: 18, height: 10, rx: 2 }));

/** shares draws parts of a whole beside each other, [class, size] each; without the whole they are all of it. What is there at all is to be seen, and what is more than the whole is cut. */
export function shares(parts, { whole, label } = {}) {
  const width = 1000, least = 12; // of which the line between parts takes some
  whole ??= parts.reduce((sum, [, n]) => sum + Math.max(0, n), 0);
  let x = 0, left = parts.filter(([, n]) => n > 0).length;
  return drawing('svg', { class: 'shares', viewBox: '0 0 ' + width + ' 10', preserveAspectRatio: 'none', ...(label ? { role: 'img', 'aria-label': label } : { 'aria-hidden': 'true' }) }, ...parts.filter(([, n]) => n > 0).map(([look, n]) => {
    const wide = Math.min(Math.max(least, n / whole * width), width - x - least * --left);
    const rect = drawing('rect', { class: 'area ' + look, x, y: 0, width: wide, height: 10 });
    x += wide;
    return rect;
  }));
}

/** Memory is a card that says where the memory is, to who may see it. */
export class Memory {
  constructor(heading) {
    this.heading = heading;
    this.node = h('section.card.chart', { 'aria-label': 'Memory', hidden: true });
  }

  /** show takes the memory of the server's status. */
  show(m) {
    this.node.hidden = !(m?.budget_bytes || m?.weights_bytes); // a script has none
    if (this.node.hidden) return;
    const parts = [['a', 'Weights', m.weights_bytes], ['c', 'Running requests', m.state_bytes], ['b', 'Prompt cache', m.cache_bytes], ['free', 'Free for requests and cache', Math.max(0, m.budget_bytes - m.state_bytes - m.cache_bytes)]];
    const key = parts.map(([, , n]) => bytes(n)).join() + bytes(m.resident_bytes);
    if (key === this.key) return;
    this.key = key;
    this.node.replaceChildren(h('div.row', {}, h(this.heading + '.grow', {}, 'Memory now'), h('span.muted.small', {}, bytes(m.resident_bytes) + ' resident, ' + bytes(m.peak_resident_bytes) + ' at most')),
      shares(parts.map(([look, , n]) => [look, n])), h('ul.series', {}, ...parts.map(([look, text, n]) => h('li', {}, swatch('areas', look), h('span', {}, text), h('span.value', {}, bytes(n))))));
  }
}
