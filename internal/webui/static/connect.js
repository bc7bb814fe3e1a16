// How other programs use this server, with its address, a key and a model filled in, and a request that tries them.
import { h, button, codeBlock, copyButton } from './dom.js';
import { call, currentKey, getJSON, words } from './api.js';
import { clients } from './clients.js';

export const name = 'connect', label = 'Connect';
const picture = 'connect';
export { picture as icon };

const hidden = '••••••••';

export function open(root, [chosen = '']) {
  const client = clients.find((c) => c.id === chosen) ?? clients[0];
  const at = { url: location.origin, key: currentKey() || 'any', model: 'local', context: 32768 };
  let models = [];
  const picker = h('select.input', { id: 'connect-model', change: () => choose(picker.value) });
  const blocks = h('div.blocks');
  const said = h('div.said', { 'aria-live': 'polite' });

  const choose = (id) => {
    const m = models.find((x) => x.id === id);
    at.model = m?.id ?? 'local';
    at.context = m?.context_length ?? 32768;
    draw();
  };
  const draw = () => {
    blocks.replaceChildren(...client.blocks(at).map(([title, language, text]) => {
      const shown = currentKey() ? text.replaceAll(currentKey(), hidden) : text; // what is copied has it
      const { node, code } = codeBlock(title || language, title || client.name, () => text);
      code.textContent = shown;
      return node;
    }));
  };
  const test = button('Test it', 'connect', async () => {
    said.replaceChildren(h('p.note', {}, 'Asking …'));
    test.disabled = true;
    const began = performance.now();
    try {
      const reply = await (await call('/v1/chat/completions', { body: { model: at.model, max_tokens: 64, messages: [{ role: 'user', content: 'Say hello.' }] } })).json();
      const text = reply.choices?.[0]?.message?.content || 'It answered without a word.';
      said.replaceChildren(h('div.note', {}, h('p', {}, h('strong', {}, 'It works. '), Math.round(performance.now() - began) + ' ms for ' + (reply.usage?.completion_tokens ?? 0) + ' tokens:'), h('p.muted', {}, text.slice(0, 500))));
    } catch (e) {
      said.replaceChildren(h('p.note.bad', { role: 'alert' }, words(e)));
    }
    test.disabled = false;
  }, 'button primary');

  const list = h('nav.clients', { 'aria-label': 'Clients' }, ...clients.map((c) => h('a', { href: '#/connect/' + c.id, 'aria-current': c === client ? 'page' : null }, c.name)));
  root.append(h('div.page', {}, h('div.page-head', {}, h('h1', {}, 'Connect'), h('p', {}, 'What other programs are told so that they use this server. All that can be asked of it stands in the ', h('a', { href: '/docs' }, 'API reference'), '.')),
    h('div.card.connect-bar', {}, h('div.field', {}, h('span.label', {}, 'Address'), h('div.row', {}, h('code.address', {}, at.url), copyButton(() => at.url))),
      h('div.field.grow', {}, h('label', { for: 'connect-model' }, 'Model'), picker),
      h('div.field', {}, h('span.label', {}, 'Key'), h('span.muted', {}, currentKey() ? hidden : 'any will do')), test),
    said, list, h('section', { 'aria-label': client.name }, h('h2', {}, client.name), h('p.muted', {}, client.about), blocks)));
  draw();
  getJSON('/v1/models').then(({ data }) => {
    models = data.filter((m) => m.kind === 'chat' || !m.kind);
    picker.replaceChildren(...models.map((m) => h('option', { value: m.id }, m.id)));
    choose(models[0]?.id);
  }).catch((e) => { if (e.status !== 401) said.replaceChildren(h('p.note.bad', { role: 'alert' }, words(e))); });
}
