// The latest requests, and of each where its time went and why.
import { h, button, count, seconds } from './dom.js';
import { getJSON, words } from './api.js';
import { clock, shares, short, swatch } from './charts.js';

const page = 12; // rows that are shown at first, and more of at a time

const states = { queued: ['waits', 'warn'], prefill: ['reads', 'warn'], generation: ['writes', 'warn'], done: ['done', 'good'], failed: ['failed', 'bad'], cancelled: ['cancelled', ''] };
const ended = (r) => ['done', 'failed', 'cancelled'].includes(r.state);

/** found says in a word what a prompt is beside what was stored. */
const found = { exact: 'repeats', supersequence: 'repeats', prefix: 'continues', lcp: 'parts', miss: 'new' };

/** stages are the phases of a request, in their order: their names, looks, and what happens in them. */
const stages = [
  ['load_s', 'Load', 'e', (r) => (r.phases.load_s > .05 ? 'the model was read' : 'the model was there')],
  ['tokenize_s', 'Tokenise', 'd', (r) => 'the text became ' + count(r.prompt_tokens) + ' tokens'],
  ['queue_s', 'Queue', 'queue', (r) => (r.phases.queue_s > .05 ? 'it waited for other requests' : 'it began at once')],
  ['match_s', 'Match', 'c', (r) => count(r.cached_tokens) + ' tokens were stored' + (r.disk_tokens ? ', ' + count(r.disk_tokens) + ' of them on disk' : '')],
  ['prefill_s', 'Prefill', 'a', (r) => count(computed(r)) + ' tokens were computed' + rate(computed(r), r.phases.prefill_s)],
  ['decode_s', 'Decode', 'b', (r) => count(r.output_tokens) + ' tokens were written' + (r.tokens_per_second ? ', ' + short(r.tokens_per_second) + ' a second' : '')],
];

const computed = (r) => Math.max(0, r.prompt_tokens - r.cached_tokens);
const rate = (n, s) => (s > .001 && n > 1 ? ', ' + short(n / s) + ' a second' : '');

/** Latest is the list. wanted is the id of a request that is to be open. */
export class Latest {
  constructor(wanted, signal) {
    Object.assign(this, { wanted, signal, rows: new Map(), most: page, all: [] });
    this.list = h('div.card.latest');
    this.none = h('p.note', {}, 'There was no request yet. Ask something in the chat, or connect a client.');
    this.more = button('Show more', null, () => {
      this.most += page;
      this.show(this.all);
    }, 'button tiny');
    this.more.hidden = true;
    this.node = h('section.part.listed', { 'aria-label': 'Latest requests' }, h('div', {}, h('h2', {}, 'Latest requests'), h('p.muted.small', {}, 'Open one to see where its time went.')),
      this.none, h('div', {}, h('div.latest-head', { 'aria-hidden': 'true' }, ...['Began', 'Model', 'Prompt', 'Stored of it', 'First token', 'Tokens/s', 'Took', ''].map((t) => h('span', {}, t))), this.list), this.more);
  }

  /** show takes what the server remembers, the newest first. */
  show(all) {
    this.all = all;
    const stays = (r) => r.request_id === this.wanted || this.rows.get(r.request_id)?.node.open; // nothing is shut before somebody's eyes
    const some = all.filter((r) => ended(r) || stays(r));
    this.none.hidden = some.length > 0;
    this.none.nextSibling.hidden = !some.length;
    this.more.hidden = some.length <= this.most;
    const kept = some.filter((r, i) => i < this.most || stays(r));
    const gone = new Set(this.rows.keys());
    let before = null;
    for (const r of kept) {
      gone.delete(r.request_id);
      let row = this.rows.get(r.request_id);
      if (!row) this.rows.set(r.request_id, row = new Line(r.request_id, this.signal));
      row.show(r);
      const at = before ? before.nextSibling : this.list.firstChild;
      if (row.node !== at) this.list.insertBefore(row.node, at);
      before = row.node;
    }
    for (const id of gone) {
      this.rows.get(id).node.remove();
      this.rows.delete(id);
    }
  }

  /** openWanted opens the request that the address names, once all is there that may push it out of sight. */
  openWanted() {
    if (!this.wanted || this.opened) return;
    this.opened = true;
    const row = this.rows.get(this.wanted);
    if (!row) {
      this.node.children[0].after(h('p.note.bad', { role: 'alert' }, 'The request ' + this.wanted + ' is not remembered any more: the server knows the latest, since it was started.'));
      return;
    }
    row.node.open = true;
    row.node.scrollIntoView({ block: 'start' });
    row.node.firstChild.focus({ preventScroll: true });
  }
}

/** Line is a request of the list. */
class Line {
  constructor(id, signal) {
    Object.assign(this, { id, signal });
    const cell = (look, after = '') => {
      const value = h('span');
      return { value, node: h('span.cell.' + look, {}, value, after && h('span.after', {}, after)) };
    };
    this.cells = { began: cell('began'), model: cell('of-model'), hit: cell('hit'), stored: cell('stored', ' stored'), first: cell('first', ' to the first token'), rate: cell('rate', ' tokens/s'), took: cell('took', ' in all') };
    this.state = h('span.badge');
    this.body = h('div.trace');
    this.node = h('details', { toggle: () => this.open() }, h('summary', {}, ...Object.values(this.cells).map((c) => c.node), h('span.cell.state', {}, this.state)), this.body);
  }

  show(r) {
    const key = JSON.stringify(r);
    if (key === this.key) return;
    this.key = key;
    const set = (cell, text) => {
      this.cells[cell].value.textContent = text;
      this.cells[cell].node.classList.toggle('none', text === '');
    };
    const reached = r.prompt_tokens > 0;
    set('began', clock(r.began));
    set('model', r.model.split('/').at(-1));
    this.cells.model.node.title = r.model;
    set('hit', reached ? found[r.cache_hit_type] ?? r.cache_hit_type : '');
    set('stored', reached ? count(r.cached_tokens) + ' of ' + count(r.prompt_tokens) : '');
    set('first', r.ttft_s ? seconds(r.ttft_s) : '');
    set('rate', r.tokens_per_second ? short(r.tokens_per_second) : '');
    set('took', seconds(r.wall_s));
    const [word, look] = states[r.state] ?? [r.state, ''];
    this.state.textContent = word;
    this.state.className = 'badge ' + look;
    this.cells.stored.node.classList.toggle('much', computed(r) > 500 && computed(r) > r.prompt_tokens / 2);
    if (this.node.open) this.open();
  }

  /** open asks for all that is known of the request, with the texts that are the caller's own. */
  async open() {
    if (!this.node.open || this.shown === this.key) return;
    this.shown = this.key;
    try {
      this.body.replaceChildren(...trace(await getJSON('/v1/requests/' + encodeURIComponent(this.id), { signal: this.signal })));
    } catch (e) {
      if (this.signal.aborted) return;
      this.shown = '';
      this.body.replaceChildren(h('p.note.bad', { role: 'alert' }, words(e)));
    }
  }
}

/** trace shows where the time of a request went, and why. */
function trace(r) {
  const parts = stages.map(([key, text, look, what]) => ({ text, look, s: r.phases[key], what: what(r) }));
  const rest = r.wall_s - parts.reduce((sum, p) => sum + p.s, 0);
  if (rest > Math.max(.005, r.wall_s / 50)) parts.push({ text: 'Rest', look: 'free', s: rest, what: 'between these, and until the client had it all' });
  return [
    h('div', {}, h('h3', {}, ended(r) ? 'Why did this take ' + seconds(r.wall_s) + '?' : 'What it does'), ...why(r).map((text) => h('p.why', {}, text)), shorter(r)),
    h('div.phases', {}, shares(parts.map((p) => [p.look, p.s]), { label: parts.filter((p) => p.s > 0).map((p) => p.text + ' ' + seconds(p.s)).join(', ') }),
      h('ol', {}, ...parts.map((p) => h('li', {}, swatch('areas', p.look), h('strong', {}, p.text), h('span.figures-same', {}, seconds(p.s)), h('span.muted', {}, p.what))))),
    parting(r.parting),
    h('p.muted.small', {}, [r.request_id, r.model, r.api, r.session ? 'session ' + r.session : '', r.finish ? 'finish: ' + r.finish : ''].filter(Boolean).join(' · ')),
  ].filter(Boolean);
}

/** parting shows the text around the place where a prompt parted from what is stored, and beside it what is stored there, where that is known. */
function parting(p) {
  if (!p) return null;
  const side = (title, look, text) => h('div', {}, h('h4', {}, title), h('pre', { tabindex: 0, role: 'region', 'aria-label': title },
    h('span.muted', {}, '… ' + visible(p.before)), h('span.parted', {}, h('span.unseen', {}, ' here they part: ')), h(look, {}, visible(text) + ' …')));
  return h('div.parting', { role: 'group', 'aria-label': 'Where the prompt parted from what was stored' },
    h('p.small', {}, p.stored ? 'Up to the mark both are the same. What comes after it differs, so all from there on had to be computed.' : 'Up to the mark the prompt is as it was stored; what comes after it is new.'),
    h('div.sides', {}, p.stored ? side('Stored before', 'del', p.stored) : null, side('This prompt', 'ins', p.after)));
}

/** visible shows ends of lines too. */
const visible = (s) => String(s).replaceAll('\n', '↵\n');

/** why says in a few plain sentences where the time of a request went. */
export function why(r) {
  const out = [];
  if (r.state === 'failed') out.push('It failed' + (r.error ? ': ' + r.error : '.'));
  if (r.state === 'cancelled') out.push('It was cancelled' + (r.output_tokens ? ' after ' + count(r.output_tokens) + ' tokens.' : ' before its first token.'));
  const times = Object.entries(r.phases).sort((a, b) => b[1] - a[1]);
  if (!times[0][1]) return out.length ? out : ['Nothing is known of its time yet.'];
  const mostly = times[0][1] > r.wall_s / 2 ? 'Most of the time' : 'The longest part';
  const told = times.filter(([, s], i) => i === 0 || s > r.wall_s / 4).slice(0, 2);
  told.forEach(([phase, s], i) => out.push((i === 0 ? mostly + ', ' + seconds(s) + ', ' : 'Another ' + seconds(s) + ' ') + reasons[phase](r)));
  return out;
}

/** shorter says what would make the longest phase shorter, of requests that took a while. */
function shorter(r) {
  const [phase] = Object.entries(r.phases).reduce((a, b) => (b[1] > a[1] ? b : a));
  if (!ended(r) || r.wall_s < 2 || phase === 'prefill_s' && !['lcp', 'miss'].includes(r.cache_hit_type)) return null;
  return helps[phase] && h('p.muted.small', {}, helps[phase]);
}

const helps = {
  load_s: 'A model stays in memory until nobody has asked for it for a while (--idle-unload). Load, under Models, has it ready before.',
  queue_s: 'hearth serve --max-sequences says how many requests run at once, as far as there is memory.',
  prefill_s: 'What a prompt begins with is read once, as long as it stays as it is: what changes is best put at its end.',
  decode_s: 'A shorter answer, less thinking or a smaller model takes less time.',
};

/** reasons say what the time of a phase went into. */
const reasons = {
  load_s: () => 'went into loading the model, which was not in memory.',
  queue_s: () => 'it waited for other requests: the server was busy with them.',
  tokenize_s: (r) => 'went into making tokens of its text: ' + count(r.prompt_tokens) + ' of them.',
  match_s: (r) => 'went into finding what is stored of its prompt' + (r.disk_tokens ? ' and reading ' + count(r.disk_tokens) + ' tokens of it from disk.' : '.'),
  prefill_s: (r) => 'went into reading the prompt: ' + count(computed(r)) + ' of its ' + count(r.prompt_tokens) + ' tokens had to be computed, ' + because(r),
  decode_s: (r) => 'went into writing the answer: ' + count(r.output_tokens) + ' tokens' + (r.tokens_per_second ? ' at ' + short(r.tokens_per_second) + ' a second.' : '.'),
};

/** because says why tokens of a prompt had to be computed. */
function because(r) {
  const where = r.parted_message === null ? '' : ', in message ' + (r.parted_message + 1) + ' of the conversation';
  const lost = r.common_tokens - r.cached_tokens;
  const unused = lost > 64 ? ' ' + count(lost) + ' tokens more were the same, but could not be used.' : '';
  switch (r.cache_hit_type) {
    case 'miss': return 'because nothing of it was stored: nothing began like it before, or what did has been dropped meanwhile.';
    case 'lcp': return 'because it parted from what was stored after ' + count(r.common_tokens) + ' tokens' + where + '.' + unused;
    case 'prefix': return 'because they are new: what was stored ends before them.' + unused;
    case 'exact': case 'supersequence': return 'though all of it was stored.' + unused;
    default: return /\/(embeddings|rerank)$/.test(r.api) ? 'as all of it always is for vectors and scores.' : 'as far as is known.';
  }
}
