// The chat: conversations at the side, messages, and what is written to the model.
import { h, icon, button, say, confirm, count } from './dom.js';
import { getJSON, words } from './api.js';
import * as store from './store.js';
import { Answer, answering, anyAnswering, rescued } from './answers.js';
import { Shown } from './message.js';
import { panel, toolsOf } from './settings.js';

const atOnce = 12; // messages that are made at once; earlier ones when somebody goes to them
const mostPicture = 20 << 20; // bytes

let side, current = null, place = ''; // place is the conversation that was looked at last

const lastSettings = 'hearth.settings';
function remembered() {
  try {
    return store.settingsOf(JSON.parse(localStorage.getItem(lastSettings) ?? '{}'));
  } catch {
    return {};
  }
}
function remember(settings) {
  try {
    localStorage.setItem(lastSettings, JSON.stringify(settings));
  } catch { /* storage is off */ }
}

/** choose has the next new conversation begin with a model. */
export const choose = (model) => remember({ ...remembered(), model });

/** keepPlace has the view be found again at the conversation that was looked at. */
function keepPlace(id) {
  current = place = id;
  document.querySelector('#nav [data-view=chat]').href = '#/chat' + (id && '/' + id);
}

const to = (id) => { location.hash = '#/chat' + (id ? '/' + id : ''); };

/** mountSide fills the side with the list of conversations. */
export function mountSide(root) {
  const file = h('input', { type: 'file', accept: 'application/json,.json', hidden: true, 'aria-label': 'File to import', change: async () => {
    const [chosen] = file.files;
    file.value = '';
    if (!chosen) return;
    try {
      const ids = await store.imported(await chosen.text());
      say(ids.length === 1 ? 'One conversation is imported.' : count(ids.length) + ' conversations are imported.');
      await listSide();
      to(ids[0]);
    } catch (e) {
      say(chosen.name + ': ' + words(e));
    }
  } });
  side = h('ul.conversations', { 'aria-label': 'Conversations' });
  root.append(h('a.button.new', { href: '#/chat' }, icon('plus'), h('span', {}, 'New conversation')), side,
    h('div.row.side-files', {}, button('Import', 'open', () => file.click(), 'button quiet tiny'), button('Export all', 'save', () => download(null), 'button quiet tiny'), file));
  listSide();
}

async function listSide() {
  const all = await store.conversations();
  side.replaceChildren(...all.slice(0, 500).map((c) => h('li', {}, h('a.conversation', { href: '#/chat/' + c.id, 'aria-current': c.id === current ? 'page' : null, title: c.title }, h('span.clip', {}, c.title)),
    button('Delete ' + c.title, 'trash', async () => {
      if (!await confirm('Delete this conversation?', 'It is in this browser alone, and cannot be brought back.', 'Delete')) return;
      anyAnswering(c.id)?.stop();
      await store.forget(c.id);
      await listSide();
      if (c.id === current) to('');
      if (c.id === place) keepPlace('');
    }, 'delete', true))));
  if (!all.length) side.append(h('li.hint', {}, 'What you say stays in this browser.'));
}

async function download(ids) {
  const url = URL.createObjectURL(new Blob([await store.exported(ids)], { type: 'application/json' }));
  const a = h('a', { href: url, download: 'hearth-conversations.json' });
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export function open(root, [id = '']) {
  const view = new View(root, id);
  return () => view.close();
}

class View {
  constructor(root, id) {
    this.root = root;
    this.id = id;
    keepPlace(id);
    this.meta = { id: '', title: '', at: 0, leaf: 0, settings: remembered() };
    this.all = new Map();
    this.made = new Map(); // by n: what shows it
    this.images = [];
    this.near = new IntersectionObserver((entries) => {
      for (const e of entries) if (e.isIntersecting) {
        this.near.unobserve(e.target);
        e.target.shown?.draw();
      }
    }, { root: null, rootMargin: '600px' });
    this.pinned = true; // to the end of the thread, however that grows
    this.grown = new ResizeObserver(() => { if (this.pinned) this.scroll.scrollTop = this.scroll.scrollHeight; });
    this.build();
    this.grown.observe(this.thread);
    this.start();
    listSide();
  }

  close() {
    this.closed = true;
    current = null;
    this.near.disconnect();
    this.grown.disconnect();
  }

  scrolled() {
    const s = this.scroll;
    this.pinned = s.scrollHeight - s.scrollTop - s.clientHeight < 60;
    if (s.scrollTop < 400 && !this.pinned) this.showEarlier();
  }

  build() {
    this.picker = h('select.input.picker', { 'aria-label': 'Model', change: () => {
      this.set({ ...this.meta.settings, model: this.picker.value });
      this.tellToy();
    } });
    this.others = h('a.small', { href: '#/models', hidden: true }, 'More models');
    this.toy = h('p.note', { hidden: true }, 'The model is the demo: it shows that everything works, and knows next to nothing. For real answers choose or fetch another one under ', h('a', { href: '#/models' }, 'Models'), '.');
    this.thread = h('div.thread');
    this.earlier = button('Earlier messages', null, () => this.showEarlier(), 'button quiet tiny earlier');
    this.earlier.hidden = true;
    this.scroll = h('div.scroller', { tabindex: 0, role: 'region', 'aria-label': 'Messages', scroll: () => this.scrolled() }, this.earlier, this.thread);
    this.status = h('p.unseen', { role: 'status' });
    this.area = h('textarea', {
      id: 'prompt', rows: 1, placeholder: 'Write a message', 'aria-label': 'Message', enterkeyhint: 'send',
      keydown: (e) => {
        if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) {
          e.preventDefault();
          this.send();
        }
        if (e.key === 'Escape') anyAnswering(this.meta.id)?.stop();
      },
      paste: (e) => { if (this.attach(e.clipboardData.files)) e.preventDefault(); },
    });
    this.file = h('input', { type: 'file', accept: 'image/png,image/jpeg,image/webp,image/gif', multiple: true, hidden: true, 'aria-label': 'Pictures', change: () => {
      this.attach(this.file.files);
      this.file.value = '';
    } });
    this.pictures = h('div.attached', { hidden: true });
    this.keys = h('span.hint.grow.keys');
    this.sendButton = h('button.send', { type: 'submit', 'aria-label': 'Send', title: 'Send' }, icon('send'));
    this.composer = h('form.composer', {
      submit: (e) => {
        e.preventDefault();
        const a = anyAnswering(this.meta.id);
        if (a) a.stop();
        else this.send();
      },
    }, this.pictures, this.area, h('div.composer-row', {}, button('Add a picture', 'image', () => this.file.click(), 'button', true), this.file, this.keys, this.sendButton));
    this.panelButton = button('Settings of this conversation', 'sliders', () => this.togglePanel(), 'button', true);
    this.panelButton.setAttribute('aria-expanded', 'false');
    this.head = h('header.chat-head', {}, this.picker, this.others, h('span.grow'), button('Export this conversation', 'save', () => this.meta.id && download([this.meta.id]), 'button', true), this.panelButton);
    this.body = h('div.chat', {
      dragover: (e) => {
        e.preventDefault();
        this.body.classList.add('dropping');
      },
      dragleave: () => this.body.classList.remove('dropping'),
      drop: (e) => {
        e.preventDefault();
        this.body.classList.remove('dropping');
        this.attach(e.dataTransfer.files);
      },
    }, this.head, this.scroll, this.composer, this.status);
    this.root.append(this.body);
  }

  async start() {
    this.models();
    if (this.id) {
      const meta = await store.conversation(this.id);
      if (this.closed) return;
      if (!meta) {
        this.thread.append(h('div.empty', {}, icon('chat'), h('h2', {}, 'This conversation is not here'), h('p', {}, 'Conversations are kept in the browser in which they were held.'), h('a.button', { href: '#/chat' }, 'New conversation')));
        return;
      }
      this.meta = { ...meta, settings: store.settingsOf(meta.settings) };
      for (const m of await store.messages(this.id)) this.all.set(m.n, answering(m)?.message ?? m);
      if (this.closed) return;
      await this.mend();
    }
    this.show();
    this.area.focus({ preventScroll: true });
    const a = anyAnswering(this.meta.id);
    if (a) this.follow(a);
  }

  /** mend says of answers that were being written when their tab went that they were cut. */
  async mend() {
    const open = [...this.all.values()].filter((m) => m.state === 'writing' && !answering(m));
    if (!open.length) return;
    const held = await navigator.locks?.query().then((l) => new Set(l.held.map((x) => x.name))).catch(() => null);
    const cut = open.filter((m) => !held?.has(lockOf(m)));
    for (const m of cut) {
      const more = rescued(m);
      if (more && more.text.length + more.reasoning.length > m.text.length + m.reasoning.length) Object.assign(m, more);
      m.state = 'cut';
    }
    if (cut.length) await store.keep(this.meta, cut).catch(() => {});
  }

  async models() {
    let data = [];
    try {
      ({ data } = await getJSON('/v1/models'));
    } catch (e) {
      if (e.status !== 401) say(words(e));
      return;
    }
    this.known = data.filter((m) => m.kind === 'chat' || !m.kind);
    const chosen = this.meta.settings.model;
    this.picker.replaceChildren(...this.known.map((m) => h('option', { value: m.id, selected: m.id === chosen }, m.id)));
    this.others.hidden = this.known.length > 1;
    this.tellToy();
    if (!this.known.length) {
      this.picker.append(h('option', { value: '' }, 'No model that chats'));
      this.picker.disabled = true;
    }
  }

  /** tellToy says of the demo what it is. */
  tellToy() {
    this.toy.hidden = this.picker.value !== 'demo';
  }

  set(settings) {
    this.meta.settings = settings;
    remember(settings);
    if (this.meta.id) store.keep(this.meta).catch((e) => say(words(e)));
  }

  togglePanel() {
    if (this.panel) {
      this.panel.remove();
      this.panel = null;
    } else {
      this.panel = panel({ ...this.meta.settings }, (s) => this.set({ ...s }), () => {
        this.togglePanel();
        this.panelButton.focus();
      });
      this.panel.addEventListener('keydown', (e) => { if (e.key === 'Escape') this.panel.querySelector('button').click(); });
      this.body.append(this.panel);
      this.panel.querySelector('textarea').focus();
    }
    this.panelButton.setAttribute('aria-expanded', String(Boolean(this.panel)));
  }

  /** path is the branch that is shown, from the first message to the last. */
  path(leaf = this.meta.leaf) {
    const out = [];
    for (let m = this.all.get(leaf); m; m = this.all.get(m.parent)) out.push(m);
    return out.reverse();
  }

  /** children are the numbers of the messages behind each. */
  children() {
    if (!this.by) {
      this.by = new Map();
      for (const m of this.all.values()) {
        const list = this.by.get(m.parent);
        if (list) list.push(m.n);
        else this.by.set(m.parent, [m.n]);
      }
    }
    return this.by;
  }

  /** show draws the branch anew: its end, and what is before it when somebody goes there. */
  show() {
    const list = this.path();
    const by = this.children();
    this.before = list.slice(0, -atOnce);
    this.thread.replaceChildren(...list.slice(-atOnce).map((m) => this.make(m, by)));
    if (!list.length) this.thread.append(this.welcome());
    this.earlier.hidden = !this.before.length;
    this.pinned = true;
    this.scroll.scrollTop = this.scroll.scrollHeight;
    this.busy();
  }

  welcome() {
    const tries = ['What can you help me with?', 'Explain how a hash map works, with a short example in Go.', 'Write a haiku about a fireplace.'];
    return h('div.empty.welcome', {}, icon('flame'), h('h1', {}, 'What shall we talk about?'), h('p', {}, 'The model runs on your own machine, and what you say stays in this browser.'),
      h('div.tries', {}, ...tries.map((t) => button(t, null, () => {
        this.area.value = t;
        this.area.focus();
        this.send();
      }))), this.toy);
  }

  /** make gives what shows a message, which is made once. */
  make(m, by) {
    const siblings = by.get(m.parent) ?? [m.n];
    let shown = this.made.get(m.n);
    if (shown) {
      shown.beside(siblings);
      return shown.root;
    }
    shown = new Shown(m, {
      resend: (of, text) => this.say(of.parent, text, of.images), again: (of) => this.answer(of.parent), goOn: (of) => this.answer(of.parent, of),
      result: (of, at, text) => this.result(of, at, text), fork: (of) => this.fork(of), branch: (n) => this.branch(n),
    }, siblings);
    this.made.set(m.n, shown);
    shown.root.shown = shown;
    this.near.observe(shown.root);
    return shown.root;
  }

  showEarlier() {
    if (!this.before?.length || this.earlierBusy) return;
    this.earlierBusy = true;
    const some = this.before.splice(-atOnce), by = this.children();
    const height = this.scroll.scrollHeight, top = this.scroll.scrollTop;
    this.thread.prepend(h('div.group', {}, ...some.map((m) => this.make(m, by)))); // which the browser passes over as one
    this.scroll.scrollTop = top + this.scroll.scrollHeight - height;
    this.earlier.hidden = !this.before.length;
    requestAnimationFrame(() => { this.earlierBusy = false; });
  }

  /** busy shows whether an answer is being written. */
  busy() {
    const now = Boolean(anyAnswering(this.meta.id));
    this.sendButton.replaceChildren(icon(now ? 'stop' : 'send'));
    this.sendButton.setAttribute('aria-label', now ? 'Stop' : 'Send');
    this.sendButton.title = now ? 'Stop' : 'Send';
    this.keys.textContent = now ? 'Escape stops' : 'Enter sends, Shift+Enter is a new line';
  }

  attach(files) {
    const some = [...files].filter((f) => /^image\/(png|jpeg|webp|gif)$/.test(f.type));
    for (const f of some) {
      if (f.size > mostPicture) {
        say(f.name + ' is larger than 20 MB.');
        continue;
      }
      const reader = new FileReader();
      reader.onload = () => {
        if (!store.isPicture(reader.result)) return;
        this.images.push({ name: f.name, url: reader.result });
        this.showImages();
      };
      reader.readAsDataURL(f);
    }
    if (!some.length && files.length) say('Only pictures can be added: PNG, JPEG, WebP or GIF.');
    return some.length > 0;
  }

  showImages() {
    this.pictures.hidden = !this.images.length;
    this.pictures.replaceChildren(...this.images.map((i) => h('figure', {}, h('img', { src: i.url, alt: i.name }), button('Remove ' + i.name, 'close', () => {
      this.images = this.images.filter((x) => x !== i);
      this.showImages();
    }, 'remove', true))));
    const model = this.known?.find((m) => m.id === this.picker.value);
    if (this.images.length && model && !model.capabilities?.includes('vision')) this.pictures.append(h('p.hint', {}, 'This model cannot see: it is told that there was a picture.'));
  }

  /** add makes a message, the last of the branch behind parent. */
  add(parent, role, more) {
    let n = 1;
    for (const other of this.all.keys()) n = Math.max(n, other + 1);
    const m = { of: this.meta.id, n, parent, role, at: Date.now(), text: '', reasoning: '', images: [], calls: [], model: '', error: '', finish: '', state: 'done', stats: null, ...more };
    this.all.set(n, m);
    this.by = null;
    this.meta.leaf = n;
    this.meta.at = Date.now();
    return m;
  }

  async send() {
    const text = this.area.value;
    if (!text.trim() && !this.images.length) return;
    if (anyAnswering(this.meta.id)) {
      say('An answer is being written. Stop it to send this, or wait for its end.');
      return;
    }
    const images = this.images;
    this.area.value = '';
    this.images = [];
    this.showImages();
    await this.say(this.meta.leaf, text, images);
  }

  /** say adds what somebody says, and asks for the answer. */
  async say(parent, text, images) {
    const fresh = !this.meta.id;
    if (fresh) {
      this.meta.id = this.id = store.newID();
      keepPlace(this.id);
      this.meta.title = (text.trim().split('\n')[0] || images[0]?.name || 'Picture').slice(0, 80);
    }
    const m = this.add(parent, 'user', { text, images });
    try {
      await store.keep(this.meta, [m]);
    } catch (e) {
      say(words(e));
    }
    if (fresh) history.replaceState(null, '', '#/chat/' + this.meta.id);
    this.answer(m.n);
    listSide();
  }

  /**
   * answer asks for what comes behind a message; into is an answer that goes on. One that is being written in this conversation
   * is stopped: who edits what was asked, or wants another answer, wants that one no more.
   */
  async answer(parent, into) {
    const tools = toolsOf(this.meta.settings.tools);
    if (!tools.ok) {
      say('The tools of this conversation are not a JSON list: see its settings.');
      return;
    }
    for (let a; (a = anyAnswering(this.meta.id)); await a.ended) a.stop();
    const list = this.path(into ? into.n : parent);
    const model = this.picker.value || this.meta.settings.model || undefined;
    const m = into ?? this.add(parent, 'assistant', { model: model ?? '' });
    Object.assign(m, { error: '', finish: '', stats: null });
    this.made.delete(m.n);
    const a = new Answer(this.meta, m, bodyOf(this.meta.settings, model, list, tools.tools));
    navigator.locks?.request(lockOf(m), () => a.ended).catch(() => {});
    this.show();
    this.follow(a);
  }

  follow(a) {
    this.status.textContent = 'Answering';
    this.busy();
    a.ended.then(() => {
      this.status.textContent = a.message.state === 'done' ? 'Answered' : 'The answer has ended early';
      this.busy();
    });
  }

  async result(m, at, text) {
    m.calls[at].result = text;
    this.made.get(m.n)?.results();
    await store.keep(this.meta, [m]).catch((e) => say(words(e)));
    if (m.calls.every((c) => typeof c.result === 'string')) this.answer(m.n);
  }

  /** branch shows another branch, down to its latest message. */
  branch(n) {
    const by = this.children();
    for (let next = n; next; next = by.get(n)?.at(-1)) n = next;
    this.meta.leaf = n;
    store.keep(this.meta).catch(() => {});
    this.show();
  }

  /** fork copies what was said up to a message into a conversation of its own. */
  async fork(m) {
    const id = store.newID();
    const list = this.path(m.n).map((x, i) => ({ ...x, of: id, n: i + 1, parent: i, state: x.state === 'writing' ? 'cut' : x.state }));
    await store.keep({ ...this.meta, id, at: Date.now(), leaf: list.length, title: this.meta.title }, list);
    to(id);
  }
}

const lockOf = (m) => 'hearth-answer-' + m.of + '-' + m.n;

/** bodyOf is a request of Chat Completions. */
function bodyOf(settings, model, list, tools) {
  const messages = [];
  if (settings.system) messages.push({ role: 'system', content: settings.system });
  for (const m of list) {
    if (m.role === 'user') {
      messages.push({ role: 'user', content: m.images.length ? [...m.images.map((i) => ({ type: 'image_url', image_url: { url: i.url } })), ...(m.text ? [{ type: 'text', text: m.text }] : [])] : m.text });
    } else if (m.text || m.calls.length) {
      messages.push({ role: 'assistant', content: m.text || null, ...(m.calls.length && { tool_calls: m.calls.map((c, i) => ({ id: c.id || 'call_' + m.n + '_' + i, type: 'function', function: { name: c.name, arguments: c.arguments } })) }) });
      m.calls.forEach((c, i) => { if (typeof c.result === 'string') messages.push({ role: 'tool', tool_call_id: c.id || 'call_' + m.n + '_' + i, content: c.result }); });
    }
  }
  const body = { model, messages, ...(tools.length && { tools }) };
  for (const key of ['temperature', 'top_p', 'top_k', 'min_p', 'max_tokens', 'seed']) if (settings[key] !== undefined) body[key] = settings[key];
  if (settings.reasoning) body.reasoning_effort = settings.reasoning;
  return body;
}
