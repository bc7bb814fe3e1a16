// Forms that zod schemas ask for, through the OpenAI TypeScript SDK and the Vercel AI SDK, against the demo model itself at
// temperature 1: each reply parses. Run by `make interop`; HEARTH_BIN names the binary.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateObject } from 'ai';
import OpenAI from 'openai';
import { zodFunction, zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';

const PROMPT = 'Make one up.';
const short = z.string().max(12); // the demo goes in circles at this temperature
const address = z.object({ street: short, zip: short.nullable() });
const cat = z.object({ type: z.literal('cat'), lives: z.number().int().min(1).max(9) });
const dog = z.object({ type: z.literal('dog'), name: z.enum(['Rex', 'Fido']) });

const forms = {
  person: z.object({
    name: short.describe('the full one'), age: z.number().int().min(0).max(150), level: z.union([z.literal('low'), z.literal(3)]), home: address,
    friends: z.array(address).max(2), married: z.boolean(),
  }),
  pets: z.object({ first: z.discriminatedUnion('type', [cat, dog]), more: z.array(z.union([cat, dog, z.boolean()])).min(1).max(3) }),
  values: z.object({ day: z.iso.date(), at: z.iso.datetime(), id: z.uuid(), mail: z.email().max(30), ratio: z.number().gt(0).lt(1), code: z.string().regex(/^[A-Z]{2}-\d{3}$/) }),
  chain: z.object({ value: z.literal([1, 2, 3]), get next() { return z.union([forms.chain, z.null()]); } }),
};
// More than these the demo's context has no room for.
const wide = z.object(Object.fromEntries(Array.from({ length: 200 }, (_, n) => ['f' + n, [z.boolean(), z.boolean(), z.literal([1, 2])][n % 3]])));

describe('zod', () => {
  let server, client, url;
  before(async () => {
    server = spawn(process.env.HEARTH_BIN, ['serve', '--port', '0', '--log-level', 'warn', '--store', 'memory', '--temperature', '1', '--thinking-token-budget', '24'],
      { stdio: ['ignore', 'pipe', 'inherit'] });
    for await (const line of createInterface({ input: server.stdout })) {
      if (line.startsWith('listening on ')) {
        url = line.split(' ')[2] + '/v1';
        break;
      }
    }
    client = new OpenAI({ baseURL: url, apiKey: 'any', maxRetries: 0 });
  });
  after(() => server.kill('SIGINT'));

  const ask = (more) => ({ model: 'demo', messages: [{ role: 'user', content: PROMPT }], ...more });
  // every asks some times, all at once; what comes must be of the schema.
  async function every(schema, times, once) {
    for (const got of await Promise.all(Array.from({ length: times }, once))) schema.parse(got);
  }

  for (const [name, schema] of Object.entries({ ...forms, wide })) {
    const times = schema === wide ? 2 : 10;
    test('Chat Completions: ' + name, () =>
      every(schema, times, async () => (await client.chat.completions.parse(ask({ response_format: zodResponseFormat(schema, name) }))).choices[0].message.parsed));

    test('Responses: ' + name, () =>
      every(schema, times / 2, async () => (await client.responses.parse({ model: 'demo', input: PROMPT, text: { format: zodTextFormat(schema, name) } })).output_parsed));
  }

  test('streams', () => every(forms.person, 4, async () => {
    const c = await client.chat.completions.stream(ask({ response_format: zodResponseFormat(forms.person, 'person') })).finalChatCompletion();
    return c.choices[0].message.parsed;
  }));

  test('tools', () => every(z.array(dog).min(1), 10, async () => {
    const c = await client.chat.completions.parse(ask({ tools: [zodFunction({ name: 'dog', parameters: dog })], tool_choice: 'required' }));
    return c.choices[0].message.tool_calls.map((t) => t.function.parsed_arguments);
  }));

  test('AI SDK', () => every(forms.pets, 4, async () => {
    const model = createOpenAICompatible({ name: 'hearth', baseURL: url, supportsStructuredOutputs: true })('demo');
    return (await generateObject({ model, schema: forms.pets, prompt: PROMPT, maxRetries: 0 })).object;
  }));
});
