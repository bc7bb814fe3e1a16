// The Anthropic TypeScript SDK against hearth with ../scripted.jsonl in the model's place. Run by `make interop`, which
// copies it to where the SDK is installed; HEARTH_BIN names the binary, SCRIPT the script.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';

const SCHEMA = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const TOOL = { name: 'get_weather', description: 'The weather in a city.', input_schema: SCHEMA };

let server, client;

before(async () => {
  server = spawn(process.env.HEARTH_BIN, ['serve', '--port', '0', '--log-level', 'warn', '--script', process.env.SCRIPT], { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: server.stdout })) {
    if (line.startsWith('listening on ')) {
      client = new Anthropic({ baseURL: line.split(' ')[2], apiKey: 'any' });
      break;
    }
  }
});

after(() => server.kill('SIGINT'));

const ask = (text, more) => ({ model: 'demo', max_tokens: 500, messages: [{ role: 'user', content: text }], ...more });

// both returns the reply created and streamed, which must be the same but for its ids.
async function both(request) {
  const plain = await client.messages.create(request);
  const streamed = await client.messages.stream(request).finalMessage();
  const content = (m) => m.content.map(({ id, ...block }) => block);
  assert.deepEqual(content(plain), content(streamed));
  assert.deepEqual([plain.stop_reason, plain.stop_sequence, plain.usage.output_tokens], [streamed.stop_reason, streamed.stop_sequence, streamed.usage.output_tokens]);
  return plain;
}

test('text', async () => {
  const m = await both(ask('Hi'));
  assert.deepEqual([m.content[0].text, m.stop_reason], ['Hello, wörld', 'end_turn']);
});

test('thinking', async () => {
  const m = await both(ask('think', { thinking: { type: 'enabled', budget_tokens: 1024 } }));
  assert.deepEqual(m.content.map((b) => b.thinking ?? b.text), ['Hmm.', 'Yes.']);
});

test('stop sequence', async () => {
  const m = await both(ask('count to four', { stop_sequences: ['STOP'] }));
  assert.deepEqual([m.content[0].text, m.stop_reason, m.stop_sequence], ['one two three ', 'stop_sequence', 'STOP']);
});

test('tool loop', async () => {
  const messages = [{ role: 'user', content: 'Weather in Paris and Rome?' }];
  let m = await both({ ...ask(''), messages, tools: [TOOL] });
  assert.equal(m.stop_reason, 'tool_use');
  const calls = m.content.slice(1);
  assert.deepEqual(calls.map((c) => c.input), [{ city: 'Paris' }, { city: 'Rome' }]);
  messages.push({ role: 'assistant', content: m.content });
  messages.push({ role: 'user', content: calls.map((c) => ({ type: 'tool_result', tool_use_id: c.id, content: 'sunny' })) });
  m = await both({ ...ask(''), messages, tools: [TOOL] });
  assert.equal(m.content[0].text, 'They say: sunny\nsunny');
});

test('tool runner', async () => {
  const run = ({ city }) => 'rain in ' + city;
  const last = await client.beta.messages.toolRunner(ask('Weather?', { tools: [{ ...TOOL, run, parse: (input) => input }] }));
  assert.equal(last.content[0].text, 'They say: rain in Paris\nrain in Rome');
});

test('count is what a reply reports', async () => {
  for (const more of [{}, { tools: [TOOL], system: 'Be brief.' }]) {
    const { max_tokens, ...count } = ask('Hi there', more);
    const { usage } = await client.messages.create(ask('Hi there', more));
    const used = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens;
    assert.equal((await client.messages.countTokens(count)).input_tokens, used);
  }
});

test('models', async () => {
  const ids = async (query) => {
    const all = [];
    for await (const m of client.models.list(query)) all.push(m.id);
    return all;
  };
  assert.deepEqual(await ids({ limit: 1 }), ['demo']);
  assert.deepEqual(await ids({ after_id: 'no-such-model' }), []);
  assert.equal((await client.models.retrieve('demo')).type, 'model');
  await assert.rejects(client.models.retrieve('no-such-model'), Anthropic.NotFoundError);
});

test('retries', async () => {
  for (const what of ['overloaded', 'limited', 'cut']) {
    const m = await client.messages.create(ask('retry ' + what));
    assert.equal(m.content[0].text, 'Hello, wörld');
  }
});

test('errors', async () => {
  const once = client.withOptions({ maxRetries: 0 });
  await assert.rejects(once.messages.create(ask('always overloaded')), (e) => e.status === 529 && e.error.error.type === 'overloaded_error');
  await assert.rejects(once.messages.create({ ...ask(''), messages: [{ role: 'user', content: [{ type: 'hologram' }] }] }),
    (e) => e instanceof Anthropic.BadRequestError && e.error.error.message.startsWith('messages.0.content.0.type: ') && e.requestID.startsWith('req_'));
  for (const what of ['break off', 'hang up']) {
    await assert.rejects(client.messages.stream(ask(what)).finalMessage());
  }
});
