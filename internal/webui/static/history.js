// The last hour, second by second, as the server counts it, and the means that a chart of some minutes is made of.
import { getJSON } from './api.js';

const most = 3600; // seconds that are kept

/** History has columns of one length: the entry i is of the second first + i. The second that still runs is not in them. */
export class History {
  constructor() {
    this.forget();
  }

  forget() {
    this.first = this.end = 0; // the second after the last
    this.columns = {};
  }

  /** ask takes over what has happened since it was asked before. */
  async ask(options) {
    const reply = await getJSON('/v1/status/history' + (this.end ? '?since=' + (this.end - 1) : ''), options);
    const { hits = {}, ...plain } = reply.columns;
    for (const [kind, list] of Object.entries(hits)) plain['hits.' + kind] = list;
    if (reply.first !== this.end) { // the first time, or after a break
      this.columns = {};
      this.first = reply.first;
    }
    const whole = Math.max(0, reply.now - reply.first);
    for (const [name, list] of Object.entries(plain)) (this.columns[name] ??= []).push(...list.slice(0, whole));
    this.end = reply.first + whole;
    const old = this.end - this.first - most;
    if (old > 0) {
      for (const list of Object.values(this.columns)) list.splice(0, old);
      this.first += old;
    }
  }

  /** mean is that of a column over its last seconds. */
  mean(name, over) {
    const some = (this.columns[name] ?? []).slice(-over);
    return some.length ? some.reduce((sum, v) => sum + v, 0) / some.length : 0;
  }

  /**
   * steps are the means of columns over the last span seconds, or their sums, in steps of some seconds that begin where the clock
   * has a multiple of them: so a step that is over does not change any more. Before the first second known there is nothing: NaN.
   */
  steps(names, span, step, sums = false) {
    const last = Math.floor((this.end - 1) / step) * step, began = last - span + step;
    const at = Array.from({ length: span / step }, (_, i) => began + i * step);
    const columns = names.map((name) => {
      const list = this.columns[name] ?? [];
      return at.map((t) => {
        let sum = 0, n = 0;
        for (let i = Math.max(0, t - this.first); i < Math.min(list.length, t + step - this.first); i++, n++) sum += list[i];
        return n ? sum / (sums ? 1 : n) : NaN;
      });
    });
    return { at, columns, step, end: this.end };
  }
}
