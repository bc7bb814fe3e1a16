// The models: what is loaded and on the disk, loading and unloading, fetching others, and the memory that they share.
import { h, icon, button, say, bytes, count } from './dom.js';
import { Failure, events, getJSON, manage, words } from './api.js';
import { Memory, shares, swatch } from './charts.js';
import { choose as chatWith } from './chat.js';
import { choose as connectTo } from './connect.js';

const often = 3000; // milliseconds between two looks

const contexts = [['4096', '4,096 tokens'], ['32768', '32,768 tokens'], ['131072', '131,072 tokens'], ['max', 'as long as each model reads']];
let context = '32768'; // with which models on the disk say what they take

export function open(root) {
  const view = new View(root);
  return () => view.close();
}

class View {
  constructor(root) {
    this.list = h('div.model-list');
    this.room = h('div.room.row', { hidden: true });
    this.fillRoom();
    this.memory = new Memory('h2');
    this.fetch = h('section.card.pull', { 'aria-label': 'Fetch a model', hidden: true });
    this.rows = '';
    root.append(h('div.page', {}, h('div.page-head', {}, h('h1', {}, 'Models'), h('p', {}, 'What this server answers with. A request for a model on the disk loads it.')), this.memory.node, this.room, this.list, this.fetch));
    this.fillFetch();
    this.timer = setInterval(() => { if (!document.hidden) this.look(); }, often);
    this.look();
  }

  close() {
    this.closed = true;
    clearInterval(this.timer);
  }

  async look() {
    let status, models, memory;
    try {
      status = await getJSON('/v1/status');
      if (status.operator && !this.refused) {
        try {
          ({ models, memory } = await (await manage('/hearth/models?context=' + context)).json());
        } catch (e) {
          if (e.status !== 401) throw e;
          this.refused = true; // the server does not know the name by which this page came, and gave it no cookie
        }
      }
      // Who may not manage them sees those that may be used.
      models ??= (await getJSON('/v1/models')).data.map((m) => ({ id: m.id, kind: m.kind, status: m.state, context: m.context_length, sees: m.capabilities?.includes('vision') }));
    } catch (e) {
      return this.fail(e);
    }
    if (this.closed) return;
    const may = status.operator && !this.refused;
    this.fetch.hidden = !may;
    this.room.hidden = !memory;
    const hundredths = memory && [memory.held_bytes, memory.free_bytes].map((n) => Math.round(n / memory.capacity_bytes * 100)); // what changes all the time
    const rows = JSON.stringify([models, hundredths]);
    if (rows !== this.rows) { // else what has the focus keeps it
      this.rows = rows;
      if (memory) this.free.textContent = bytes(memory.free_bytes) + ' of ' + bytes(memory.capacity_bytes) + ' are free for another one.';
      this.list.replaceChildren(...models.map((m) => this.row(m, may, memory)));
      if (!models.length) this.list.append(h('div.empty', {}, icon('models'), h('h2', {}, 'No model yet'), h('p', {}, 'Fetch one below, or start the server with one: hearth serve MODEL.')));
    }
    this.memory.show(status.memory);
  }

  fail(e) {
    if (this.closed || e?.status === 401) return;
    this.rows = '';
    this.list.replaceChildren(h('p.note.bad', { role: 'alert' }, words(e)));
  }

  /** fillRoom has the choice of the context, and what the bars of models mean. */
  fillRoom() {
    const choice = h('select.input', { id: 'context', change: () => {
      context = choice.value;
      this.look();
    } }, ...contexts.map(([value, text]) => h('option', { value, selected: value === context }, text)));
    this.free = h('span.muted.small');
    this.room.append(h('div.field', {}, h('label', { for: 'context' }, 'What each takes, with a context of'), choice),
      h('div', {}, h('ul.series', {}, ...[['held', 'Loaded models'], ['others', 'Other programs'], ['need', 'This one']].map(([look, text]) => h('li', {}, swatch('areas', look), h('span', {}, text)))), this.free));
  }

  row(m, may, memory) {
    const state = stateOf(m);
    const facts = [m.kind && m.kind !== 'chat' ? m.kind : '', m.model_type, m.bits ? m.bits + ' bits' : '', m.bytes ? bytes(m.bytes) : '', m.context ? count(m.context) + ' tokens of context' : '', m.sees ? 'sees pictures' : ''].filter(Boolean);
    const act = (text, path, more) => {
      const b = button(text, null, async () => {
        b.disabled = true;
        b.setAttribute('aria-busy', 'true');
        b.textContent = text === 'Load' ? 'Loading …' : 'Unloading …';
        try {
          await manage(path, { body: { model: m.id, ...more } });
        } catch (e) {
          say(m.id + ': ' + words(e));
        }
        this.rows = '';
        this.look();
      }, 'button tiny');
      b.setAttribute('aria-label', text + ' ' + m.id);
      return b;
    };
    const names = (m.names ?? []).filter((name) => name !== m.id);
    const usable = m.kind === 'chat' && (m.status === 'loaded' || m.status === 'on_disk');
    return h('article.card.model', { 'aria-label': m.id }, h('div.grow', {}, h('div.row', {}, h('h2', {}, m.id), h('span.badge' + state.look, {}, state.text), m.default ? h('span.badge', {}, 'default') : null),
      m.id === 'demo' ? h('p.small', {}, 'It shows that everything works, and knows next to nothing: fetch a real one below.') : null, h('p.muted.small', {}, facts.join(' · ')), names.length ? h('p.muted.small', {}, 'Also ' + names.join(', ')) : null,
      m.problem ? h('p.danger-text.small', {}, m.problem) : null, m.reason ? h('p.muted.small', {}, m.reason) : null,
      ...(memory ? share(m, memory) : [])),
    may && m.status === 'on_disk' ? act('Load', '/hearth/models/load') : null,
    may && m.status === 'loaded' && !m.pinned ? act('Unload', '/hearth/models/unload') : null,
    may && m.state === 'half-downloaded' ? button('Fetch the rest', null, () => this.pull(m.id), 'button tiny') : null,
    ...(usable ? [chatLink(m.id, 'a.button.tiny', { 'aria-label': 'Chat with ' + m.id }, 'Chat'), h('a.button.tiny', { href: '#/connect', 'aria-label': 'Connect to ' + m.id, click: () => connectTo(m.id) }, 'Connect')] : []));
  }

  fillFetch() {
    this.name = h('input.input', { id: 'pull', placeholder: 'mlx-community/Qwen3-0.6B-4bit', spellcheck: 'false', autocomplete: 'off', required: true });
    this.said = h('div', { 'aria-live': 'polite' });
    this.fetch.append(h('h2', {}, 'Fetch a model'), h('form.row', {
      submit: (e) => {
        e.preventDefault();
        this.pull(this.name.value.trim());
      },
    }, h('div.field.grow', {}, h('label', { for: 'pull' }, 'Its name on Hugging Face'), this.name), h('button.button.primary', { type: 'submit' }, 'Fetch')),
      h('p.hint', {}, 'As organisation/name; huggingface.co/mlx-community has many that run here. How large one is, what memory it takes and whether it fits is said first; Stop ends it.'), this.said);
  }

  /** pull fetches a model and shows how far it has come. What has arrived stays on the disk when it is stopped. */
  async pull(model) {
    if (!model || this.pulling) return;
    const stop = new AbortController();
    this.pulling = true;
    const text = h('p.small'), more = h('p.muted.small'), at = h('progress', { max: 1, value: 0, 'aria-label': 'Fetched of ' + model });
    this.said.replaceChildren(text, at, more, button('Stop', 'stop', () => stop.abort(), 'button tiny'));
    text.textContent = 'Asking for ' + model + ' …';
    this.fetch.scrollIntoView({ block: 'nearest' });
    let all = 0, done = false;
    try {
      for await (const { data } of events(await manage('/hearth/models/pull', { body: { model }, signal: stop.signal }))) {
        const e = JSON.parse(data);
        if (e.event === 'plan') {
          all = e.bytes;
          text.textContent = e.id + ': ' + bytes(e.bytes) + (e.missing < e.bytes ? ', of which ' + bytes(e.missing) + ' are missing' : '');
          more.textContent = (e.need ? 'It takes ' + bytes(e.need) + ' of memory' + (e.context ? ' with ' + count(e.context) + ' tokens of context' : '') + (e.fits === false ? ', and does not fit into the ' + bytes(e.memory) + ' there are.' : e.fits ? ', and fits.' : '.') : '');
        } else if (e.event === 'progress') {
          const rate = e.rate ?? 0;
          at.value = all ? Math.min(1, (e.done ?? 0) / all) : 0;
          text.textContent = bytes(e.done ?? 0) + ' of ' + bytes(all) + (rate ? ', ' + bytes(rate) + ' a second' : '');
        } else if (e.event === 'done') {
          done = true;
        } else if (e.event === 'error') throw new Failure(0, String(e.message), '');
      }
      this.said.replaceChildren(h('p.note', {}, ...(done ? [model + ' is here. ', chatLink(model, 'a', {}, 'Chat with it')] : ['It broke off. What has arrived is kept.'])));
    } catch (e) {
      this.said.replaceChildren(h('p.note' + (stop.signal.aborted ? '' : '.bad'), {}, stop.signal.aborted ? 'Stopped. What has arrived is kept, and is not fetched again.' : words(e)));
    }
    this.pulling = false;
    this.rows = '';
    this.look();
  }
}

/** chatLink leads to a new conversation with a model. */
const chatLink = (id, spec, attributes, text) => h(spec, { ...attributes, href: '#/chat', click: () => chatWith(id) }, text);

/** stateOf is the state of a model in a word, and how it looks. */
function stateOf(m) {
  if (m.state === 'half-downloaded') return { text: 'half fetched', look: '.warn' };
  if (m.state === 'unusable') return { text: 'cannot be used', look: '.bad' };
  return { loaded: { text: 'loaded', look: '.good' }, loading: { text: 'loading', look: '.warn' }, on_disk: { text: 'on disk', look: '' } }[m.status] ?? { text: 'not served', look: '' };
}

/** share shows what a model has of the memory that there is, or would take of it. */
function share(m, all) {
  const others = all.capacity_bytes - all.free_bytes - all.held_bytes;
  if (m.held_bytes) return [shares([['need', m.held_bytes], ['held', all.held_bytes - m.held_bytes], ['others', others]], { whole: all.capacity_bytes }), h('p.muted.small', {}, 'It has ' + bytes(m.held_bytes) + ' of memory.')];
  const need = m.memory;
  if (!need) return [];
  const [look, verdict] = !need.fits ? ['over', 'more than the ' + bytes(all.capacity_bytes) + ' that models may have'] : need.beside ? ['', 'fits'] : ['tight', 'fits when others have gone'];
  return [shares([['held', all.held_bytes], ['others', others], ['need ' + look, need.bytes]], { whole: all.capacity_bytes }),
    h('p.small.verdict' + (look && '.' + look), {}, bytes(need.bytes) + (need.context ? ' with ' + count(need.context) + ' tokens of context' : '') + ': ' + verdict + (need.low_memory ? ', with its weights left in their files' : ''))];
}
