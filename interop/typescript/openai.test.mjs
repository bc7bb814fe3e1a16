// The OpenAI TypeScript SDK, its Azure client and the Vercel AI SDK against hearth with ../scripted.jsonl in the model's
// place. Run by `make interop`, which copies it to where the SDKs are installed; HEARTH_BIN names the binary, SCRIPT the
// script.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateObject, generateText, isStepCount, jsonSchema, streamText, tool } from 'ai';
import OpenAI, { AzureOpenAI } from 'openai';
import { ResponsesWS } from 'openai/resources/responses/ws';

const SCHEMA = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const TOOL = { type: 'function', function: { name: 'get_weather', description: 'The weather in a city.', parameters: SCHEMA } };

// start runs a server of its own for a suite: what the script says a number of times begins anew.
async function start() {
  const server = spawn(process.env.HEARTH_BIN, ['serve', '--port', '0', '--log-level', 'warn', '--store', 'memory', '--script', process.env.SCRIPT], { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: server.stdout })) {
    if (line.startsWith('listening on ')) return { server, url: line.split(' ')[2] };
  }
}

const clients = {
  OpenAI: (url) => new OpenAI({ baseURL: url + '/v1', apiKey: 'any' }),
  AzureOpenAI: (url) => new AzureOpenAI({ endpoint: url, apiVersion: '2024-10-21', apiKey: 'any' }),
};
for (const [name, connect] of Object.entries(clients)) {
  describe(name, () => {
    let server, client;
    before(async () => {
      const started = await start();
      server = started.server;
      client = connect(started.url);
    });
    after(() => server.kill('SIGINT'));

    const ask = (text, more) => ({ model: 'demo', messages: [{ role: 'user', content: text }], ...more });

    // both returns the completion created and streamed, which must be the same but for its ids.
    async function both(request) {
      const plain = await client.chat.completions.create(request);
      const streamed = await client.chat.completions.stream(request).finalChatCompletion();
      const content = (c) => c.choices.map(({ message: m, finish_reason }) => [finish_reason, m.content ?? '', (m.tool_calls ?? []).map((t) => t.function)]);
      const parts = (c) => JSON.parse(JSON.stringify(content(c).map(([why, text, calls]) => [why, text, calls.map((f) => [f.name, f.arguments])])));
      assert.deepEqual(parts(plain), parts(streamed));
      return plain;
    }

    test('text', async () => {
      const c = await both(ask('Hi'));
      assert.deepEqual([c.choices[0].message.content, c.choices[0].finish_reason], ['Hello, wörld', 'stop']);
      assert.equal(c.usage.total_tokens, c.usage.prompt_tokens + c.usage.completion_tokens);
    });

    test('reasoning', async () => {
      const c = await both(ask('think'));
      assert.deepEqual([c.choices[0].message.reasoning_content, c.choices[0].message.content], ['Hmm.', 'Yes.']);
    });

    test('usage comes last', async () => {
      const chunks = [];
      for await (const c of await client.chat.completions.create(ask('Hi', { stream: true, stream_options: { include_usage: true } }))) chunks.push(c);
      assert.deepEqual(chunks[0].choices[0].delta, { role: 'assistant', content: '' });
      assert.deepEqual(chunks.at(-1).choices, []);
      assert.ok(chunks.at(-1).usage.completion_tokens > 0);
      assert.ok(chunks.slice(0, -1).every((c) => c.usage === null));
    });

    test('tool loop', async () => {
      const messages = [{ role: 'user', content: 'Weather in Paris and Rome?' }];
      let c = await both({ ...ask(''), messages, tools: [TOOL] });
      assert.equal(c.choices[0].finish_reason, 'tool_calls');
      const calls = c.choices[0].message.tool_calls;
      assert.deepEqual(calls.map((t) => JSON.parse(t.function.arguments)), [{ city: 'Paris' }, { city: 'Rome' }]);
      messages.push(c.choices[0].message);
      messages.push(...calls.map((t) => ({ role: 'tool', tool_call_id: t.id, content: 'sunny' })));
      c = await both({ ...ask(''), messages, tools: [TOOL] });
      assert.equal(c.choices[0].message.content, 'They say: sunny\nsunny');
    });

    test('tool runner', async () => {
      const run = ({ city }) => 'rain in ' + city;
      const runner = client.chat.completions.runTools(ask('Weather?', { tools: [{ ...TOOL, function: { ...TOOL.function, parse: JSON.parse, function: run } }] }));
      assert.equal(await runner.finalContent(), 'They say: rain in Paris\nrain in Rome');
    });

    test('JSON', async () => {
      const format = { type: 'json_schema', json_schema: { name: 'city', schema: SCHEMA } };
      for (const [text, header] of [['as JSON', 'checked'], ['Hi', 'unmet']]) {
        const { data, response } = await client.chat.completions.create(ask(text, { response_format: format })).withResponse();
        assert.equal(response.headers.get('x-hearth-schema'), header);
        if (header === 'checked') assert.equal(JSON.parse(data.choices[0].message.content).city, 'Paris');
      }
      format.json_schema.strict = true;
      const parsed = await client.chat.completions.parse(ask('as JSON', { response_format: format }));
      assert.equal(JSON.parse(parsed.choices[0].message.content).city, 'Paris');
    });

    test('completions', async () => {
      const request = { model: 'demo', prompt: ['Hi', 'count to four'], stop: 'STOP' };
      const plain = await client.completions.create(request);
      assert.deepEqual(plain.choices.map((c) => c.text), ['Hello, wörld', 'one two three ']);
      const texts = ['', ''];
      for await (const chunk of await client.completions.create({ ...request, stream: true })) {
        for (const c of chunk.choices) texts[c.index] += c.text;
      }
      assert.deepEqual(texts, plain.choices.map((c) => c.text));
    });

    test('models', async () => {
      const ids = [];
      for await (const m of client.models.list()) ids.push(m.id);
      assert.deepEqual(ids, ['demo']);
      assert.equal((await client.models.retrieve('demo')).object, 'model');
      await assert.rejects(client.models.retrieve('no-such-model'), OpenAI.NotFoundError);
    });

    test('retries', async () => {
      for (const what of ['overloaded', 'limited', 'cut']) {
        const c = await client.chat.completions.create(ask('retry ' + what));
        assert.equal(c.choices[0].message.content, 'Hello, wörld');
      }
    });

    test('responses', async () => {
      const tool = { type: 'function', name: 'get_weather', description: 'The weather in a city.', parameters: SCHEMA, strict: false };
      const request = { model: 'demo', input: 'Weather in Paris and Rome?', tools: [tool] };
      const plain = await client.responses.create(request);
      const types = [];
      const stream = client.responses.stream(request);
      for await (const e of stream) types.push(e.type);
      const streamed = await stream.finalResponse();
      assert.deepEqual([types[0], types.at(-1)], ['response.created', 'response.completed']);
      const calls = (r) => r.output.filter((i) => i.type === 'function_call').map((i) => [i.name, i.arguments]);
      assert.deepEqual(calls(streamed), calls(plain));
      const input = plain.output.filter((i) => i.type === 'function_call').map((i) => ({ type: 'function_call_output', call_id: i.call_id, output: 'sunny' }));
      const next = await client.responses.create({ model: 'demo', input, tools: [tool], previous_response_id: plain.id });
      assert.equal(next.output_text, 'They say: sunny\nsunny');
      assert.equal((await client.responses.retrieve(next.id)).output_text, next.output_text);
      const items = [];
      for await (const i of client.responses.inputItems.list(next.id, { limit: 2, order: 'asc' })) items.push(i.type);
      assert.deepEqual(items, ['message', 'message', 'function_call', 'function_call', 'function_call_output', 'function_call_output']);
      await client.responses.delete(next.id);
      for (const call of ['retrieve', 'delete', 'cancel']) {
        await assert.rejects(client.responses[call](next.id), OpenAI.NotFoundError);
      }
      await assert.rejects(client.responses.cancel(plain.id), OpenAI.BadRequestError);
    });

    test('responses on a WebSocket', async () => {
      const socket = new ResponsesWS(client);
      const events = socket.stream();
      const ask = async (fields) => {
        socket.send({ type: 'response.create', model: 'demo', store: false, ...fields });
        for (;;) {
          const { value: e } = await events.next();
          if (e.type === 'error') return e.error.error.error;
          if (e.message?.type === 'response.completed') return e.message.response;
        }
      };
      const warm = await ask({ generate: false, instructions: 'Be brief.' });
      const first = await ask({ input: 'Hi', previous_response_id: warm.id });
      const next = await ask({ input: 'Hi', previous_response_id: first.id, stream_id: 'a' });
      assert.deepEqual([warm.output, first.output[0].content[0].text, next.previous_response_id], [[], 'Hello, wörld', first.id]);
      assert.equal((await ask({ input: 'Hi', previous_response_id: 'resp_none' })).code, 'previous_response_not_found');
      socket.close();
    });

    test('conversations', async () => {
      const { conversations } = client;
      const c = await conversations.create({ metadata: { topic: 'tests' }, items: [{ role: 'user', content: 'Hello.' }] });
      assert.deepEqual(await conversations.retrieve(c.id), c);
      assert.deepEqual((await conversations.update(c.id, { metadata: { topic: 'more' } })).metadata, { topic: 'more' });
      const first = await client.responses.create({ model: 'demo', conversation: c.id, input: 'Hi' });
      assert.deepEqual([first.conversation, first.output_text], [{ id: c.id }, 'Hello, wörld']);
      const second = await client.responses.stream({ model: 'demo', conversation: { id: c.id }, input: 'Hi' }).finalResponse();
      const items = [];
      for await (const i of conversations.items.list(c.id, { limit: 2, order: 'asc' })) items.push(i.content[0].text);
      assert.deepEqual(items, ['Hello.', 'Hi', 'Hello, wörld', 'Hi', 'Hello, wörld']);
      const added = await conversations.items.create(c.id, { items: [{ role: 'user', content: 'More.' }] });
      const at = { conversation_id: c.id };
      assert.deepEqual(await conversations.items.retrieve(added.last_id, at), added.data[0]);
      assert.equal((await conversations.items.delete(added.last_id, at)).id, c.id);
      assert.equal((await conversations.delete(c.id)).deleted, true);
      assert.equal((await client.responses.retrieve(second.id)).conversation.id, c.id);
      await assert.rejects(conversations.retrieve(c.id), OpenAI.NotFoundError);
      await assert.rejects(client.responses.create({ model: 'demo', conversation: c.id, input: 'Hi' }), (e) => e.status === 404 && e.code === 'conversation_not_found');
    });

    test('compact', async () => {
      const first = await client.responses.create({ model: 'demo', input: 'Hi' });
      const window = await client.responses.compact({ model: 'demo', previous_response_id: first.id });
      assert.deepEqual([window.object, ...window.output.map((i) => i.type)], ['response.compaction', 'message', 'compaction']);
      const next = await client.responses.create({ model: 'demo', input: [...window.output, { role: 'user', content: 'Go on.' }] });
      assert.equal(next.output_text, 'It goes on.');
    });

    test('responses in the background', async () => {
      let r = await client.responses.create({ model: 'demo', input: 'Hi', background: true });
      assert.deepEqual([r.status, r.background], ['queued', true]);
      while (['queued', 'in_progress'].includes(r.status)) r = await client.responses.retrieve(r.id);
      assert.deepEqual([r.status, r.output_text], ['completed', 'Hello, wörld']);
      assert.equal((await client.responses.cancel(r.id)).status, 'completed');
      await assert.rejects(client.responses.retrieve(r.id, { stream: true }), OpenAI.BadRequestError);

      const events = [];
      for await (const e of await client.responses.create({ model: 'demo', input: 'slowly', background: true, stream: true })) {
        events.push(e);
        if (events.length === 6) break; // the connection goes with it
      }
      const { id } = events[0].response;
      for await (const e of await client.responses.retrieve(id, { stream: true, starting_after: events.at(-1).sequence_number })) events.push(e);
      assert.deepEqual(events.map((e) => e.sequence_number), events.map((_, n) => n));
      assert.deepEqual(events.slice(0, 3).map((e) => e.type), ['response.created', 'response.queued', 'response.in_progress']);
      assert.equal(events.filter((e) => e.type === 'response.output_text.delta').map((e) => e.delta).join(''), 'one two three four five six seven eight');
      assert.equal(events.at(-1).type, 'response.completed');
      assert.equal((await client.responses.stream({ response_id: id, starting_after: 4 }).finalResponse()).output_text, 'one two three four five six seven eight');

      const stream = await client.responses.create({ model: 'demo', input: 'never end', background: true, stream: true });
      let last;
      for await (const e of stream) {
        if (!last) for (const _ of [1, 2]) assert.equal((await client.responses.cancel(e.response.id)).status, 'cancelled');
        last = e;
      }
      assert.deepEqual([last.type, last.response.status], ['response.incomplete', 'cancelled']);
    });

    test('errors', async () => {
      const once = client.withOptions({ maxRetries: 0 });
      await assert.rejects(once.chat.completions.create(ask('always overloaded')), (e) => e.status === 503 && e.code === 'server_overloaded');
      await assert.rejects(once.chat.completions.create({ ...ask(''), messages: [{ role: 'user', content: [{ type: 'hologram' }] }] }),
        (e) => e instanceof OpenAI.BadRequestError && e.param === 'messages[0].content[0].type' && e.requestID.startsWith('req_'));
      await assert.rejects(once.embeddings.create({ model: 'demo', input: 'x' }), (e) => e.code === 'model_not_supported');
      for (const what of ['break off', 'hang up']) {
        await assert.rejects(client.chat.completions.stream(ask(what)).finalContent());
      }
    });
  });
}

const providers = {
  'AI SDK': (baseURL) => createOpenAICompatible({ name: 'hearth', baseURL })('demo'),
  'AI SDK, Responses': (baseURL) => createOpenAI({ baseURL, apiKey: 'any' }).responses('demo'),
};
// providerOptions say what the Responses provider does not know of a model that is not OpenAI's.
const providerOptions = { openai: { forceReasoning: true, reasoningSummary: 'auto', strictJsonSchema: false } };
for (const [name, provider] of Object.entries(providers)) {
  describe(name, () => {
    let server, model;
    before(async () => {
      const started = await start();
      server = started.server;
      model = provider(started.url + '/v1');
    });
    after(() => server.kill('SIGINT'));

    test('text', async () => {
      assert.equal((await generateText({ model, prompt: 'Hi' })).text, 'Hello, wörld');
      assert.equal(await streamText({ model, prompt: 'Hi' }).text, 'Hello, wörld');
    });

    test('reasoning', async () => {
      const r = await generateText({ model, prompt: 'think', providerOptions });
      assert.deepEqual([r.reasoningText, r.text], ['Hmm.', 'Yes.']);
      const messages = [{ role: 'user', content: 'think' }, ...r.response.messages, { role: 'user', content: 'Hi' }];
      assert.equal((await generateText({ model, messages, providerOptions })).text, 'Hello, wörld');
    });

    test('tool loop', async () => {
      const tools = { get_weather: tool({ inputSchema: jsonSchema(SCHEMA), execute: ({ city }) => 'rain in ' + city }) };
      const request = { model, tools, prompt: 'Weather?', stopWhen: isStepCount(3) };
      assert.match((await generateText(request)).text, /^They say: .*rain in Paris.*rain in Rome/s);
      assert.match(await streamText(request).text, /They say: .*rain in Paris.*rain in Rome/s);
    });

    test('object', async () => {
      const r = await generateObject({ model, schema: jsonSchema(SCHEMA), prompt: 'as JSON', providerOptions });
      assert.equal(r.object.city, 'Paris');
    });
  });
}
