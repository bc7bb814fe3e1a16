// What to type or to write so that other programs use this server. at has the address (url), the key, a model's id and its context
// in tokens, and sees, whether it takes pictures. Each client is its name, a word on it, the tokens of its own prompt where
// those are many, and blocks: what it is, in which language, and the text.

/** json is a text as JSON has it, and with it JavaScript, Python, Go, TOML and YAML. */
const json = (v) => JSON.stringify(v).replace(/[\x7f-\x9f\u2028\u2029]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
const pretty = (v) => JSON.stringify(v, null, 2);
/** sh is a word of a shell's. */
const sh = (s) => (/^[\w@%+:,./-]+$/.test(s) ? s : "'" + s.replaceAll("'", "'\\''") + "'");
/** exports sets variables in a shell, a line of them. */
const exports = (vars) => 'export ' + Object.entries(vars).map(([name, value]) => name + '=' + (value === '' ? '' : sh(String(value)))).join(' ');
/** inputs are what a model takes in, as OpenClaw, pi and opencode name it. */
const inputs = (at) => (at.sees ? ['text', 'image'] : ['text']);

const ask = 'Say hello.';
const room = (at) => Math.min(8192, Math.floor(at.context / 4));

/** claudeLimits is what Claude Code is told of the context, as internal/cli/launch_claude.go has it. */
const claudeLimits = (context) => {
  const part = (n) => Math.floor(context / n);
  if (context < 100000) {
    return { CLAUDE_CODE_MAX_CONTEXT_TOKENS: context + 13000, CLAUDE_CODE_AUTO_COMPACT_WINDOW: Math.max(context + 13000, 100000), CLAUDE_CODE_MAX_OUTPUT_TOKENS: part(8), CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS: part(8), MAX_MCP_OUTPUT_TOKENS: part(8), BASH_MAX_OUTPUT_LENGTH: part(4) };
  }
  return { CLAUDE_CODE_MAX_CONTEXT_TOKENS: context, CLAUDE_CODE_AUTO_COMPACT_WINDOW: context, ...(part(4) < 32000 && { CLAUDE_CODE_MAX_OUTPUT_TOKENS: part(4) }) };
};

export const clients = [
  {
    name: 'Claude Code', id: 'claude-code', prompt: 14000, about: 'On this machine hearth sets it up by itself. Elsewhere it is told by its environment.',
    blocks: (at) => [['On this machine', 'sh', 'hearth launch claude --model ' + sh(at.model)], ['Anywhere', 'sh', [
      exports({ ANTHROPIC_BASE_URL: at.url }),
      exports({ ANTHROPIC_AUTH_TOKEN: at.key, ANTHROPIC_API_KEY: '' }),
      ...['ANTHROPIC_MODEL', 'ANTHROPIC_DEFAULT_OPUS_MODEL', 'ANTHROPIC_DEFAULT_SONNET_MODEL', 'ANTHROPIC_DEFAULT_FABLE_MODEL', 'ANTHROPIC_DEFAULT_HAIKU_MODEL', 'ANTHROPIC_SMALL_FAST_MODEL', 'CLAUDE_CODE_SUBAGENT_MODEL'].map((name) => exports({ [name]: at.model })),
      exports({ CLAUDE_CODE_ATTRIBUTION_HEADER: 0, CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: 1, CLAUDE_CODE_DISABLE_1M_CONTEXT: 1 }),
      exports({ CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: 1, API_TIMEOUT_MS: 3600000 }),
      exports(claudeLimits(at.context)),
      'claude',
    ].join('\n')]],
  },
  {
    name: 'Codex', id: 'codex', prompt: 12000, about: 'On this machine hearth sets it up by itself. Elsewhere a provider of its own in the settings.',
    blocks: (at) => [['On this machine', 'sh', 'hearth launch codex --model ' + sh(at.model)], ['~/.codex/config.toml', 'toml', `model = ${json(at.model)}
review_model = ${json(at.model)}
model_provider = "hearth"
model_context_window = ${at.context}
model_auto_compact_token_limit = ${at.context - Math.min(16384, Math.floor(at.context / 4))}
web_search = "disabled"
check_for_update_on_startup = false

[model_providers.hearth]
name = "OpenAI"
base_url = ${json(at.url + '/v1')}
wire_api = "responses"
env_key = "CODEX_HEARTH_KEY"
stream_idle_timeout_ms = 3600000

[analytics]
enabled = false

[features]
plugins = false
apps = false
daemon_auto_start = false`], ['Then', 'sh', `CODEX_HEARTH_KEY=${sh(at.key)} codex`]],
  },
  {
    name: 'opencode', id: 'opencode', prompt: 5500, about: 'In a project or for all of them.',
    blocks: (at) => [['opencode.json, or ~/.config/opencode/opencode.json', 'json', pretty({
      model: 'hearth/' + at.model, small_model: 'hearth/' + at.model,
      provider: { hearth: { npm: '@ai-sdk/openai-compatible', name: 'hearth', options: { baseURL: at.url + '/v1', apiKey: at.key },
        models: { [at.model]: { limit: { context: at.context, output: room(at) }, ...(at.sees && { attachment: true, modalities: { input: inputs(at), output: ['text'] } }) } } } },
    })]],
  },
  {
    name: 'Qwen Code', id: 'qwen-code', prompt: 22000, about: 'A provider of its own, with the context and time for a long prompt; and no statistics to its maker.',
    blocks: (at) => [['~/.qwen/settings.json', 'json', pretty({
      env: { HEARTH_API_KEY: at.key, QWEN_STREAM_MAX_LIFETIME_MS: '0' },
      modelProviders: { openai: [{ id: at.model, name: at.model, envKey: 'HEARTH_API_KEY', baseUrl: at.url + '/v1', generationConfig: { contextWindowSize: at.context, timeout: 3600000, streamIdleTimeoutMs: 0, ...(at.sees && { modalities: { image: true } }) } }] },
      security: { auth: { selectedType: 'openai' } },
      model: { name: at.model },
      privacy: { usageStatisticsEnabled: false },
    })], ['Then', 'sh', 'qwen']],
  },
  {
    name: 'OpenClaw', id: 'openclaw', prompt: 28000, about: 'A provider beside those that it has. Its gateway takes the settings up by itself.',
    blocks: (at) => [['~/.openclaw/openclaw.json', 'json', pretty({
      gateway: { mode: 'local' },
      models: { mode: 'merge', providers: { hearth: { baseUrl: at.url + '/v1', apiKey: at.key, api: 'openai-completions', models: [{ id: at.model, name: at.model, input: inputs(at), contextWindow: at.context, maxTokens: room(at) }] } } },
      agents: { defaults: { model: { primary: 'hearth/' + at.model } } },
    })], ['To try it', 'sh', `openclaw agent --local --agent main --message ${sh(ask)}`]],
  },
  {
    name: 'pi', id: 'pi', about: 'A provider of its own.',
    blocks: (at) => [['~/.pi/agent/models.json', 'json', pretty({ providers: { hearth: { baseUrl: at.url + '/v1', api: 'openai-completions', apiKey: at.key, models: [{ id: at.model, input: inputs(at), contextWindow: at.context, maxTokens: room(at) }] } } })],
      ['Then', 'sh', `pi --provider hearth --model ${sh(at.model)}`]],
  },
  {
    name: 'Aider', id: 'aider', about: 'The file, in the project or at home, has it know the context; without it there is a warning.',
    blocks: (at) => [['', 'sh', `${exports({ OPENAI_API_BASE: at.url + '/v1', OPENAI_API_KEY: at.key })}
aider --model ${sh('openai/' + at.model)} --no-show-model-warnings`], ['.aider.model.metadata.json', 'json', pretty({ ['openai/' + at.model]: { max_input_tokens: at.context, max_output_tokens: room(at), litellm_provider: 'openai', mode: 'chat', ...(at.sees && { supports_vision: true }) } })]],
  },
  {
    name: 'Open WebUI', id: 'open-webui', about: 'These count at its first start, and then what its settings say: Admin Panel, Settings, Connections, OpenAI API, with the same address and key. On a port of its own: it would take 8080, too.',
    blocks: (at) => [['', 'sh', `${exports({ OPENAI_API_BASE_URL: at.url + '/v1', OPENAI_API_KEY: at.key, ENABLE_OLLAMA_API: 'false' })}
open-webui serve --port 3000`]],
  },
  {
    name: 'Continue', id: 'continue', about: 'A model of its settings, for its extensions and its command cn.',
    blocks: (at) => [['~/.continue/config.yaml', 'yaml', `name: hearth
version: 0.0.1
schema: v1
models:
  - name: hearth
    provider: openai
    model: ${json(at.model)}
    apiBase: ${json(at.url + '/v1')}
    apiKey: ${json(at.key)}
    roles: [chat, edit, apply]
    capabilities: [${at.sees ? 'tool_use, image_input' : 'tool_use'}]
    defaultCompletionOptions:
      contextLength: ${at.context}
      maxTokens: ${room(at)}`]],
  },
  {
    name: 'Zed', id: 'zed', about: 'Part of its settings. The key goes in once by hand, any word where the server has none: "agent: open settings", LLM Providers, hearth. Or HEARTH_API_KEY is exported in the profile of the shell.',
    blocks: (at) => [['~/.config/zed/settings.json', 'json', pretty({
      agent: { default_model: { provider: 'hearth', model: at.model } },
      language_models: { openai_compatible: { hearth: { api_url: at.url + '/v1', available_models: [{ name: at.model, display_name: at.model, max_tokens: at.context, max_output_tokens: room(at), capabilities: { tools: true, images: at.sees, parallel_tool_calls: true, prompt_cache_key: false } }] } } },
    })], ['The key', 'text', at.key]],
  },
  {
    name: 'Python', id: 'python', about: 'The SDKs of OpenAI and of Anthropic.',
    blocks: (at) => [['pip install openai', 'python', `from openai import OpenAI

client = OpenAI(base_url=${json(at.url + '/v1')}, api_key=${json(at.key)})
reply = client.chat.completions.create(model=${json(at.model)}, messages=[{"role": "user", "content": ${json(ask)}}])
print(reply.choices[0].message.content)`], ['pip install anthropic', 'python', `from anthropic import Anthropic

client = Anthropic(base_url=${json(at.url)}, api_key=${json(at.key)})
reply = client.messages.create(model=${json(at.model)}, max_tokens=1000, messages=[{"role": "user", "content": ${json(ask)}}])
print(reply.content[-1].text)`]],
  },
  {
    name: 'TypeScript', id: 'typescript', about: 'The SDKs of OpenAI and of Anthropic, in a module: a file that ends in .mts or .mjs.',
    blocks: (at) => [['npm install openai', 'ts', `import OpenAI from 'openai';

const client = new OpenAI({ baseURL: ${json(at.url + '/v1')}, apiKey: ${json(at.key)} });
const reply = await client.chat.completions.create({ model: ${json(at.model)}, messages: [{ role: 'user', content: ${json(ask)} }] });
console.log(reply.choices[0].message.content);`], ['npm install @anthropic-ai/sdk', 'ts', `import Anthropic from '@anthropic-ai/sdk';

const client = new Anthropic({ baseURL: ${json(at.url)}, apiKey: ${json(at.key)} });
const reply = await client.messages.create({ model: ${json(at.model)}, max_tokens: 1000, messages: [{ role: 'user', content: ${json(ask)} }] });
console.log(reply.content);`]],
  },
  {
    name: 'Go', id: 'go', about: 'The SDK of OpenAI.',
    blocks: (at) => [['go get github.com/openai/openai-go/v3', 'go', `package main

import (
	"context"
	"fmt"
	"log"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

func main() {
	client := openai.NewClient(option.WithBaseURL(${json(at.url + '/v1')}), option.WithAPIKey(${json(at.key)}))
	reply, err := client.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{
		Model:    ${json(at.model)},
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(${json(ask)})},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Choices[0].Message.Content)
}`]],
  },
  {
    name: 'curl', id: 'curl', about: 'Each of the three APIs.',
    blocks: (at) => {
      const body = (v) => sh(JSON.stringify({ model: at.model, ...v }));
      const head = (path) => `curl ${sh(at.url + path)} -H ${sh('Authorization: Bearer ' + at.key)} -H 'content-type: application/json' \\\n  -d `;
      const messages = [{ role: 'user', content: ask }];
      return [['Chat Completions', 'sh', head('/v1/chat/completions') + body({ messages })], ['Messages', 'sh', head('/v1/messages') + body({ max_tokens: 1000, messages })], ['Responses', 'sh', head('/v1/responses') + body({ input: ask })]];
    },
  },
];
