// The panel of a conversation's settings: the system prompt, sampling, tools. What is left empty is the model's own.
import { h, button } from './dom.js';

const numbers = [
  ['temperature', 'Temperature', 0, 2, 'any', 'Higher is more varied; 0 takes the likeliest token each time.'],
  ['top_p', 'Top p', 0, 1, 'any', 'Only the likeliest tokens that have this much probability together.'],
  ['top_k', 'Top k', 0, 1000, 1, 'Only so many of the likeliest tokens.'],
  ['min_p', 'Min p', 0, 1, 'any', 'Only tokens with this share of the likeliest one’s probability.'],
  ['max_tokens', 'Longest answer', 1, 10_000_000, 1, 'In tokens, thinking included.'],
  ['seed', 'Seed', 0, 2 ** 31, 1, 'The same seed, the same answer.'],
];

/** panel edits settings, and calls changed with them; close is called by its button. */
export function panel(settings, changed, close) {
  const set = (key, value) => {
    if (value === '' || value === null) delete settings[key];
    else settings[key] = value;
    changed(settings);
  };
  const area = (key, label, rows, hint, more = {}) => {
    const id = 'set-' + key;
    const e = h('textarea.input', { id, rows, 'aria-describedby': id + '-hint', input: () => set(key, e.value), ...more });
    e.value = settings[key] ?? '';
    return h('div.field', {}, h('label', { for: id }, label), e, h('p.hint', { id: id + '-hint' }, hint));
  };
  const field = ([key, label, min, max, step, hint]) => {
    const id = 'set-' + key;
    const e = h('input.input', {
      id, type: 'number', min, max, step, placeholder: 'Model’s own', inputmode: 'decimal', 'aria-describedby': id + '-hint',
      input: () => {
        e.setAttribute('aria-invalid', String(!e.checkValidity()));
        if (e.checkValidity()) set(key, e.value === '' ? '' : Number(e.value));
      },
    });
    if (settings[key] !== undefined) e.value = settings[key];
    return h('div.field', {}, h('label', { for: id }, label), e, h('p.hint', { id: id + '-hint' }, hint));
  };
  const reasoning = h('select.input', { id: 'set-reasoning', change: () => set('reasoning', reasoning.value) },
    ...[['', 'As the model does'], ['none', 'Off'], ['low', 'Low'], ['medium', 'Medium'], ['high', 'High']].map(([value, text]) => h('option', { value, selected: (settings.reasoning ?? '') === value }, text)));
  const tools = area('tools', 'Tools', 5, 'A JSON list of functions as Chat Completions takes it. What the model calls is shown as a card; you give the result.', { class: 'input mono', spellcheck: 'false' });
  const box = tools.querySelector('textarea');
  const check = () => box.setAttribute('aria-invalid', String(!toolsOf(box.value).ok));
  box.addEventListener('input', check);
  check();
  return h('aside.settings', { 'aria-label': 'Settings of this conversation' },
    h('div.row', {}, h('h2.grow', {}, 'Settings'), button('Close', 'close', close, 'button', true)),
    area('system', 'System prompt', 6, 'What the model is to know or to be, before anything is said.'),
    h('div.field', {}, h('label', { for: 'set-reasoning' }, 'Thinking'), reasoning),
    h('div.pairs', {}, ...numbers.map(field)), tools);
}

/** toolsOf reads the field of tools. */
export function toolsOf(text) {
  if (!text?.trim()) return { ok: true, tools: [] };
  try {
    const tools = JSON.parse(text);
    return { ok: Array.isArray(tools), tools };
  } catch {
    return { ok: false, tools: [] };
  }
}
