// How other programs use this server, with its address, a key and a model filled in, and a request that tries them.
import { h, button, codeBlock, copyButton, count } from './dom.js';
import { call, currentKey, getJSON, words } from './api.js';
import { clients } from './clients.js';

const hidden = '••••••••';

let chosen = ''; // the model, for all clients

/** choose has the view begin with a model. */
export const choose = (model) => { chosen = model; };

export function open(root, [name = '']) {
  const client = clients.find((c) => c.id === name) ?? clients[0];
  const at = { url: location.origin, key: currentKey() || 'any', model: 'local', context: 32768, sees: false };
  const local = ['localhost', '127.0.0.1', '[::1]'].includes(location.hostname);
  let known = true; // whether the context is the model's own
  let models = [];
  const picker = h('select.input', { id: 'connect-model', change: () => use(picker.value) });
  const blocks = h('div.blocks');
  const room = h('p.note', { hidden: true });
  const said = h('div.said', { 'aria-live': 'polite' });

  const use = (id) => {
    const m = models.find((x) => x.id === id);
    if (m) choose(id);
    at.model = m?.id ?? 'local';
    at.context = m?.context_length ?? 32768;
    at.sees = m?.modality === 'text+image';
    known = !m || !!m.context_length;
    draw();
  };
  const draw = () => {
    const shown = client.blocks({ ...at, key: currentKey() ? hidden : at.key }); // what is copied has the key
    blocks.replaceChildren(...client.blocks(at).map(([title, language, text], i) => {
      const { node, code } = codeBlock(title || language, title || client.name, () => text);
      code.textContent = shown[i][2];
      return node;
    }));
    room.textContent = !known ? `How long its context is shows when the model is loaded. Until then ${count(at.context)} tokens stand here.`
      : client.prompt * 2.5 > at.context ? `The prompt of ${client.name} itself has some ${count(client.prompt)} tokens. A context of ${count(at.context)} ${client.prompt < at.context ? 'leaves little for a session' : 'has no room for it'}: serve a model with a longer one, or set --context-length.` : '';
    room.hidden = !room.textContent;
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
      h('div.field', {}, h('span.label', {}, 'Key'), h('span.muted', {}, currentKey() ? hidden + ' · Copy has it' : 'any will do')), test),
    local ? h('p.hint', {}, 'Programs on this machine alone reach that address. For others start hearth serve --host 0.0.0.0 --api-key KEY, and open this page at this machine\u2019s address in the network.') : null, said, list, h('section', { 'aria-label': client.name }, h('h2', {}, client.name), h('p.muted', {}, client.about), room, blocks)));
  draw();
  getJSON('/v1/models').then(({ data }) => {
    models = data.filter((m) => m.kind === 'chat' || !m.kind);
    picker.replaceChildren(...models.map((m) => h('option', { value: m.id }, m.id)));
    const id = (models.find((m) => m.id === chosen) ?? models[0])?.id;
    picker.value = id ?? '';
    use(id);
  }).catch((e) => { if (e.status !== 401) said.replaceChildren(h('p.note.bad', { role: 'alert' }, words(e))); });
}
