// Embeddings through the OpenAI TypeScript SDK, its Azure client and the Vercel AI SDK. Run by `make interop`; HEARTH_BIN
// names the binary, ENCODER the folder of a tiny bert that ../python/encoder.py makes.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { basename } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { embed, embedMany } from 'ai';
import OpenAI, { AzureOpenAI } from 'openai';

const model = basename(process.env.ENCODER);
const length = (v) => Math.hypot(...v);

describe('embeddings', () => {
  let server, url;
  before(async () => {
    server = spawn(process.env.HEARTH_BIN, ['serve', '--port', '0', '--log-level', 'warn', '--embedding-model', process.env.ENCODER], { stdio: ['ignore', 'pipe', 'inherit'] });
    for await (const line of createInterface({ input: server.stdout })) {
      if (line.startsWith('listening on ')) {
        url = line.split(' ')[2];
        break;
      }
    }
  });
  after(() => server.kill('SIGINT'));

  const clients = {
    OpenAI: () => new OpenAI({ baseURL: url + '/v1', apiKey: 'any' }),
    AzureOpenAI: () => new AzureOpenAI({ endpoint: url, apiVersion: '2024-10-21', apiKey: 'any' }),
  };
  for (const [name, connect] of Object.entries(clients)) {
    test(name, async () => {
      const client = connect();
      const texts = await client.embeddings.create({ model, input: ['a b', 'hello'] }); // base64, decoded by the SDK
      assert.deepEqual([texts.data.length, texts.model, texts.usage.prompt_tokens], [2, model, 11]);
      for (const d of texts.data) assert.ok(d.embedding.length === 32 && Math.abs(length(d.embedding) - 1) < 1e-5);
      const ids = await client.embeddings.create({ model, input: [[2, 4, 6, 3]], encoding_format: 'float', dimensions: 8 });
      assert.ok(ids.data[0].embedding.length === 8 && Math.abs(length(ids.data[0].embedding) - 1) < 1e-5);
      await assert.rejects(client.embeddings.create({ model, input: '' }), (e) => e.status === 400 && e.param === 'input');
    });
  }

  test('AI SDK', async () => {
    const provider = createOpenAICompatible({ name: 'hearth', baseURL: url + '/v1', apiKey: 'any' });
    const one = await embed({ model: provider.embeddingModel(model), value: 'hello' });
    const many = await embedMany({ model: provider.embeddingModel(model), values: ['a b', 'hello'] });
    assert.equal(one.usage.tokens, 7);
    assert.deepEqual(many.embeddings[1], one.embedding);
  });
});
