// What the server does: figures of now, the requests that wait and run, the last hour, the latest requests and where their time
// went, and what is stored of prompts. The server is asked once a second, and only as long as somebody looks.
import { h, button, bytes, count, say, seconds } from './dom.js';
import { call, getJSON, words } from './api.js';
import { History } from './history.js';
import { Chart, Memory, short } from './charts.js';
import { Latest } from './trace.js';
import { Tree } from './tree.js';

const often = 1000; // milliseconds between two looks
const recent = 5; // seconds that the figures of now are the mean of

export function open(root, [wanted = '']) {
  const view = new View(root, wanted);
  return () => view.close();
}

/** hits are what a prompt is beside what is stored, by the server's name of it. */
const hits = [['exact', 'Repeats what is stored'], ['supersequence', 'Begins what is stored'], ['prefix', 'Continues what is stored'], ['lcp', 'Parts from what is stored'], ['miss', 'Is new']];

/** plots are the charts: columns of the history, and how they are shown. */
const plots = () => [
  { columns: ['output_tokens'], chart: new Chart({ title: 'Output', unit: 'tokens per second', kind: 'areas', series: [{ name: 'Output tokens', look: 'b' }] }) },
  { columns: ['prompt_tokens', 'cached_tokens'], chart: new Chart({ title: 'Prompts', unit: 'tokens per second', kind: 'areas', series: [{ name: 'Computed', look: 'a' }, { name: 'Cached', look: 'c' }] }) },
  { columns: ['running', 'waiting', 'batch'], chart: new Chart({ title: 'Requests and batch', unit: 'requests, and sequences in a step', whole: true, series: [{ name: 'Running', look: 'a' }, { name: 'Waiting', look: 'b dash' }, { name: 'Batch size', look: 'd dots' }] }) },
  { columns: hits.map(([kind]) => 'hits.' + kind), chart: new Chart({ title: 'What was stored of prompts', unit: 'prompts', kind: 'bars', whole: true, series: hits.map(([kind, text]) => ({ name: text, look: 'hit-' + kind })) }) },
  { columns: ['state_bytes', 'cache_bytes'], chart: new Chart({ title: 'Memory of requests and cache', unit: 'bytes', kind: 'areas', format: bytes, series: [{ name: 'Running requests', look: 'c' }, { name: 'Prompt cache', look: 'b' }] }) },
];

class View {
  constructor(root, wanted) {
    this.stopped = new AbortController();
    this.history = new History();
    this.state = h('span');
    this.whose = h('p');
    this.problem = h('p.note.bad', { role: 'alert', hidden: true });
    this.figures = Object.fromEntries([['running', 'Running'], ['waiting', 'Waiting'], ['output', 'Output tokens/s'], ['prompt', 'Prompt tokens/s'], ['batch', 'Batch size']].map(([key, text]) => {
      const value = h('dd', {}, '–');
      return [key, { value, node: h('div.figure.card', {}, h('dt', {}, text), value) }];
    }));
    this.now = h('ul.requests');
    this.rows = new Map();
    this.idle = h('p.note', {}, 'No request waits or runs.');
    this.plots = plots();
    this.span = 300;
    const spans = h('div.spans', { role: 'group', 'aria-label': 'Time shown' }, ...[[300, '5 min'], [900, '15 min'], [3600, '1 h']].map(([span, text]) => h('button.button.tiny', {
      type: 'button', 'aria-pressed': String(span === this.span), click: (e) => {
        this.span = span;
        for (const b of spans.children) b.setAttribute('aria-pressed', String(b === e.currentTarget));
        this.draw();
      },
    }, text)));
    this.memory = new Memory('h3');
    this.charts = h('section.part', { 'aria-label': 'The last hour', hidden: true }, h('div.row', {}, h('h2.grow', {}, 'The last hour'), spans), h('div.charts', {}, ...this.plots.map((p) => p.chart.node), this.memory.node));
    this.latest = new Latest(wanted, this.stopped.signal);
    this.tree = new Tree();
    root.append(h('div.page.live', {}, h('div.page-head', {}, h('div.row', {}, h('h1.grow', {}, 'Live'), this.state), this.whose), this.problem,
      h('dl.figures', {}, ...Object.values(this.figures).map((f) => f.node)),
      h('section.part', { 'aria-label': 'Now' }, h('h2', {}, 'Now'), this.idle, this.now), this.latest.node, this.charts, this.tree.node));
    this.wake = () => { if (!document.hidden) this.look(); };
    document.addEventListener('visibilitychange', this.wake);
    this.look();
  }

  close() {
    this.stopped.abort();
    clearTimeout(this.timer);
    document.removeEventListener('visibilitychange', this.wake);
  }

  /** look asks for all that is shown, and does so again a second later. */
  async look() {
    if (this.looking) return;
    this.looking = true;
    clearTimeout(this.timer);
    const options = { signal: this.stopped.signal };
    let problem = '', status;
    try {
      status = await getJSON('/v1/status', options);
      this.showStatus(status);
      const began = status.total_requests_processed + '/' + status.num_running + '/' + status.num_waiting;
      const moves = began !== this.began || status.num_running > 0; // else nothing new has happened
      await Promise.all([
        this.operator && this.history.ask(options),
        moves && getJSON('/v1/requests', options).then(({ requests }) => this.latest.show(requests)),
        began !== this.began && (this.operator || status.cache.entries !== undefined) && getJSON('/v1/cache/tree?most=' + Tree.most, options).then((tree) => this.tree.show(tree)),
      ]);
      this.began = began;
      this.draw(status);
      this.latest.openWanted();
    } catch (e) {
      if (this.stopped.signal.aborted || e?.status === 401) return;
      problem = words(e);
    }
    this.looking = false;
    this.problem.textContent = problem;
    this.problem.hidden = !problem;
    if (!this.stopped.signal.aborted && !document.hidden) this.timer = setTimeout(() => this.look(), often);
  }

  showStatus(s) {
    if (s.uptime_s < this.uptime) { // another one has begun
      this.history.forget();
      this.began = null;
    }
    this.uptime = s.uptime_s;
    this.operator = s.operator; // others have their own requests, and their own part of the tree where there are such parts
    const look = { running: '.good', stuck: '.bad' }[s.status] ?? '.warn';
    this.state.replaceChildren(h('span.row.small', {}, h('strong', {}, s.model), h('span.badge' + look, {}, s.status), h('span.muted', {}, 'up ' + seconds(s.uptime_s))));
    this.set('running', count(s.num_running));
    this.set('waiting', count(s.num_waiting));
    const requests = s.requests ?? [];
    this.idle.hidden = requests.length > 0;
    const gone = new Set(this.rows.keys());
    for (const r of requests) {
      gone.delete(r.request_id);
      if (!this.rows.has(r.request_id)) this.rows.set(r.request_id, new Row(r.request_id));
      const row = this.rows.get(r.request_id);
      row.show(r);
      if (!row.node.parentNode) this.now.append(row.node);
    }
    for (const id of gone) {
      this.rows.get(id).node.remove();
      this.rows.delete(id);
    }
    this.memory.show(s.memory);
  }

  set(key, text) {
    if (this.figures[key].value.textContent !== text) this.figures[key].value.textContent = text;
  }

  draw(status) {
    this.charts.hidden = !this.operator;
    for (const key of ['prompt', 'batch']) this.figures[key].node.hidden = !this.operator;
    if (status) {
      this.whose.textContent = this.operator ? 'What the server does, for all who call it.' : 'What the server does for you: all that is here is of your own requests. The operator\u2019s key shows those of all.';
      if (!this.operator) this.set('output', short((status.requests ?? []).reduce((sum, r) => sum + r.tokens_per_second, 0)));
    }
    if (!this.operator || !this.history.end) return;
    this.set('output', short(this.history.mean('output_tokens', recent)));
    this.set('prompt', short(this.history.mean('prompt_tokens', recent)));
    this.set('batch', short(this.history.mean('batch', recent)));
    for (const { columns, chart } of this.plots) chart.draw(this.history.steps(columns, this.span, this.span / (chart.counts ? 60 : 150), chart.counts), this.span);
  }
}

/** Row is a request that waits or runs. */
class Row {
  constructor(id) {
    this.id = id;
    this.model = h('strong.clip');
    this.session = h('span.muted.small.clip');
    this.phase = h('span.badge');
    this.age = h('span.muted.small.figures-same');
    this.bar = h('progress', { max: 1, 'aria-label': 'Progress of ' + id });
    this.facts = h('p.muted.small.figures-same');
    this.stop = button('Cancel', 'stop', () => this.cancel(), 'button tiny');
    this.stop.setAttribute('aria-label', 'Cancel ' + id);
    this.node = h('li.card.request', {}, h('div.request-head', {}, this.phase, h('div.request-name', {}, this.model, this.session), this.age, this.stop), this.bar, this.facts);
  }

  show(r) {
    const [word, look] = { queued: ['waits', 'warn'], prefill: ['reads the prompt', 'a'], generation: ['writes', 'good'] }[r.phase] ?? [r.phase, ''];
    this.phase.textContent = word;
    this.phase.className = 'badge ' + look;
    this.model.textContent = r.model ?? '';
    this.session.textContent = r.session ? 'session ' + r.session : '';
    this.age.textContent = r.age_s === undefined ? '' : seconds(r.age_s);
    const writes = r.phase === 'generation';
    this.bar.hidden = r.phase === 'queued';
    if (writes && !r.max_tokens) this.bar.removeAttribute('value');
    else this.bar.value = Math.max(0, Math.min(1, r.progress));
    this.bar.className = writes ? 'writes' : '';
    const prompt = r.prompt_tokens ? count(r.prompt_tokens) + ' tokens of prompt' + (r.cached_tokens ? ', ' + count(r.cached_tokens) + ' cached' : '') : '';
    const at = r.phase === 'prefill' ? Math.round(r.progress * 100) + ' % of its prompt is read' : writes ? count(r.generated_tokens) + (r.max_tokens ? ' of at most ' + count(r.max_tokens) : '') + ' tokens written' : 'It waits for its turn';
    this.facts.textContent = [at, r.tokens_per_second ? short(r.tokens_per_second) + ' tokens/s' : '', prompt].filter(Boolean).join(' · ');
  }

  async cancel() {
    this.stop.disabled = true;
    try {
      await call('/v1/requests/' + encodeURIComponent(this.id), { method: 'DELETE' });
    } catch (e) {
      if (e.status !== 404) say(words(e)); // it has ended by itself
      this.stop.disabled = false;
    }
  }
}
