// Conversations, in this browser alone. A conversation is a tree of messages: to edit or to answer anew is to begin another
// branch beside the old one. {id, title, at, leaf, settings} and {of, n, parent, role, text, …}: n counts from 1, parent 0 is the root.

const batch = 200; // messages read or written at once, so that no task is long

let database;

function opened() {
  database ??= new Promise((resolve) => {
    let request;
    try {
      request = indexedDB.open('hearth', 1);
    } catch {
      resolve(null);
      return;
    }
    request.onupgradeneeded = () => {
      request.result.createObjectStore('conversations', { keyPath: 'id' });
      request.result.createObjectStore('messages', { keyPath: ['of', 'n'] });
    };
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => resolve(null); // storage is off: what is said lasts until the page is left
  });
  return database;
}

const memory = { conversations: new Map(), messages: new Map() };

const done = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

const finished = (t) => new Promise((resolve, reject) => {
  t.oncomplete = () => resolve();
  t.onabort = t.onerror = () => reject(t.error ?? new Error('The browser keeps no more: its storage is full.'));
});

/** newID is a name that nobody else has. */
export function newID() {
  return [...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, '0')).join('');
}

/** conversations are all of them without their messages, the latest first. */
export async function conversations() {
  const db = await opened();
  const all = db ? await done(db.transaction('conversations').objectStore('conversations').getAll()) : [...memory.conversations.values()];
  return all.sort((a, b) => b.at - a.at);
}

export async function conversation(id) {
  const db = await opened();
  return db ? done(db.transaction('conversations').objectStore('conversations').get(id)) : memory.conversations.get(id);
}

/** messages are those of a conversation, by n. */
export async function messages(of) {
  const db = await opened();
  if (!db) return [...memory.messages.values()].filter((m) => m.of === of).sort((a, b) => a.n - b.n);
  const all = [];
  for (;;) {
    const range = IDBKeyRange.bound([of, all.length ? all.at(-1).n : 0], [of, Infinity], true);
    const some = await done(db.transaction('messages').objectStore('messages').getAll(range, batch));
    for (const m of some) all.push(m); // not by arguments, of which there may be too many
    if (some.length < batch) return all;
  }
}

/** keep writes a conversation and some of its messages. */
export async function keep(meta, some = []) {
  const db = await opened();
  if (!db) {
    memory.conversations.set(meta.id, meta);
    for (const m of some) memory.messages.set(m.of + '/' + m.n, m);
    return;
  }
  for (let i = 0; i === 0 || i < some.length; i += batch) {
    const t = db.transaction(['conversations', 'messages'], 'readwrite');
    t.objectStore('conversations').put(meta);
    for (const m of some.slice(i, i + batch)) t.objectStore('messages').put(m);
    await finished(t);
  }
}

/** forget removes a conversation. */
export async function forget(id) {
  const db = await opened();
  if (!db) {
    memory.conversations.delete(id);
    for (const [key, m] of memory.messages) if (m.of === id) memory.messages.delete(key);
    return;
  }
  const t = db.transaction(['conversations', 'messages'], 'readwrite');
  t.objectStore('conversations').delete(id);
  t.objectStore('messages').delete(IDBKeyRange.bound([id, 0], [id, Infinity]));
  await finished(t);
}

const format = 'hearth-conversations-1';

/** exported is the text of a file with some conversations, or all. */
export async function exported(ids) {
  const all = [];
  for (const c of await conversations()) {
    if (!ids || ids.includes(c.id)) all.push({ ...c, messages: await messages(c.id) });
  }
  return JSON.stringify({ format, conversations: all }, null, 1);
}

const text = (v) => (typeof v === 'string' ? v : '');
const number = (v) => (typeof v === 'number' && isFinite(v) ? v : 0);
const list = (v) => (Array.isArray(v) ? v : []);
const picture = /^data:image\/(png|jpeg|webp|gif);base64,[A-Za-z0-9+/]+=*$/;

/** isPicture reports what may be shown as an image: the bytes of one, and no address. */
export const isPicture = (url) => typeof url === 'string' && picture.test(url);

/** settingsOf are the settings that are known, each of the kind that it must be. */
export function settingsOf(v) {
  const out = {};
  for (const key of ['system', 'tools', 'reasoning', 'model']) if (text(v?.[key])) out[key] = v[key];
  for (const key of ['temperature', 'top_p', 'top_k', 'min_p', 'max_tokens', 'seed']) if (typeof v?.[key] === 'number' && isFinite(v[key])) out[key] = v[key];
  return out;
}

/** messageOf is a message of a file, with nothing in it but what a message has. */
function messageOf(of, m) {
  const stats = m.stats && typeof m.stats === 'object' ? Object.fromEntries(['first', 'rate', 'cached', 'prompt', 'output'].filter((k) => typeof m.stats[k] === 'number').map((k) => [k, m.stats[k]])) : null;
  return {
    of, n: number(m.n), parent: number(m.parent), role: m.role === 'assistant' ? 'assistant' : 'user', at: number(m.at), text: text(m.text), reasoning: text(m.reasoning),
    model: text(m.model), error: text(m.error), finish: text(m.finish), state: ['done', 'stopped', 'cut', 'failed'].includes(m.state) ? m.state : 'cut', stats,
    images: list(m.images).filter((i) => isPicture(i?.url)).map((i) => ({ name: text(i.name), url: i.url })),
    calls: list(m.calls).map((c) => ({ id: text(c?.id), name: text(c?.name), arguments: text(c?.arguments), ...(typeof c?.result === 'string' && { result: c.result }) })),
  };
}

/** imported adds the conversations of a file's text, beside those that there are, and gives their ids. */
export async function imported(file) {
  let read;
  try {
    read = JSON.parse(file);
  } catch (e) {
    throw new Error('The file is not JSON: ' + e.message);
  }
  if (read?.format !== format) throw new Error('The file is not an export of this page: its format is not ' + format + '.');
  const ids = [];
  for (const c of list(read.conversations)) {
    const id = newID();
    const seen = new Set([0]);
    const some = list(c?.messages).map((m) => messageOf(id, m ?? {})).sort((a, b) => a.n - b.n).filter((m) => {
      const fits = Number.isInteger(m.n) && m.n > 0 && !seen.has(m.n) && seen.has(m.parent); // parents come first: no circles
      if (fits) seen.add(m.n);
      return fits;
    });
    if (!some.length) continue;
    const leaf = seen.has(c.leaf) && c.leaf ? c.leaf : some.at(-1).n;
    await keep({ id, title: text(c.title).slice(0, 200) || 'Imported', at: number(c.at) || Date.now(), leaf, settings: settingsOf(c.settings) }, some);
    ids.push(id);
  }
  if (!ids.length) throw new Error('The file has no conversation.');
  return ids;
}
