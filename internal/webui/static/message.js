// One message as it is shown. Texts of people are text; texts of models are Markdown.
import { h, icon, button, copyButton, count, seconds } from './dom.js';
import { Writer } from './markdown.js';
import { answering } from './answers.js';

/** statistics are the figures of an answer, each with what it means. */
function statistics(s) {
  const of = s.prompt ? ' of ' + count(s.prompt) : '';
  return [
    s.rate ? [s.rate.toLocaleString('en') + ' tok/s', 'Tokens per second, from the first to the last'] : null,
    s.first >= 0 ? [seconds(s.first / 1000) + ' to the first token', 'From the question until the first token of the answer came'] : null,
    [count(s.cached) + of + ' cached', 'Tokens of the prompt that had been computed before'],
    s.output ? [count(s.output) + ' tokens', 'Tokens of the answer, those of its thinking included'] : null,
  ].filter(Boolean).map(([text, title]) => h('span', { title }, text)).concat(s.id ? h('a', { href: '#/live/' + encodeURIComponent(s.id) }, 'Where its time went') : []);
}

/** Shown is a message in the page. does has what its buttons do. */
export class Shown {
  constructor(message, does, siblings) {
    this.message = message;
    this.does = does;
    this.siblings = siblings; // numbers of the branches at this place, this one included
    this.root = h('article.message.' + message.role, { 'aria-label': message.role === 'user' ? 'You' : 'Answer' });
    this.fill();
  }

  fill() {
    const m = this.message;
    this.root.replaceChildren();
    this.calls = new Map();
    if (m.role === 'user') this.fillUser();
    else this.fillAnswer();
  }

  fillUser() {
    const m = this.message;
    const bubble = h('div.bubble', {}, m.text);
    if (m.images.length) this.root.append(h('div.pictures', {}, ...m.images.map((i) => h('img', { src: i.url, alt: i.name || 'Picture', title: i.name }))));
    if (m.text) this.root.append(bubble);
    this.root.append(h('div.actions', {}, this.branches(), copyButton(() => m.text, true), button('Edit', 'edit', () => this.edit(), 'button', true)));
  }

  edit() {
    const m = this.message;
    const area = h('textarea.input', { 'aria-label': 'Your message', rows: Math.min(12, m.text.split('\n').length + 1), required: !m.images.length });
    area.value = m.text;
    const form = h('form.edit', {
      submit: (e) => {
        e.preventDefault();
        this.fill();
        this.does.resend(m, area.value);
      },
      keydown: (e) => {
        if (e.key === 'Escape') this.fill();
        if (e.key === 'Enter' && !e.shiftKey && !e.isComposing && e.target === area) {
          e.preventDefault();
          form.requestSubmit();
        }
      },
    }, area, h('div.row', {}, h('button.button.primary.tiny', { type: 'submit' }, 'Send'), button('Cancel', null, () => this.fill(), 'button tiny'),
      h('span.hint', {}, 'Enter sends. The old text stays as a branch of its own.')));
    this.root.replaceChildren(form);
    area.focus();
  }

  fillAnswer() {
    const m = this.message;
    this.thought = null;
    this.body = h('div.prose');
    this.cards = h('div.cards');
    this.foot = h('div.foot');
    this.root.append(this.body, this.cards, this.foot);
    this.answer = answering(m);
    this.writer = new Writer(this.body);
    this.late = m.text;
    if (m.reasoning) this.think(m.reasoning);
    for (const at of m.calls.keys()) this.call(at);
    if (!this.answer) {
      this.body.textContent = m.text; // until it is near what is looked at
      this.body.classList.add('raw');
      this.end();
      return;
    }
    this.draw();
    this.root.setAttribute('aria-busy', 'true');
    this.waitingDots = h('p.waiting', {}, h('span.unseen', {}, 'Waiting for the first token'), h('i'), h('i'), h('i'), h('span.small'));
    if (!m.text) this.body.append(this.waitingDots);
    this.more = (e) => this.take(e.detail);
    this.answer.addEventListener('more', this.more);
    this.answer.addEventListener('end', () => this.close(), { once: true });
  }

  /** draw makes Markdown of a text that has stood as it is; it is called when the message comes near. */
  draw() {
    if (this.late === null || this.message.role === 'user') return;
    const text = this.late;
    this.late = null;
    this.body.replaceChildren();
    this.body.classList.remove('raw');
    this.writer.push(text);
    if (!this.answer) this.writer.end();
  }

  take({ kind, text }) {
    if (kind === 'waits') {
      this.waitingDots.lastChild.textContent = text;
      return;
    }
    this.waitingDots?.remove();
    if (kind === 'text') {
      this.thought?.removeAttribute('data-busy');
      this.pending = (this.pending ?? '') + text;
    } else if (kind === 'reasoning') this.thinking = (this.thinking ?? '') + text;
    else this.called = (this.called ?? new Set()).add(text);
    this.frame ??= requestAnimationFrame(() => this.flush());
  }

  /** flush shows what has come since the last picture. */
  flush() {
    cancelAnimationFrame(this.frame);
    this.frame = null;
    if (this.thinking) this.think(this.thinking, true);
    if (this.pending) this.writer.push(this.pending);
    for (const at of this.called ?? []) this.call(at);
    this.thinking = this.pending = '';
    this.called = null;
  }

  close() {
    this.answer.removeEventListener('more', this.more);
    this.flush();
    this.answer = null;
    this.waitingDots?.remove();
    this.writer.end();
    this.end();
  }

  think(text, busy) {
    if (!this.thought) {
      this.thoughts = document.createTextNode('');
      this.thought = h('details.thought', {}, h('summary', {}, icon('thought'), h('span', {}, 'Thinking')), h('div.thoughts', {}, this.thoughts));
      this.root.prepend(this.thought);
    }
    if (busy) this.thought.setAttribute('data-busy', '');
    this.thoughts.appendData(text);
  }

  /** call shows a call of a tool, or what is new in it. */
  call(at) {
    const c = this.message.calls[at];
    let shown = this.calls.get(at);
    if (!shown) {
      shown = { name: h('span.mono'), text: h('pre', { tabindex: 0, role: 'region', 'aria-label': 'Arguments' }), result: h('div.result') };
      this.calls.set(at, shown);
      this.cards.append(h('section.card.call', { 'aria-label': 'Tool call' }, h('div.call-head', {}, icon('tool'), shown.name, h('span.grow'), copyButton(() => c.arguments)), shown.text, shown.result));
    }
    shown.name.textContent = c.name;
    shown.text.textContent = this.answer ? c.arguments : pretty(c.arguments);
  }

  /** results has a place for what each call gives. */
  results() {
    const m = this.message;
    for (const [at, shown] of this.calls) {
      const c = m.calls[at];
      shown.text.textContent = pretty(c.arguments);
      if (typeof c.result === 'string') {
        shown.result.replaceChildren(h('p.label', {}, 'Result'), h('pre', { tabindex: 0, role: 'region', 'aria-label': 'Result' }, c.result));
        continue;
      }
      const id = 'result-' + m.of + '-' + m.n + '-' + at;
      const area = h('textarea.input', { id, rows: 2, placeholder: 'What the tool gives' });
      shown.result.replaceChildren(h('div.field', {}, h('label', { for: id }, 'Result'), area), button('Send the result', null, () => this.does.result(m, at, area.value), 'button tiny'));
    }
  }

  end() {
    const m = this.message;
    this.root.removeAttribute('aria-busy');
    this.thought?.removeAttribute('data-busy');
    this.results();
    const note = outcome(m);
    this.foot.replaceChildren();
    if (note) this.foot.append(h('div.note' + (m.state === 'failed' || m.error ? '.bad' : ''), { role: m.state === 'failed' ? 'alert' : null }, h('span', {}, note),
      m.state !== 'failed' && m.text ? button('Continue', 'right', () => this.does.goOn(m), 'button tiny') : button('Try again', 'retry', () => this.does.again(m), 'button tiny')));
    if (m.stats) this.foot.append(h('div.stats', {}, ...statistics(m.stats)));
    this.foot.append(h('div.actions', {}, this.branches(), copyButton(() => m.text, true), button('Answer anew', 'retry', () => this.does.again(m), 'button', true),
      button('Branch into a new conversation', 'branch', () => this.does.fork(m), 'button', true)));
  }

  /** branches leads to what else was said or answered at this place. */
  branches() {
    const all = this.siblings, at = all.indexOf(this.message.n);
    const go = (label, picture, to) => {
      const b = button(label, picture, () => this.does.branch(all[to]), 'button', true);
      b.disabled = to < 0 || to >= all.length;
      return b;
    };
    this.switch = h('span.branches', { hidden: all.length < 2 }, go('The branch before', 'left', at - 1), h('span', {}, (at + 1) + '/' + all.length), go('The branch after', 'right', at + 1));
    return this.switch;
  }

  /** beside says what else is at this place now. */
  beside(siblings) {
    if (siblings.length === this.siblings.length) return;
    this.siblings = siblings;
    this.switch?.replaceWith(this.branches());
  }
}

/** outcome says how an answer has ended, where that is not as it should. */
function outcome(m) {
  switch (m.state) {
    case 'failed': return m.error || 'The answer did not come.';
    case 'cut': return m.error ? 'The answer was cut: ' + m.error : 'The answer was cut when the page was left or the server went away.';
    case 'stopped': return 'Stopped.';
    case 'done': return { length: 'The answer has as many tokens as it may have.', content_filter: 'The model would not answer.' }[m.finish] ?? '';
    case 'writing': return 'This answer is being written in another tab.';
    default: return '';
  }
}

function pretty(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
