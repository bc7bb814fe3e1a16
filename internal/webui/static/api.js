// Calls of the server that this page came from, with the key that this tab was given. The key is in the tab's own storage: it is
// gone with the tab, and no other origin, and no other tab, has it.

const slot = 'hearth.key';
let key = '';
try {
  key = sessionStorage.getItem(slot) ?? '';
} catch { /* storage is off: the key lasts until the page is left */ }

/** wanted is called when the server asks for a key, or refuses the one there is. */
let wanted = () => {};
export const onKeyWanted = (f) => { wanted = f; };

export const currentKey = () => key;

export function setKey(text) {
  key = text;
  try {
    if (text) sessionStorage.setItem(slot, text);
    else sessionStorage.removeItem(slot);
  } catch { /* as above */ }
}

/** Failure is a reply that is an error: its status, what it says, and the id by which the server's log has it. */
export class Failure extends Error {
  constructor(status, message, id) {
    super(message);
    this.status = status;
    this.id = id;
  }
}

/** failure reads an error out of a reply, whatever it is made of. */
async function failure(response) {
  let text = '';
  try {
    text = await response.text();
  } catch { /* cut: the status is all there is */ }
  let message = text.slice(0, 2000);
  try {
    const body = JSON.parse(text);
    message = String(body.error?.message ?? body.message ?? message);
  } catch { /* not JSON */ }
  return new Failure(response.status, message || 'The server answered with status ' + response.status + '.', response.headers.get('x-request-id') ?? '');
}

/** call sends a request; body, if there is one, as JSON. It throws a Failure for an error, and what fetch throws where nothing came. */
export async function call(path, { method, body, signal, quiet } = {}) {
  const headers = {};
  if (key) headers.authorization = 'Bearer ' + key;
  if (body !== undefined) headers['content-type'] = 'application/json';
  const response = await fetch(path, { method: method ?? (body === undefined ? 'GET' : 'POST'), headers, signal, body: body === undefined ? undefined : JSON.stringify(body), credentials: 'same-origin', cache: 'no-store' });
  if (response.ok) return response;
  const error = await failure(response);
  if (response.status === 401 && !quiet) wanted(error);
  throw error;
}

export const getJSON = async (path, options) => (await call(path, options)).json();

/** manage calls a route that wants the token of the server beside, which this page has as a cookie. A server that was started anew has another one, and gives it with the page. */
export async function manage(path, options = {}) {
  try {
    return await call(path, { ...options, quiet: true });
  } catch (e) {
    if (!(e instanceof Failure) || e.status !== 401 || key) throw e;
  }
  await fetch('/', { headers: { accept: 'text/html' }, cache: 'no-store' });
  return call(path, { ...options, quiet: true });
}

/** events reads a stream of server-sent events, one {event, data} after the other. */
export async function* events(response) {
  let rest = '', event = '', data = [];
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split('\n');
      rest = lines.pop();
      for (let line of lines) {
        if (line.endsWith('\r')) line = line.slice(0, -1);
        if (line === '') {
          if (data.length) yield { event: event || 'message', data: data.join('\n') };
          event = '';
          data = [];
        } else if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5));
        else if (line.startsWith('event:')) event = line.slice(6).trim();
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** words is an error as a person reads it. */
export function words(e) {
  if (e instanceof Failure) return e.message;
  if (e instanceof TypeError) return 'The server cannot be reached. Is it still running?';
  return String(e?.message ?? e);
}
