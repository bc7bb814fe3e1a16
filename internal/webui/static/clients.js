// What to type or to write so that other programs use this server. at has the address (url), the key, a model's id and its context
// in tokens. Each client is its name, a word on it, and blocks: what it is, in which language, and the text.

const json = (v) => JSON.stringify(v);
const pretty = (v) => JSON.stringify(v, null, 2);
/** sh is a word of a shell's. */
const sh = (s) => (/^[\w@%+=:,./-]+$/.test(s) ? s : "'" + s.replaceAll("'", "'\\''") + "'");

const ask = 'Say hello.';
const room = (at) => Math.max(1024, Math.min(8192, Math.floor(at.context / 4)));

export const clients = [
  {
    name: 'Claude Code', id: 'claude-code', about: 'On this machine hearth sets it up by itself. Elsewhere it is told by its environment.',
    blocks: (at) => [['On this machine', 'sh', 'hearth launch claude'], ['Anywhere', 'sh', `export ANTHROPIC_BASE_URL=${sh(at.url)}
export ANTHROPIC_AUTH_TOKEN=${sh(at.key)} ANTHROPIC_API_KEY=
export ANTHROPIC_MODEL=${sh(at.model)} ANTHROPIC_SMALL_FAST_MODEL=${sh(at.model)}
export ANTHROPIC_DEFAULT_OPUS_MODEL=${sh(at.model)} ANTHROPIC_DEFAULT_SONNET_MODEL=${sh(at.model)} ANTHROPIC_DEFAULT_HAIKU_MODEL=${sh(at.model)}
export CLAUDE_CODE_SUBAGENT_MODEL=${sh(at.model)} CLAUDE_CODE_MAX_CONTEXT_TOKENS=${at.context} CLAUDE_CODE_DISABLE_1M_CONTEXT=1
export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
claude`]],
  },
  {
    name: 'Codex', id: 'codex', about: 'On this machine hearth sets it up by itself. Elsewhere a provider of its own in the settings.',
    blocks: (at) => [['On this machine', 'sh', 'hearth launch codex'], ['~/.codex/config.toml', 'toml', `model = ${json(at.model)}
model_provider = "hearth"
model_context_window = ${at.context}
model_auto_compact_token_limit = ${at.context - Math.min(16384, Math.floor(at.context / 4))}

[model_providers.hearth]
name = "OpenAI"
base_url = ${json(at.url + '/v1')}
wire_api = "responses"
env_key = "HEARTH_API_KEY"`], ['Then', 'sh', `HEARTH_API_KEY=${sh(at.key)} codex`]],
  },
  {
    name: 'opencode', id: 'opencode', about: 'In a project or for all of them.',
    blocks: (at) => [['opencode.json, or ~/.config/opencode/opencode.json', 'json', pretty({
      model: 'hearth/' + at.model, small_model: 'hearth/' + at.model,
      provider: { hearth: { npm: '@ai-sdk/openai-compatible', name: 'hearth', options: { baseURL: at.url + '/v1', apiKey: at.key }, models: { [at.model]: { limit: { context: at.context, output: room(at) } } } } },
    })]],
  },
  {
    name: 'Qwen Code', id: 'qwen-code', about: 'It takes any server that speaks Chat Completions.',
    blocks: (at) => [['', 'sh', `export OPENAI_BASE_URL=${sh(at.url + '/v1')} OPENAI_API_KEY=${sh(at.key)} OPENAI_MODEL=${sh(at.model)}
qwen`]],
  },
  {
    name: 'OpenClaw', id: 'openclaw', about: 'A provider beside those that it has.',
    blocks: (at) => [['~/.openclaw/openclaw.json', 'json', pretty({
      models: { mode: 'merge', providers: { hearth: { baseUrl: at.url + '/v1', apiKey: at.key, api: 'openai-completions', models: [{ id: at.model, name: at.model, contextWindow: at.context, maxTokens: room(at) }] } } },
      agents: { defaults: { model: { primary: 'hearth/' + at.model } } },
    })]],
  },
  {
    name: 'pi', id: 'pi', about: 'A provider of its own.',
    blocks: (at) => [['~/.pi/agent/models.json', 'json', pretty({ providers: { hearth: { baseUrl: at.url + '/v1', api: 'openai-completions', apiKey: at.key, models: [{ id: at.model, contextWindow: at.context, maxTokens: room(at) }] } } })],
      ['Then', 'sh', `pi --provider hearth --model ${sh(at.model)}`]],
  },
  {
    name: 'Aider', id: 'aider', about: 'The file has it know the context; without it there is a warning.',
    blocks: (at) => [['', 'sh', `export OPENAI_API_BASE=${sh(at.url + '/v1')} OPENAI_API_KEY=${sh(at.key)}
aider --model ${sh('openai/' + at.model)} --no-show-model-warnings`], ['.aider.model.metadata.json', 'json', pretty({ ['openai/' + at.model]: { max_input_tokens: at.context, max_output_tokens: room(at), litellm_provider: 'openai', mode: 'chat' } })]],
  },
  {
    name: 'Open WebUI', id: 'open-webui', about: 'Or in its settings: Connections, OpenAI API, with the same address and key.',
    blocks: (at) => [['', 'sh', `OPENAI_API_BASE_URL=${sh(at.url + '/v1')} OPENAI_API_KEY=${sh(at.key)} open-webui serve`]],
  },
  {
    name: 'Continue', id: 'continue', about: 'A model of its settings.',
    blocks: (at) => [['~/.continue/config.yaml', 'yaml', `name: hearth
version: 0.0.1
schema: v1
models:
  - name: hearth
    provider: openai
    model: ${json(at.model)}
    apiBase: ${json(at.url + '/v1')}
    apiKey: ${json(at.key)}
    roles: [chat, edit, apply]`]],
  },
  {
    name: 'Zed', id: 'zed', about: 'The key is asked for in its settings of agents, or read from HEARTH_API_KEY.',
    blocks: (at) => [['~/.config/zed/settings.json', 'json', pretty({ language_models: { openai_compatible: { hearth: { api_url: at.url + '/v1', available_models: [{ name: at.model, display_name: at.model, max_tokens: at.context }] } } } })],
      ['Then', 'sh', `HEARTH_API_KEY=${sh(at.key)} zed`]],
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
    name: 'TypeScript', id: 'typescript', about: 'The SDKs of OpenAI and of Anthropic.',
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
    blocks: (at) => [['go get github.com/openai/openai-go/v3', 'go', `client := openai.NewClient(option.WithBaseURL(${json(at.url + '/v1')}), option.WithAPIKey(${json(at.key)}))
reply, err := client.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{
	Model:    ${json(at.model)},
	Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(${json(ask)})},
})
if err != nil {
	return err
}
fmt.Println(reply.Choices[0].Message.Content)`]],
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
