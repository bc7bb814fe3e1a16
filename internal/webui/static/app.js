// The shell: which view is shown, the state of the server, the theme, and the question for a key.
import { h, icon } from './dom.js';
import { call, currentKey, onKeyWanted, setKey, words, Failure } from './api.js';
import * as chat from './chat.js';

/** A view has a name, which its icon has too, a label, and a module, whose open(root, arguments) fills root and gives what closes it. The others come when the chat is there: so the page is drawn sooner. */
const views = [
  { name: 'chat', label: 'Chat', module: chat },
  { name: 'live', label: 'Live', module: import('./live.js') },
  { name: 'models', label: 'Models', module: import('./models.js') },
  { name: 'connect', label: 'Connect', module: import('./connect.js') },
];

const main = document.getElementById('main');
const nav = document.getElementById('nav');
const side = document.getElementById('side');
const scrim = document.getElementById('scrim');
const menu = document.getElementById('menu');

let close = () => {}, turn = 0;

/** leave ends what is shown, and gives the number of what comes in its place. */
function leave() {
  close();
  close = () => {};
  main.replaceChildren();
  return ++turn;
}

async function show() {
  const [, name = '', ...rest] = location.hash.slice(1).split('/');
  const view = views.find((v) => v.name === name) ?? views[0];
  if (openMenu(false)) main.focus(); // where a view has no better place for it
  const mine = leave();
  for (const a of nav.children) {
    if (a.dataset.view === view.name) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  }
  document.title = view.label + ' · hearth';
  document.getElementById('topbar-title').textContent = view.label;
  let open;
  try {
    ({ open } = await view.module);
  } catch (e) {
    open = () => main.append(h('div.page', {}, h('p.note.bad', { role: 'alert' }, words(e)))); // it did not come
  }
  if (mine === turn) close = open(main, rest.map(decode)) ?? (() => {});
}

const decode = (s) => {
  try {
    return decodeURIComponent(s);
  } catch {
    return s;
  }
};

// The menu of narrow screens.
/** openMenu opens or shuts it, and gives whether it was open. */
function openMenu(open) {
  const was = side.classList.contains('open');
  side.classList.toggle('open', open);
  scrim.hidden = !open;
  menu.setAttribute('aria-expanded', String(open));
  if (open) side.querySelector('a, button')?.focus();
  return was;
}
function closeMenu() {
  if (openMenu(false)) menu.focus();
}
menu.addEventListener('click', () => openMenu(!side.classList.contains('open')));
side.addEventListener('click', (e) => { if (e.target.closest('a')?.hash === location.hash) closeMenu(); }); // what it leads to is there
scrim.addEventListener('click', closeMenu);
addEventListener('keydown', (e) => { if (e.key === 'Escape') closeMenu(); });

// The theme: as the system, light, dark.
const themes = { system: 'Theme: as the system', light: 'Theme: light', dark: 'Theme: dark' };
const themeButton = document.getElementById('theme');
function theme(choice) {
  if (choice === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
  try {
    localStorage.setItem('hearth.theme', choice);
  } catch { /* storage is off: until the page is left */ }
  themeButton.replaceChildren(icon({ system: 'system', light: 'sun', dark: 'moon' }[choice]));
  themeButton.setAttribute('aria-label', themes[choice]);
  themeButton.title = themes[choice];
}
themeButton.addEventListener('click', () => {
  const all = Object.keys(themes);
  theme(all[(all.indexOf(document.documentElement.dataset.theme ?? 'system') + 1) % all.length]);
});
theme(document.documentElement.dataset.theme ?? 'system');

// The state of the server, for as long as somebody looks.
const state = document.getElementById('state');
async function look() {
  if (document.hidden) return;
  let word = 'away', text = 'The server does not answer';
  try {
    const response = await fetch('/health', { cache: 'no-store' });
    const health = await response.json();
    word = String(health.status);
    text = { ok: 'Ready', loading: 'Loading', stuck: 'Stuck', draining: 'Shutting down' }[word] ?? word;
    if (health.version) state.title = 'hearth ' + health.version;
    if (health.model) text += ' · ' + health.model;
  } catch { /* away */ }
  state.dataset.state = word;
  document.getElementById('state-text').textContent = text;
}
setInterval(look, 10_000);
document.addEventListener('visibilitychange', look);
look();

// The key, where the server wants one.
function askKey(error) {
  leave();
  const input = h('input.input', { id: 'key', type: 'password', autocomplete: 'off', spellcheck: 'false', required: true, 'aria-describedby': 'key-hint' });
  const problem = h('p.note.bad', { role: 'alert', hidden: true });
  const refuse = (text) => {
    problem.textContent = text;
    problem.hidden = false;
    input.setAttribute('aria-invalid', 'true');
    input.select();
  };
  const form = h('form.card', {
    submit: async (e) => {
      e.preventDefault();
      setKey(input.value.trim());
      try {
        await call('/v1/models', { quiet: true });
      } catch (e) {
        setKey('');
        refuse(e instanceof Failure ? e.message : 'The server cannot be reached.');
        return;
      }
      show();
    },
  }, h('h1', {}, 'This server wants a key'),
    h('div.field', {}, h('label', { for: 'key' }, 'API key'), input, h('p.hint', { id: 'key-hint' }, 'One that the server was started with (--api-key), or that its operator gave you. It stays in this tab, and is forgotten when the tab is closed.')),
    problem, h('button.button.primary', { type: 'submit' }, 'Continue'));
  main.replaceChildren(h('div.gate', {}, form));
  if (currentKey()) {
    setKey('');
    refuse(error.message);
  }
  input.focus();
}
onKeyWanted(askKey);

nav.append(...views.map((v) => h('a.nav-item', { href: '#/' + v.name, 'data-view': v.name }, icon(v.name), h('span', {}, v.label))));
chat.mountSide(document.getElementById('side-more'));
addEventListener('hashchange', show);
show();
