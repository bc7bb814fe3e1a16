// The reference of the API: /openapi.json as people read it. What an operation has inside is made when it is opened.
import { h, codeBlock, count } from './dom.js';

const main = document.getElementById('main');
const search = document.getElementById('search');
const methods = ['get', 'post', 'put', 'delete'];

let doc;

/** resolve follows a reference; it gives what is there, and as what the document has it. */
function resolve(v) {
  let called = v?.called ?? '';
  while (v?.$ref) {
    called = v.$ref.split('/').pop();
    v = v.$ref.slice(2).split('/').reduce((at, step) => at?.[step.replaceAll('~1', '/').replaceAll('~0', '~')], doc);
  }
  return { ...v, called };
}

/** prose is a text in which `code` is code and an empty line parts paragraphs. */
function prose(text, element = 'p') {
  return text.split('\n\n').map((paragraph) => h(element, {}, ...paragraph.split('`').map((piece, i) => (i % 2 ? h('code', {}, piece) : piece))));
}

/** code is an example that can be copied. */
function code(label, text) {
  const block = codeBlock(label, label);
  block.code.textContent = text;
  return block.node;
}

/** later is what is made when somebody opens it. */
function later(label, make) {
  const d = h('details.more', {}, h('summary', {}, label));
  d.addEventListener('toggle', () => { if (d.open && d.children.length === 1) d.append(make()); });
  return d;
}

/** whole is a schema with what its allOf says, which is one object. */
function whole(of) {
  const schema = resolve(of);
  if (!schema.allOf) return schema;
  const all = { ...schema, type: 'object', properties: {}, required: [] };
  for (const one of schema.allOf.map(whole)) {
    Object.assign(all.properties, one.properties);
    all.required.push(...(one.required ?? []));
  }
  return all;
}

/** alternatives are those of a schema, null left out. */
const alternatives = (schema) => (schema.anyOf ?? schema.oneOf ?? []).filter((s) => s.type !== 'null');

/** kind is a schema's type in words. */
function kind(schema) {
  if ('const' in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((v) => JSON.stringify(v)).join(' | ');
  const others = alternatives(schema);
  if (others.length > 0) {
    const words = [...new Set(others.map((s) => kind(whole(s))))];
    return words.length > 3 ? 'one of ' + others.length : words.join(' | ');
  }
  const types = [schema.type ?? []].flat().filter((t) => t !== 'null');
  return types.map((t) => (t === 'array' && schema.items ? 'array of ' + kind(whole(schema.items)) : t)).join(' | ') || 'any';
}

/** bounds are what else a value must be, and its default. */
function bounds(schema) {
  const out = [];
  const between = (least, most, what) => {
    if (least !== undefined && most !== undefined) out.push(count(least) + ' to ' + count(most) + what);
    else if (least !== undefined) out.push('at least ' + count(least) + what);
    else if (most !== undefined) out.push('at most ' + count(most) + what);
  };
  between(schema.minimum, schema.maximum, '');
  between(schema.minLength, schema.maxLength, ' characters');
  between(schema.minItems, schema.maxItems, ' elements');
  between(schema.minProperties, schema.maxProperties, ' members');
  if ('default' in schema) out.push('default ' + JSON.stringify(schema.default));
  return out;
}

/** labelOf names one of several schemas: by its type or role, else its name. */
function labelOf(schema) {
  const told = schema.properties?.type ?? schema.properties?.role ?? schema.properties?.event;
  if (told && ('const' in told || told.enum)) return kind(told);
  return schema.called || kind(schema);
}

/** inside is what a schema has below its own line: members, alternatives, elements; null: nothing. */
function inside(of) {
  const schema = whole(of);
  const others = alternatives(schema).filter((s) => inside(s) !== null);
  if (schema.properties) return () => fields(schema);
  if (others.length === 1) return inside(others[0]);
  if (others.length > 1) return () => h('ul.fields', {}, ...others.map((s) => item(whole(s), h('span.name', {}, labelOf(whole(s))))));
  if (schema.items) return inside(schema.items);
  if (typeof schema.additionalProperties === 'object') return inside(schema.additionalProperties);
  return null;
}

/** item is a line about a value, and what is inside. */
function item(schema, head, required = false) {
  const more = inside(schema);
  const facts = bounds(schema);
  return h('li', {}, head, ' ', h('span.kind', {}, kind(schema), facts.length ? ' · ' + facts.join(' · ') : ''), ' ', required && h('span.must', {}, 'required'),
    ...(schema.description ? prose(schema.description, 'div') : []), more && later(schema.called || 'what is in it', more));
}

/** fields are the members of an object, those that must be there first. */
function fields(schema) {
  const must = new Set(schema.required ?? []);
  const names = Object.keys(schema.properties ?? {}).sort((a, b) => must.has(b) - must.has(a));
  return h('ul.fields', {}, ...names.map((name) => item(whole(schema.properties[name]), h('code.name', {}, name), must.has(name))));
}

/** shape is a schema from its top. */
function shape(of) {
  const schema = whole(of);
  const make = inside(schema);
  return make ? make() : h('p.kind', {}, kind(schema));
}

const json = (v) => JSON.stringify(v, null, 2);

/** curl is a request as a command. */
function curl(method, path, example) {
  const lines = ['curl ' + location.origin + path];
  if (method !== (example === undefined ? 'get' : 'post')) lines[0] = 'curl -X ' + method.toUpperCase() + ' ' + location.origin + path;
  lines.push('-H "Authorization: Bearer $HEARTH_API_KEY"');
  if (example !== undefined) lines.push("-H 'Content-Type: application/json'", "-d '" + json(example).replaceAll("'", "'\\''") + "'");
  return lines.join(' \\\n  ');
}

/** about fills in an operation. */
function about(path, method, shared, operation) {
  const out = h('div.body', {});
  if (operation.description) out.append(h('div.about', {}, ...prose(operation.description)));
  const also = doc.paths[path]['x-also'];
  if (also) out.append(h('p.muted', {}, 'Also at ', ...also.flatMap((p, i) => [i ? ', ' : '', h('code', {}, p)]), '.'));
  const parameters = [...shared, ...(operation.parameters ?? [])].map(resolve);
  if (parameters.length) {
    out.append(h('div.part', {}, h('h3', {}, 'Parameters'), h('ul.fields', {},
      ...parameters.map((p) => item({ ...whole(p.schema ?? {}), description: p.description }, h('span', {}, h('code.name', {}, p.name), ' ', h('span.badge', {}, p.in)), p.required)))));
  }
  const body = operation.requestBody?.content?.['application/json'];
  const at = path.replaceAll(/\{(\w+)\}/g, (_, name) => parameters.find((p) => p.name === name)?.example ?? name);
  const request = h('div.part', {}, h('h3', {}, 'Request'));
  if (body) request.append(later('Fields', () => shape(body.schema)));
  request.append(code('curl', curl(method, at, body?.example)));
  request.querySelector('details')?.setAttribute('open', '');
  out.append(request);
  for (const [status, of] of Object.entries(operation.responses)) out.append(reply(status, resolve(of)));
  return out;
}

/** reply is one reply of an operation. */
function reply(status, response) {
  const out = h('div.part', {}, h('h3', {}, h('span.badge' + (status < '300' ? '.good' : '.bad'), {}, status)), ...prose(response.description));
  if (response.headers) {
    out.append(later('Headers', () => h('ul.fields', {}, ...Object.entries(response.headers).map(([name, of]) => {
      const header = resolve(of);
      return item({ ...whole(header.schema), description: header.description }, h('code.name', {}, name));
    }))));
  }
  const events = (of) => out.append(later('Its events', () => shape(of)));
  if (response['x-message']) out.append(later('Messages to it', () => shape(response['x-message'])));
  if (response['x-event']) events(response['x-event']);
  for (const [type, media] of Object.entries(response.content ?? {})) {
    if (media.schema?.description) out.append(h('div', {}, ...prose(media.schema.description)));
    if (media['x-event']) events(media['x-event']);
    else if (type === 'application/json') out.append(later('Fields', () => shape(media.schema)));
    else out.append(h('p.kind', {}, type));
    if (media.example !== undefined) out.append(later('Example', () => code(type, json(media.example))));
  }
  return out;
}

/** names are the words of a schema that somebody may look for. */
function names(of, seen = new Set()) {
  if (of?.$ref) {
    if (seen.has(of.$ref)) return '';
    seen.add(of.$ref);
  }
  const schema = whole(of ?? {});
  const below = [...Object.values(schema.properties ?? {}), ...alternatives(schema), schema.items ?? {}];
  return Object.keys(schema.properties ?? {}).join(' ') + ' ' + below.map((s) => (Object.keys(s).length ? names(s, seen) : '')).join(' ');
}

/** route is a path that may be broken behind its slashes. */
const route = (path) => h('code', {}, ...path.split(/(?<=\/)/).flatMap((piece) => [piece, h('wbr')]));

const operations = []; // {card, link, section, text}

function build() {
  main.replaceChildren(h('section', {}, h('h1', {}, doc.info.title + ' ' + doc.info.version), ...prose(doc.info.description)));
  const groups = document.getElementById('groups');
  for (const tag of doc.tags) {
    const heading = 'tag-' + tag.name.toLowerCase().replaceAll(/\W+/g, '-');
    const section = h('section', { 'aria-labelledby': heading }, h('h2', { id: heading }, tag.name), ...prose(tag.description));
    const list = h('div', {}, h('h2', {}, tag.name));
    for (const [path, of] of Object.entries(doc.paths)) {
      for (const method of methods.filter((m) => of[m]?.tags?.includes(tag.name))) {
        const operation = of[method];
        const label = () => [h('span.method.' + method, {}, method.toUpperCase()), route(path)];
        const card = h('details.operation.card', { id: operation.operationId }, h('summary', {}, ...label(), h('span.muted', {}, operation.summary)));
        card.addEventListener('toggle', () => {
          if (card.open && card.children.length === 1) card.append(about(path, method, of.parameters ?? [], operation));
        });
        const link = h('a', { href: '#' + operation.operationId }, ...label());
        const text = [path, ...(of['x-also'] ?? []), method, operation.summary, tag.name, names(operation.requestBody?.content?.['application/json']?.schema)].join(' ').toLowerCase();
        section.append(card);
        list.append(link);
        operations.push({ card, link, section, list, text });
      }
    }
    main.append(section);
    groups.append(list);
  }
}

/** filter shows the operations that have all words of the search. */
function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let n = 0;
  for (const o of operations) {
    const fits = words.every((w) => o.text.includes(w));
    o.card.hidden = o.link.hidden = !fits;
    n += fits;
  }
  for (const o of operations) o.section.hidden = o.list.hidden = !operations.some((p) => p.section === o.section && !p.card.hidden);
  document.getElementById('found').textContent = words.length ? n + ' of ' + operations.length + ' operations' : '';
}

/** reveal opens the operation that the address names. */
function reveal() {
  const card = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!card?.matches('details.operation')) return;
  if (card.hidden) {
    search.value = '';
    filter();
  }
  card.open = true;
  if (matchMedia('(max-width: 50rem)').matches) document.getElementById('contents').open = false;
  card.scrollIntoView();
  card.querySelector('summary').focus({ preventScroll: true });
}

search.addEventListener('input', filter);
search.addEventListener('keydown', (e) => {
  const first = operations.find((o) => !o.card.hidden);
  if (e.key === 'Enter' && first) location.hash = first.card.id;
  if (e.key === 'Escape') {
    search.value = '';
    filter();
  }
});
addEventListener('keydown', (e) => {
  if (e.key !== '/' || e.ctrlKey || e.metaKey || e.altKey || e.target.matches('input, textarea, select')) return;
  e.preventDefault();
  search.focus();
});
addEventListener('hashchange', reveal);
document.getElementById('contents').open = !matchMedia('(max-width: 50rem)').matches;

try {
  const response = await fetch('/openapi.json');
  if (!response.ok) throw new Error('status ' + response.status);
  doc = await response.json();
  build();
  reveal();
} catch (e) {
  main.replaceChildren(h('p.note.bad', { role: 'alert' }, 'The description of the API cannot be read: ' + e.message));
}
