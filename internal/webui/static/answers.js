// Answers that are being written. They go on while another conversation, or another view, is looked at.
import { call, events, getJSON, words, Failure } from './api.js';
import { keep } from './store.js';

const often = 1000; // milliseconds between two looks at what an answer waits for

const running = new Map(); // by conversation and number

const keyOf = (m) => m.of + '/' + m.n;

/** answering is the answer that is being written into a message; undefined: none is. */
export const answering = (m) => running.get(keyOf(m));

export const anyAnswering = (of) => [...running.values()].find((a) => a.message.of === of);

/** Answer asks the server for what belongs into a message, and keeps it as it comes. */
export class Answer extends EventTarget {
  constructor(meta, message, body) {
    super();
    Object.assign(this, { meta, message, body, controller: new AbortController(), id: '', saved: 0, savedAt: 0 });
    message.state = 'writing';
    running.set(keyOf(message), this);
    this.ended = this.run();
  }

  stop() {
    this.message.state = 'stopped';
    this.controller.abort();
  }

  tell(kind, text) {
    this.dispatchEvent(new CustomEvent('more', { detail: { kind, text } }));
  }

  async run() {
    const m = this.message;
    const asked = performance.now();
    let first = 0, last = 0, usage = null, ended = false;
    const watch = setInterval(() => this.look(), often);
    try {
      await keep(this.meta, [m]);
      const response = await call('/v1/chat/completions', { body: { ...this.body, stream: true, stream_options: { include_usage: true } }, signal: this.controller.signal });
      this.id = response.headers.get('x-request-id') ?? '';
      for await (const { data } of events(response)) {
        if (data === '[DONE]') {
          ended = true;
          break;
        }
        const event = JSON.parse(data);
        if (event.error) throw new Failure(0, String(event.error.message ?? 'The answer broke off.'), '');
        if (event.usage) usage = event.usage;
        const choice = event.choices?.[0];
        if (!choice) continue;
        const took = this.take(choice.delta ?? {});
        if (took) {
          last = performance.now();
          first ||= last;
          clearInterval(watch);
        }
        if (choice.finish_reason) m.finish = String(choice.finish_reason);
        this.keepSometimes();
      }
      m.state = ended ? 'done' : 'cut';
    } catch (e) {
      if (m.state !== 'stopped') {
        m.state = m.text || m.reasoning || m.calls.length ? 'cut' : 'failed';
        m.error = words(e);
      }
    }
    clearInterval(watch);
    const output = usage?.completion_tokens ?? 0;
    if (first) {
      m.stats = {
        id: this.id, first: Math.round(first - asked), prompt: usage?.prompt_tokens ?? 0, cached: usage?.prompt_tokens_details?.cached_tokens ?? 0, output,
        rate: output > 1 && last - first > 50 ? Math.round((output - 1) / (last - first) * 10000) / 10 : 0,
      };
    }
    running.delete(keyOf(m));
    try {
      await keep(this.meta, [m]);
    } catch (e) {
      m.error ||= words(e);
    }
    this.dispatchEvent(new Event('end'));
  }

  /** look asks what the answer waits for, as long as nothing of it has come. */
  async look() {
    if (document.hidden) return;
    const options = { quiet: true, signal: this.controller.signal };
    let text = '';
    try {
      const r = (await getJSON('/v1/status', options)).requests?.find((x) => x.request_id === this.id);
      if (r) text = { queued: 'Waiting for other requests', prefill: 'Reading the prompt, ' + Math.round(r.progress * 100) + ' %' }[r.phase] ?? '';
      else if ((await getJSON('/v1/models', options)).data.find((x) => x.id === this.body.model)?.state === 'loading') text = 'Loading the model';
    } catch { /* the answer itself says so */ }
    this.tell('waits', text);
  }

  /** take adds a piece to the message. */
  take(delta) {
    const m = this.message;
    let took = false;
    const thought = delta.reasoning_content ?? delta.reasoning;
    if (typeof thought === 'string' && thought) {
      m.reasoning += thought;
      this.tell('reasoning', thought);
      took = true;
    }
    if (typeof delta.content === 'string' && delta.content) {
      m.text += delta.content;
      this.tell('text', delta.content);
      took = true;
    }
    for (const c of delta.tool_calls ?? []) {
      const at = Number(c.index) || 0;
      const is = m.calls[at] ??= { id: '', name: '', arguments: '' };
      is.id ||= String(c.id ?? '');
      is.name += String(c.function?.name ?? '');
      is.arguments += String(c.function?.arguments ?? '');
      this.tell('call', at);
      took = true;
    }
    return took;
  }

  /** keepSometimes writes what there is, each time that it has grown by a tenth: so all of it costs no more than some times its length. */
  keepSometimes() {
    const m = this.message, now = performance.now(), size = m.text.length + m.reasoning.length;
    if (now - this.savedAt < 300 || size < this.saved * 1.1) return;
    this.saved = size;
    this.savedAt = now;
    keep(this.meta, [m]).catch(() => {}); // the end says so
  }
}

// A tab that is left has no time for a database: what has come is put where writing waits for nothing, and found there by rescued.
const slot = 'hearth.unsaved';
addEventListener('pagehide', () => {
  const left = [...running.values()].map(({ message: m }) => ({ of: m.of, n: m.n, text: m.text, reasoning: m.reasoning }));
  try {
    if (left.length) sessionStorage.setItem(slot, JSON.stringify(left));
  } catch { /* no room, or storage is off: what was kept before counts */ }
});

/** rescued is what was left of a message when this tab was reloaded, or nothing. */
export function rescued(m) {
  try {
    const found = JSON.parse(sessionStorage.getItem(slot) ?? '[]').find((x) => x.of === m.of && x.n === m.n);
    return found && { text: String(found.text), reasoning: String(found.reasoning) };
  } catch {
    return null;
  }
}
