// Elements, and small things around them. Text goes into text nodes alone: nothing here takes markup.

const paths = {
  chat: 'M5 5h14a1.5 1.5 0 0 1 1.5 1.500v8.500a1.5 1.5 0 0 1-1.5 1.500h-7.500L7 20v-3.500H5A1.5 1.5 0 0 1 3.5 15V6.500A1.5 1.5 0 0 1 5 5Z',
  models: 'M12 3.5 4.5 7.500v9l7.5 4 7.5-4v-9ZM4.5 7.500l7.5 4 7.5-4M12 11.500v9',
  live: 'M3 12.500h4l2.5-7 4.5 13 3-8.500 1.2 2.500H21',
  connect: 'M9 7V3.500M15 7V3.500M7 7h10v4a5 5 0 0 1-10 0ZM12 16v4.5',
  plus: 'M12 5v14M5 12h14',
  close: 'M6 6l12 12M18 6 6 18',
  copy: 'M9 9h10v11H9ZM15 9V4.500H5V15h4',
  check: 'M5 12.500l4.5 4.500L19 7.5',
  send: 'M12 19.500v-15M6 10.500l6-6 6 6',
  stop: 'M7 7h10v10H7Z',
  retry: 'M19.5 12a7.5 7.5 0 1 1-2.3-5.400M19.5 3.500v4h-4',
  edit: 'M5 19l.8-3.800L15.5 5.500a1.4 1.4 0 0 1 2 0l1 1a1.4 1.4 0 0 1 0 2L8.8 18.200Z',
  branch: 'M7 4v16M7 14c6 0 10-2 10-6M17 8V5M7 4.500h.01M17 5h.01',
  sliders: 'M4 7h9M17 7h3M4 17h3M11 17h9M15 5v4M9 15v4',
  image: 'M4 5h16v14H4ZM4 16l4.5-4.5 4 4 2.5-2.5 5 5M15 9.500h.01',
  trash: 'M5 7h14M10 7V4.500h4V7M7 7l.8 12.500h8.400L17 7M10.5 11v5M13.5 11v5',
  left: 'M14.5 6l-6 6 6 6',
  right: 'M9.5 6l6 6-6 6',
  tool: 'M14.5 6.500a3.8 3.8 0 0 1 5-3L17 6l1 1 2.5-2.500a3.8 3.8 0 0 1-5 5L7.5 17.500a1.8 1.8 0 1 1-2.5-2.500l8-8',
  thought: 'M9.5 18.500h5M10 21h4M12 3.500a5.8 5.8 0 0 0-3.5 10.400c.7.6 1 1.3 1 2.100h5c0-.8.3-1.5 1-2.100A5.8 5.8 0 0 0 12 3.500Z',
  more: 'M6 12h.01M12 12h.01M18 12h.01',
  save: 'M12 4v11M7.5 10.5 12 15l4.5-4.500M5 19.500h14',
  open: 'M12 15V4M7.5 8.5 12 4l4.5 4.500M5 19.500h14',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8ZM12 3v1.500M12 19.500V21M3 12h1.500M19.5 12H21M5.6 5.600l1 1M17.4 17.400l1 1M18.4 5.600l-1 1M6.6 17.400l-1 1',
  moon: 'M19.5 14A8 8 0 0 1 10 4.500a8 8 0 1 0 9.5 9.500Z',
  system: 'M4 5h16v11H4ZM9 20h6M12 16v4',
  flame: 'M12 3c.6 3.2 5.5 5.4 5.5 10.300A5.6 5.6 0 0 1 12 19a5.6 5.6 0 0 1-5.5-5.700c0-2 1-3.5 2.2-4.7.3 1.5 1 2.3 2 2.700C10.2 8.5 10.8 5.3 12 3ZM5 22h14',
};

/** drawing is an element of SVG. */
export function drawing(name, attributes, ...children) {
  const e = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children);
  return e;
}

/** icon draws one of the pictures above; what it means is said by its neighbour or by the label of what it is in. */
export const icon = (name) => drawing('svg', { viewBox: '0 0 24 24', 'aria-hidden': 'true' }, drawing('path', { d: paths[name] }));

/** h makes an element: its name and classes ("button.primary"), attributes (functions listen; true, false and null are whether), children. */
export function h(spec, attributes = {}, ...children) {
  const [name, ...classes] = spec.split('.');
  const e = document.createElement(name || 'div');
  if (classes.length) e.className = classes.join(' ');
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') e.addEventListener(key, value);
    else e.setAttribute(key, value === true ? '' : String(value));
  }
  e.append(...children.filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}

/** button has a label, an icon, or both; without a visible label it is named for those who do not see it. */
export function button(label, picture, click, classes = 'button', bare = false) {
  const b = h('button', { type: 'button', class: bare ? 'icon-button ' + (classes === 'button' ? '' : classes) : classes, click, ...(bare && { 'aria-label': label, title: label }) });
  if (picture) b.append(icon(picture));
  if (!bare) b.append(h('span', {}, label));
  return b;
}

/** say tells something that needs no answer. */
export function say(text) {
  const toast = h('div.toast', {}, text);
  document.getElementById('toasts').append(toast);
  setTimeout(() => toast.remove(), 6000);
}

/** copy puts a text on the clipboard, also where the page did not come over a safe connection. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { /* not there, or not allowed */ }
  const area = h('textarea', { class: 'unseen', 'aria-hidden': 'true' });
  area.value = text;
  const before = document.activeElement;
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  before?.focus();
  return done;
}

/** copyButton copies what text() gives, and says that it has; a bare one shows no word. */
export function copyButton(text, bare = false) {
  const face = (picture, word) => [icon(picture), ...(bare ? [] : [h('span', {}, word)])];
  const b = button('Copy', 'copy', async () => {
    const done = await copy(text());
    b.replaceChildren(...(done ? face('check', 'Copied') : face('close', 'Not copied')));
    setTimeout(() => b.replaceChildren(...face('copy', 'Copy')), 1600);
  }, bare ? 'button' : 'button quiet tiny', bare);
  return b;
}

/** codeBlock is a block of code under its name, and the element that its text goes into. What is copied is that text, or what copied() gives. */
export function codeBlock(name, label, copied) {
  const code = h('code');
  const node = h('div.code', {}, h('div.code-head', {}, h('span', {}, name), copyButton(copied ?? (() => code.textContent))), h('pre', { tabindex: 0, role: 'region', 'aria-label': label }, code));
  return { node, code };
}

/** confirm asks before something that cannot be taken back; it gives true or false. */
export function confirm(title, text, yes) {
  return new Promise((resolve) => {
    const id = 'dialog-title';
    const dialog = h('dialog', { 'aria-labelledby': id });
    dialog.append(h('form', { method: 'dialog' }, h('h2', { id }, title), h('p.muted', {}, text),
      h('div.dialog-actions', {}, h('button.button', { value: 'no' }, 'Cancel'), h('button.button.primary', { value: 'yes', autofocus: true }, yes))));
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue === 'yes');
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

const sizes = ['bytes', 'kB', 'MB', 'GB', 'TB'];

/** bytes is a number of bytes as people read it. */
export function bytes(n) {
  let unit = 0;
  while (n >= 1000 && unit < sizes.length - 1) {
    n /= 1000;
    unit++;
  }
  return (unit === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)) + ' ' + sizes[unit];
}

/** count is a number with its thousands apart. */
export const count = (n) => Number(n).toLocaleString('en');

/** seconds is a time as people read it. */
export function seconds(s) {
  if (s < 1) return (s >= .00005 && s < .00995 ? (s * 1000).toFixed(1) : Math.round(s * 1000)) + ' ms';
  if (s < 60) return (Number.isInteger(s) ? s : s.toFixed(s < 10 ? 2 : 1)) + ' s';
  const whole = Math.round(s), pairs = [[86400, 'd', 3600, 'h'], [3600, 'h', 60, 'min'], [60, 'min', 1, 's']];
  const [big, bigName, small, smallName] = pairs.find(([unit]) => whole >= unit);
  const rest = Math.floor(whole % big / small);
  return Math.floor(whole / big) + ' ' + bigName + (rest ? ' ' + rest + ' ' + smallName : '');
}
