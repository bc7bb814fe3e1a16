// The models that the server has.
import { h, icon, count } from './dom.js';
import { getJSON, words } from './api.js';

export const name = 'models', label = 'Models';
const picture = 'models';
export { picture as icon };

export function open(root) {
  const list = h('div.model-list');
  root.append(h('div.page', {}, h('div.page-head', {}, h('h1', {}, 'Models'), h('p', {}, 'What this server answers with.')), list));
  fill(list);
}

async function fill(list) {
  try {
    const { data } = await getJSON('/v1/models');
    list.replaceChildren(...data.map(row));
    if (!data.length) list.append(h('div.empty', {}, icon('models'), h('h2', {}, 'No model yet'), h('p', {}, 'hearth serve MODEL serves one.')));
  } catch (e) {
    list.replaceChildren(h('p.note.bad', { role: 'alert' }, words(e)));
  }
}

const row = (m) => h('article.card.model', {}, h('h2.clip', {}, m.id), h('p.muted.small', {}, m.context_length ? count(m.context_length) + ' tokens of context' : ''));
