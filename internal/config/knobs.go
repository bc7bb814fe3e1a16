package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"hearth/internal/chat"
)

// Group gathers knobs that belong together: a subcommand takes whole groups, and the documentation has a table for each.
type Group string

const (
	Listen   Group = "Listening"
	Access   Group = "Access"
	Model    Group = "Model"
	Hub      Group = "Models from the hub"
	Run      Group = "Running"
	Sampling Group = "Defaults for requests"
	API      Group = "The API"
	Disk     Group = "Prompt cache on disk"
	Log      Group = "Logging"
)

// Groups is the order of the documentation.
var Groups = []Group{Listen, Access, Model, Hub, Run, Disk, Sampling, API, Log}

// Knob is a row of the table.
type Knob struct {
	Flag  string
	Also  []string // the same flag under the names other servers gave it
	Env   []string // environment names after HEARTH_<FLAG>, in order
	Group Group
	Doc   string // one line; what is in back quotes names the value in help
	// Unset says what happens where the default is empty.
	Unset string
	// Secret values are shown nowhere, not in errors either.
	Secret bool
	// PerModel knobs may stand in a model's section of the settings file.
	PerModel bool

	bind func(c *Config) pflag.Value
	// shared, if set, refuses values of names in Env that the knob itself would take.
	shared func(string) error
}

// ownPrefix begins the environment names that are this program's alone. Others belong to other programs too, so a value of
// theirs that does not fit is ignored with a warning, not an error.
const ownPrefix = "HEARTH_"

// variable is the environment name of a flag.
func variable(flag string) string {
	return ownPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Envs lists the environment names that set the knob, strongest first, but for HEARTH_ and its flag's other names.
func (k *Knob) Envs() []string { return append([]string{variable(k.Flag)}, k.Env...) }

// variables lists all of them.
func (k *Knob) variables() []string {
	names := []string{variable(k.Flag)}
	for _, flag := range k.Also {
		names = append(names, variable(flag))
	}
	return append(names, k.Env...)
}

// Knobs is the table: every setting of the program.
var Knobs = slices.Concat([]Knob{
	{Flag: "host", Env: []string{"HOST"}, Group: Listen, Unset: "127.0.0.1 and ::1",
		Doc:  "`address` or name to listen on; 0.0.0.0 or :: for every address",
		bind: func(c *Config) pflag.Value { return text(&c.Host) }, shared: checkHost},
	{Flag: "port", Env: []string{"PORT"}, Group: Listen,
		Doc:  "port to listen on; 0 picks a free one",
		bind: func(c *Config) pflag.Value { return integer(&c.Port, 0, 65535) }},
	{Flag: "listen", Group: Listen, Unset: "host and port",
		Doc:  "`sockets` to listen on in the place of host and port: unix:PATH, a Unix socket for this account alone, ADDRESS:PORT, or fd:NUMBER, one that is open when hearth starts; of several, all. Those of systemd's socket activation take their place",
		bind: func(c *Config) pflag.Value { return socketList(&c.Listen) }},
	{Flag: "tls-cert", Also: []string{"ssl-certfile", "ssl-cert-file"}, Group: Listen, Unset: "plain HTTP",
		Doc:  "`file` of a certificate in PEM, with those that lead to its issuer behind it: the server speaks TLS, with HTTP/2 and HTTP/1.1. SIGHUP reads it again",
		bind: func(c *Config) pflag.Value { return text(&c.TLSCert) }},
	{Flag: "tls-key", Also: []string{"ssl-keyfile", "ssl-key-file"}, Group: Listen, Unset: "plain HTTP",
		Doc:  "`file` of that certificate's private key in PEM, which may be the same file",
		bind: func(c *Config) pflag.Value { return text(&c.TLSKey) }},
	{Flag: "drain-timeout", Group: Listen,
		Doc:  "how long requests may go on after SIGTERM, Ctrl-C or, on a terminal, SIGHUP; a second signal, but for SIGHUP, quits at once",
		bind: func(c *Config) pflag.Value { return duration(&c.DrainTimeout) }},

	{Flag: "api-key", Env: []string{"ANTHROPIC_AUTH_TOKEN"}, Group: Access, Unset: "no check", Secret: true,
		Doc:  "`key` that every request must show as Bearer, x-api-key or api-key; of several, with commas or in several flags, any of them",
		bind: func(c *Config) pflag.Value { return keyList(&c.APIKeys) }},
	{Flag: "api-keys", Group: Access, Unset: "none", Secret: true,
		Doc:  "`lines` as in --api-key-file, with semicolons between them: for the environment of containers",
		bind: func(c *Config) pflag.Value { return keyText(&c.LineKeys) }},
	{Flag: "api-key-file", Group: Access, Unset: "keys beside the settings file, if there is such a file",
		Doc:  "`file` with more keys, a line each, which a running server reads again when it has changed; off reads none. hearth keys writes it, with hashes of keys alone; docs/security.md has the form of a line",
		bind: func(c *Config) pflag.Value { return text(&c.APIKeyFile) }},
	{Flag: "operator-key", Group: Access, Unset: "the only key, if there is just one", Secret: true,
		Doc:  "`key` that is accepted like the others and may see and clear, under /v1/status and /v1/cache, what is of all keys; others have their own part only",
		bind: func(c *Config) pflag.Value { return oneKey(&c.OperatorKey) }},
	{Flag: "rate-limit", Group: Access,
		Doc:  "requests a minute of one client, which is a key where there are several and else an address; one more is told when to come back. 0 counts none. Only requests that may make a model work count: no counting of tokens, no health, no lists",
		bind: func(c *Config) pflag.Value { return integer(&c.RateLimit, 0, 1<<26) }},
	{Flag: "max-concurrent-requests", Group: Access, Unset: "as many as run and wait: max-sequences, max-queue",
		Doc:  "requests that are answered at a time, those that wait included; one more is told to come back later. 0 is any number",
		bind: func(c *Config) pflag.Value { return integer(&c.MaxRequests, 0, 1<<26) }},
	{Flag: "max-requests-per-client", Group: Access, Unset: "half of what waits",
		Doc:  "those of one client; 0 is any number",
		bind: func(c *Config) pflag.Value { return integer(&c.MaxRequestsPerClient, 0, 1<<26) }},
	{Flag: "timeout", Group: Access,
		Doc:  "how long a request may take without getting on, in seconds or as 5m: a chunk of its prompt, a token, a part of the model that is loaded for it are progress, a wait is not; the call of an MCP tool has a time of its own. 0 is for ever",
		bind: func(c *Config) pflag.Value { return seconds(&c.Timeout) }},
	{Flag: "max-queue-wait", Group: Access, Unset: "timeout",
		Doc:  "how long a request may wait for its turn, in seconds or as 30s, before it is told to come back later; 0 is as long as timeout",
		bind: func(c *Config) pflag.Value { return seconds(&c.QueueWait) }},
	{Flag: "trusted-proxies", Group: Access, Unset: "none",
		Doc:  "`networks` and addresses of reverse proxies, loopback or unix, whose X-Forwarded-For or Forwarded says whose request it is",
		bind: func(c *Config) pflag.Value { return proxies(&c.Proxies) }},
	{Flag: "allowed-hosts", Also: []string{"trusted-hosts"}, Group: Access, Unset: "with a key, all; else loopback, *.localhost, *.local, *.internal, own names and addresses, private literal addresses and, where other machines can reach the server, names without a dot",
		Doc:  "further values of the Host header to accept; * accepts all. Pages of these hosts need --allowed-origins",
		bind: func(c *Config) pflag.Value { return list(&c.AllowedHosts) }},
	{Flag: "allowed-origins", Also: []string{"cors-origins"}, Group: Access, Unset: "pages on loopback; with a key, all",
		Doc:  "web `origins` besides loopback whose pages may call the API, such as https://chat.example.com; * accepts all",
		bind: func(c *Config) pflag.Value { return list(&c.AllowedOrigins) }},

	{Flag: "mcp-config", Env: []string{"VLLM_MLX_MCP_CONFIG"}, Group: Access, Unset: "no MCP server is started",
		Doc:  "`file` of MCP servers that are started and whose tools callers, and models for them, may have run here: JSON with mcpServers, as other programs have it, and in each the tools it allows (docs/mcp.md); SIGHUP has a service read it again",
		bind: func(c *Config) pflag.Value { return text(&c.MCPConfig) }},

	{Flag: "config", Also: []string{"config-file"}, Group: Model, Unset: "hearth/config.toml in the user's folder of settings",
		Doc:  "`file` with settings, also for single models; off reads none",
		bind: func(c *Config) pflag.Value { return text(&c.ConfigFile) }},
	{Flag: "model", Env: []string{"MLX_MODEL"}, Group: Model, Unset: "the embedded demo",
		Doc:  "`folder` or Hugging Face id to load; the argument of the command wins",
		bind: func(c *Config) pflag.Value { return text(&c.Model) }},
	{Flag: "served-model-name", Also: []string{"alias"}, Group: Model, PerModel: true, Unset: "the id, or the folder's name",
		Doc:  "names the model goes by; the first is shown to clients",
		bind: func(c *Config) pflag.Value { return list(&c.ServedModelName) }},
	{Flag: "any-model", Group: Model,
		Doc:  "answer any model name with the loaded model instead of 404",
		bind: func(c *Config) pflag.Value { return boolean(&c.AnyModel) }},
	{Flag: "strict-models", Group: Model,
		Doc:  "answer 404 to names of models that only OpenAI serves (gpt-4o, o3-mini) and to Azure deployments that are no name of the model's, instead of taking them for the only model there is",
		bind: func(c *Config) pflag.Value { return boolean(&c.StrictModels) }},
	{Flag: "models", Group: Model,
		Doc:  "which models requests get: on-demand is every one on disk, loaded when a request names it, beside those the server was started with, which stay; pinned is these alone",
		bind: func(c *Config) pflag.Value { return choice(&c.Models, "on-demand", "pinned") }},
	{Flag: "idle-unload", Group: Model,
		Doc:  "after how long without a request a model that was loaded on demand goes; 0 only when its memory is needed. A request's keep_alive wins",
		bind: func(c *Config) pflag.Value { return duration(&c.IdleUnload) }},
	{Flag: "adapter-path", Also: []string{"adapter"}, Group: Model, PerModel: true, Unset: "none",
		Doc:  "`folder` of a low-rank adapter to load with the model: adapter_config.json and adapters.safetensors, as mlx-lm writes them",
		bind: func(c *Config) pflag.Value { return text(&c.AdapterPath) }},
	{Flag: "hf-hub-cache", Env: []string{"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}, Group: Model, Unset: "hub in the folder of hf-home",
		Doc:  "`folder` where Hugging Face clients keep models (models--org--name)",
		bind: func(c *Config) pflag.Value { return text(&c.HubCache) }},
	{Flag: "hf-home", Env: []string{"HF_HOME"}, Group: Model, Unset: "~/.cache/huggingface",
		Doc:  "`folder` of Hugging Face clients",
		bind: func(c *Config) pflag.Value { return text(&c.HFHome) }},
	{Flag: "models-dir", Group: Model, Unset: "only LM Studio's folder and ~/llm/models",
		Doc:  "`folders` in which models are looked for besides the Hugging Face cache, LM Studio's folder and ~/llm/models: of model folders, name or org/name",
		bind: func(c *Config) pflag.Value { return list(&c.ModelsDir) }},
	{Flag: "hf-endpoint", Env: []string{"HF_ENDPOINT"}, Group: Hub,
		Doc:  "`URL` of the hub that models are fetched from",
		bind: func(c *Config) pflag.Value { return text(&c.HFEndpoint) }},
	{Flag: "hf-token", Env: []string{"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}, Group: Hub, Unset: "what hf auth login has stored", Secret: true,
		Doc:  "`token` of an account of the hub, for private and gated models; only the hub is shown it",
		bind: func(c *Config) pflag.Value { return text(&c.HFToken) }},
	{Flag: "offline", Env: []string{"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}, Group: Hub,
		Doc:  "ask no hub for anything: there is what is on disk",
		bind: func(c *Config) pflag.Value { return boolean(&c.Offline) }},
	{Flag: "pull", Group: Hub,
		Doc:  "fetch MODEL from the hub without asking if it is not on disk; otherwise it is asked for on a terminal, and an error elsewhere",
		bind: func(c *Config) pflag.Value { return boolean(&c.Pull) }},

	{Flag: "backend", Group: Run,
		Doc:  "what runs the model: mlx is Apple's GPU through libmlxc, cpu is hearth's own; auto is mlx on a Mac that has it, else cpu",
		bind: func(c *Config) pflag.Value { return choice(&c.Backend, "auto", "mlx", "cpu") }},
	{Flag: "mlx-lib", Group: Run, Unset: "beside hearth, then where Homebrew puts it",
		Doc:  "`path` of libmlxc for the mlx backend",
		bind: func(c *Config) pflag.Value { return text(&c.MLXLib) }},
	{Flag: "mlx-fast-synch", Env: []string{"MLX_METAL_FAST_SYNCH"}, Group: Run, Unset: "true on machines with 64 GiB or more",
		Doc:  "the GPU and the processor wait for each other by memory and not by events; it is MLX's own setting and reaches models in processes of their own (model-process)",
		bind: func(c *Config) pflag.Value { return optional(&c.MLXFastSynch, "bool", parseBool, strconv.FormatBool) }},
	{Flag: "mlx-max-mb-per-buffer", Env: []string{"MLX_MAX_MB_PER_BUFFER"}, Group: Run, Unset: "512 on machines with 64 GiB or more, else MLX's own",
		Doc:  "`MB` of arrays after which MLX sends a command buffer to the GPU; it reaches models in processes of their own",
		bind: func(c *Config) pflag.Value { return integer(&c.MLXBufferMB, 0, 1<<20) }},
	{Flag: "mlx-max-ops-per-buffer", Env: []string{"MLX_MAX_OPS_PER_BUFFER"}, Group: Run, Unset: "100 on machines with 64 GiB or more, else MLX's own",
		Doc:  "operations after which MLX sends a command buffer to the GPU; it reaches models in processes of their own",
		bind: func(c *Config) pflag.Value { return integer(&c.MLXBufferOps, 0, 1<<20) }},
	{Flag: "precision", Group: Run, PerModel: true,
		Doc: "how far activations are rounded for products: fast to 8 bits per group where weights are quantised (to bfloat16 where they are bfloat16 and the processor multiplies such numbers), outliers likewise, but for the largest numbers of groups that stand out of their row, which have 15 bits, exact to 16 bits per group, float32 not at all; auto is float32 for models small enough that it costs nothing (weights up to 64 MiB), else outliers, or on cpu exact where a model embeds or ranks; on mlx fast and outliers are activations in bfloat16 on a GPU, exact and float32 activations in float32",
		bind: func(c *Config) pflag.Value {
			return choice(&c.Precision, "auto", "fast", "outliers", "exact", "float32")
		}},
	{Flag: "threads", Group: Run, Unset: "one per core",
		Doc:  "threads of the cpu backend; 0 is one per core",
		bind: func(c *Config) pflag.Value { return integer(&c.Threads, 0, 1024) }},
	{Flag: "low-memory", Group: Run, PerModel: true, Unset: "only if the weights would not fit otherwise",
		Doc:  "leave weights in their files, mapped, and prepare them anew in every step: slower, with memory that the system can take back; false never does it",
		bind: func(c *Config) pflag.Value { return optional(&c.LowMemory, "bool", parseBool, strconv.FormatBool) }},
	{Flag: "kv-type", Also: []string{"kv-cache-dtype", "cache-type", "kv-bits"}, Group: Run, PerModel: true,
		Doc:  "how keys and values are kept; q8 and q4 are 8- and 4-bit codes with a scale and a bias per 64 (q8: KL to float32 keys and values 4e-4 to 2.2e-3 on published models; q4: KL to float32 keys and values 0.1 to 0.2 on published models: every fourth to fifth token changes); auto is bf16 in precision fast and outliers (i16, whole numbers of 13 bits with a step per row, where the processor multiplies such faster: Intel with AVX512_VNNI, AVX2 without AVX-512), else f32; other servers' spellings (fp16, q8_0, 8, …) count, and of their bits 2 and 3 are q4, 5 and 6 are q8",
		bind: func(c *Config) pflag.Value { return kvType(&c.KVType) }},
	{Flag: "context-length", Also: []string{"max-context", "ctx-size", "max-model-len", "max-kv-size"}, Env: []string{"MLX_MAX_KV_SIZE"}, Group: Run, PerModel: true, Unset: "the model's own",
		Doc:  "`tokens` a request may use in all, prompt and output; 0 is what the model was made for, as far as the cache reaches",
		bind: func(c *Config) pflag.Value { return integer(&c.ContextLength, 0, math.MaxInt32) }},
	{Flag: "prompt-cache", Env: []string{"PROMPT_CACHE"}, Group: Run,
		Doc:  "reuse what was computed for the beginnings of earlier prompts and answers",
		bind: func(c *Config) pflag.Value { return boolean(&c.PromptCache) }},
	{Flag: "prompt-cache-bytes", Env: []string{"PROMPT_CACHE_BYTES"}, Group: Run,
		Doc:  "`bytes` of the prompt cache that no running reply uses, or with a unit such as 512MB or 2GiB; 0 is as much as the memory for keys and values allows",
		bind: func(c *Config) pflag.Value { return byteSize(&c.PromptCacheMax) }},
	{Flag: "cache-isolation", Group: Run, Unset: "key once there is more than one key, else none",
		Doc:  "with key, what is stored for the prompts of one key does not help, or tell anything to, those of another",
		bind: func(c *Config) pflag.Value { return choice(&c.CacheIsolation, "none", "key") }},
	{Flag: "context-ttl-ms", Env: []string{"CONTEXT_TTL_MS"}, Group: Run,
		Doc:  "`milliseconds` after which stored prompts that nobody used are forgotten; 0 keeps them as long as there is memory",
		bind: func(c *Config) pflag.Value { return millis(&c.ContextTTL) }},
	{Flag: "context-max-sessions", Env: []string{"CONTEXT_MAX_SESSIONS"}, Group: Run,
		Doc:  "sessions whose prompts are remembered; of one more, the one not heard of longest is forgotten",
		bind: func(c *Config) pflag.Value { return integer(&c.ContextSessions, 1, mostSessions) }},
	{Flag: "cache-memory-mb", Also: []string{"kv-cache-mb"}, Group: Run, Unset: "see cache-memory-percent",
		Doc:  "memory in `MiB` for keys and values, of running replies and of the prompt cache together; 0 leaves it to cache-memory-percent",
		bind: func(c *Config) pflag.Value { return integer(&c.CacheMemoryMB, 0, 1<<24) }},
	{Flag: "cache-memory-percent", Group: Run,
		Doc:  "the same as a `share` of the machine's memory from 0 to 1, lowered to what is left beside the weights and, of 15 % of their size and os-reserve, the larger",
		bind: func(c *Config) pflag.Value { return float(&c.CacheMemoryPart, share, "a number from 0 to 1") }},
	{Flag: "os-reserve", Group: Run, Unset: "a sixteenth of the machine's memory, at most 4 GiB",
		Doc: "`bytes` of the machine's memory, or with a unit such as 512MB or 2GiB, that are left to the system and other programs: models and their steps, keys and values get no more than the rest",
		bind: func(c *Config) pflag.Value {
			return optional(&c.OSReserve, "bytes", parseBytes, func(n int64) string { return strconv.FormatInt(n, 10) })
		}},
	{Flag: "max-sequences", Also: []string{"max-num-seqs", "parallel", "decode-concurrency"}, Group: Run,
		Doc:  "replies that are generated together; more wait in the queue",
		bind: func(c *Config) pflag.Value { return integer(&c.MaxSequences, 1, 1024) }},
	{Flag: "max-queue", Also: []string{"max-queue-size"}, Group: Run,
		Doc:  "requests that may wait while max-sequences run; one more is told to come back later, as is one of a client that has half of all places",
		bind: func(c *Config) pflag.Value { return integer(&c.MaxQueue, 1, 1<<20) }},
	{Flag: "max-request-bytes", Group: Run,
		Doc:  "`bytes`, or with a unit such as 512MB or 2GiB, of all request bodies that are being read and made into prompts, at least 128MiB; one more is told to come back later, as is a body over 64 KiB while such bodies hold three quarters. The work on them takes up to 8 times as much memory",
		bind: func(c *Config) pflag.Value { return byteSizeFrom(&c.MaxRequestBytes, leastRequestBytes) }},
	{Flag: "prefill-step-size", Also: []string{"prefill-chunk"}, Env: []string{"MLX_PREFILL_STEP_SIZE"}, Group: Run,
		Doc:  "prompt `tokens` that run in one step at most, never more than 8192; step-target makes it fewer while others wait",
		bind: func(c *Config) pflag.Value { return integerUpTo(&c.PrefillStepSize, 1, MaxBatchTokens) }},
	{Flag: "speculation", Group: Run,
		Doc:  "auto looks up what comes next in the prompt, the answer and earlier answers of the same cache, runs it along and keeps what the model says anyway: replies are the same, to the bit on processors, and faster where they repeat what was said. How much is run ahead is measured, and nothing is where it does not pay. On MLX, where rounding depends on how much runs at once, only on does, with models of attention alone",
		bind: func(c *Config) pflag.Value { return choice(&c.Speculation, "auto", "on", "off") }},
	{Flag: "history", Group: Run,
		Doc:  "exact keeps earlier answers as they were generated where the conversation says the same, so that no turn computes them again; text encodes them as the chat template writes them, as the header X-Hearth-History: text of a request does for that one",
		bind: func(c *Config) pflag.Value { return choice(&c.History, "exact", "text") }},
	{Flag: "replay-reasoning", Group: Run,
		Doc:  "auto puts reasoning that clients leave out of earlier turns back into the prompt where the model's publisher wants it, if it was generated here for the same caller and the rest of the conversation says the same; never leaves it out. Nothing is put back with --history text",
		bind: func(c *Config) pflag.Value { return choice(&c.ReplayReasoning, "auto", "never") }},
	{Flag: "step-target", Group: Run,
		Doc:  "how long a step may take while replies are being generated: prompts then run in smaller pieces, and alone in such as take a second, or three where that is all that is left; 0 never makes them smaller",
		bind: func(c *Config) pflag.Value { return duration(&c.StepTarget) }},

	{Flag: "prefix-cache-dir", Also: []string{"ssd-cache-dir"}, Group: Disk, Unset: "hearth/prefix-cache in the user's cache folder",
		Doc:  "`folder` where a server keeps what the prompt cache lets go of, so that it survives restarts; off keeps nothing",
		bind: func(c *Config) pflag.Value { return text(&c.PrefixCacheDir) }},
	{Flag: "prefix-cache-disk-mb", Group: Disk, Unset: "10 GiB, or a tenth of the free disk if that is less",
		Doc:  "most `MiB` of a model's files there",
		bind: func(c *Config) pflag.Value { return integer(&c.PrefixCacheMB, 0, 1<<30) }},
	{Flag: "prefix-cache-days", Group: Disk,
		Doc:  "`days` after which what nobody used goes from there; 0 keeps it as long as there is room",
		bind: func(c *Config) pflag.Value { return integer(&c.PrefixCacheDays, 0, 36500) }},
}, samplingKnobs(), []Knob{
	{Flag: "seed", Also: []string{"default-seed"}, Group: Sampling, PerModel: true, Unset: "a new one for every request",
		Doc: "what chance starts from: with a seed, the same request gets the same reply, with --history exact as long as what was generated here before is the same too",
		bind: func(c *Config) pflag.Value {
			return optional(&c.Seed, "int", parseSeed, func(n uint64) string { return strconv.FormatUint(n, 10) })
		}},
	{Flag: "max-tokens", Group: Sampling, PerModel: true, Unset: "the room left in the context",
		Doc:  "output `tokens` of a request that names no limit; 0 is the room left in the context",
		bind: func(c *Config) pflag.Value { return integer(&c.MaxTokens, 0, math.MaxInt32) }},
	{Flag: "max-tokens-cap", Also: []string{"max-request-tokens"}, Env: []string{"MLX_MAX_TOKENS"}, Group: Sampling, PerModel: true, Unset: "none",
		Doc:  "output `tokens` that no request gets more of, whatever it asks for",
		bind: func(c *Config) pflag.Value { return integer(&c.MaxTokensCap, 0, math.MaxInt32) }},
	{Flag: "enable-thinking", Env: []string{"MLX_ENABLE_THINKING", "VLLM_MLX_ENABLE_THINKING"}, Group: Sampling, PerModel: true, Unset: "the model's template decides",
		Doc:  "let models that can think before they answer do so; false holds whatever requests ask, as far as the model's template can be told, true is for requests that do not say",
		bind: func(c *Config) pflag.Value { return optional(&c.EnableThinking, "bool", parseBool, strconv.FormatBool) }},
	{Flag: "thinking-token-budget", Also: []string{"default-thinking-token-budget"}, Group: Sampling, PerModel: true, Unset: "none",
		Doc:  "`tokens` of thinking after which a model has to answer, for requests that name no number",
		bind: func(c *Config) pflag.Value { return integer(&c.ThinkingBudget, 0, math.MaxInt32) }},
	{Flag: "chat-template", Also: []string{"chat-template-file"}, Group: Sampling, PerModel: true, Unset: "the folder's own; without one the model only continues text",
		Doc:  "chat template in the place of the model's own: the `name` of a built-in one (list shows them), a file, a model's folder, or text that contains {{ or {%; none leaves the model without",
		bind: func(c *Config) pflag.Value { return text(&c.ChatTemplate) }},
	{Flag: "chat-template-kwargs", Also: []string{"default-chat-template-kwargs", "chat-template-args"}, Group: Sampling, PerModel: true, Unset: "none",
		Doc:  "variables of the chat template as a JSON `object`; what a request says of them comes first",
		bind: func(c *Config) pflag.Value { return object(&c.ChatTemplateArgs) }},
	{Flag: "expose-thinking", Env: []string{"EXPOSE_THINKING"}, Group: Sampling, Unset: "Messages shows it to requests that ask for thinking, Chat always",
		Doc:  "show clients what models think before they answer: always, or never",
		bind: func(c *Config) pflag.Value { return optional(&c.ExposeThinking, "bool", parseBool, strconv.FormatBool) }},
	{Flag: "reasoning-field", Group: Sampling,
		Doc: "where Chat Completions shows thinking",
		bind: func(c *Config) pflag.Value {
			return choice(&c.ReasoningField, "both", "reasoning_content", "reasoning")
		}},

	{Flag: "tool-call-parser", Also: []string{"tool-parser"}, Group: Sampling, PerModel: true,
		Doc:  "`name` of the form in which the model writes tool calls; auto goes by its template, then its vocabulary; none leaves calls as text; docs/dialects.md has the names",
		bind: func(c *Config) pflag.Value { return text(&c.ToolCallParser) }},
	{Flag: "reasoning-parser", Group: Sampling, PerModel: true,
		Doc:  "`name` of the form in which the model writes reasoning; auto goes by its template; none leaves it as text",
		bind: func(c *Config) pflag.Value { return text(&c.ReasoningParser) }},
	{Flag: "no-tool-repair", Also: []string{"no-tool-autocorrect"}, Group: Sampling, PerModel: true,
		Doc:  "take tool calls as the model writes them: arguments that are not quite JSON or not of the declared type are not mended",
		bind: func(c *Config) pflag.Value { return boolean(&c.NoToolRepair) }},
	{Flag: "tools-in-prompt", Group: Sampling, PerModel: true,
		Doc:  "tools under a chat template that has no place for them: auto puts them into the system text with the form of a call, never leaves them out and refuses requests that demand a call; docs/templates.md has the text",
		bind: func(c *Config) pflag.Value { return choice(&c.ToolsInPrompt, "auto", "never") }},
	{Flag: "constrain-tools", Also: []string{"tool-grammar"}, Group: Sampling, PerModel: true,
		Doc:  "keep tool calls that no request demands to the declared tools and their schemas while they are written (those that are demanded always are); auto does so where that costs next to nothing, which is not on Apple's GPU; docs/dialects.md has the forms that can be kept",
		bind: func(c *Config) pflag.Value { return choice(&c.ConstrainTools, "auto", "always", "never") }},
	{Flag: "runaway-stop", Group: Sampling, PerModel: true,
		Doc:  "end a greedy reply (temperature 0) as at its max_tokens when its last 1,024 tokens repeat one run of at most 64 that does not stand in the prompt; never in calls and JSON that was asked for; false also leaves out the repetition_detection of a model's folder",
		bind: func(c *Config) pflag.Value { return boolean(&c.RunawayStop) }},
	{Flag: "enable-auto-tool-choice", Group: Sampling,
		Doc:  "accepted for command lines made for other servers; tools that a request declares can always be called",
		bind: func(c *Config) pflag.Value { return boolean(&c.EnableAutoToolChoice) }},

	{Flag: "strict-anthropic", Group: API,
		Doc:  "refuse Messages requests without model or max_tokens, or with a max_tokens that does not fit behind the prompt, as Anthropic does",
		bind: func(c *Config) pflag.Value { return boolean(&c.StrictAnthropic) }},
	{Flag: "strict-openai", Group: API,
		Doc:  "refuse a max_tokens that does not fit behind the prompt, and -1, in Chat Completions and Completions, and 0 in the former, as OpenAI does, in place of taking what fits",
		bind: func(c *Config) pflag.Value { return boolean(&c.StrictOpenAI) }},
	{Flag: "anthropic-version", Env: []string{"ANTHROPIC_VERSION"}, Group: API,
		Doc:  "`version` that Messages replies name in their anthropic-version header; requests may have any",
		bind: func(c *Config) pflag.Value { return text(&c.AnthropicVersion) }},
	{Flag: "validation-status", Group: API,
		Doc:  "HTTP status of OpenAI's API for requests that are wrong; some clients of older servers expect 422",
		bind: func(c *Config) pflag.Value { return choice(&c.ValidationStatus, "400", "422") }},
	{Flag: "hosted-tools", Group: API,
		Doc:  "tools of the Responses API that only work where OpenAI runs them, such as web_search: drop does not tell the model of them, refuse answers 400",
		bind: func(c *Config) pflag.Value { return choice(&c.HostedTools, "drop", "refuse") }},
	{Flag: "max-sockets", Group: API,
		Doc:  "WebSockets that may be open at once, on which clients ask for responses; one more is told to post, as are all with 0",
		bind: func(c *Config) pflag.Value { return integer(&c.MaxSockets, 0, mostSockets) }},
	{Flag: "store", Group: API,
		Doc:  "where responses and conversations are kept that clients build on: on disk, in memory, where they end with the server, or nowhere; of a request with store: false only what it adds to a conversation is kept",
		bind: func(c *Config) pflag.Value { return choice(&c.Store, "disk", "memory", "off") }},
	{Flag: "private", Group: API,
		Doc:  "keep in memory what clients and models say: no prompt cache on disk, no stored responses or archives but in memory, no prompts in the log, whatever other settings say",
		bind: func(c *Config) pflag.Value { return boolean(&c.Private) }},
	{Flag: "store-dir", Group: API, Unset: "hearth in the user's data folder",
		Doc:  "`folder` of the database of responses and conversations",
		bind: func(c *Config) pflag.Value { return text(&c.StoreDir) }},
	{Flag: "responses-ttl", Group: API,
		Doc:  "how long a response is kept; 0 keeps it for ever",
		bind: func(c *Config) pflag.Value { return duration(&c.ResponsesTTL) }},
	{Flag: "conversation-ttl", Group: API,
		Doc:  "after how long without another response a chain of them is archived, and a conversation archived and removed; 0 is never",
		bind: func(c *Config) pflag.Value { return duration(&c.ConversationTTL) }},
	{Flag: "conversation-archive", Group: API, Unset: "conversation_logs in --store-dir",
		Doc:  "`folder` of archived chains and conversations, a JSON file each; off writes none",
		bind: func(c *Config) pflag.Value { return text(&c.Archive) }},
	{Flag: "images", Group: API, PerModel: true,
		Doc:  "what becomes of images, PDFs, sound and video for a model that cannot take them in: note puts a sentence in their place, refuse answers 400 unless a tool returned them",
		bind: func(c *Config) pflag.Value { return choice(&c.Images, "note", "refuse") }},
	{Flag: "image-urls", Also: []string{"allowed-media-domains"}, Group: API, Unset: "none: images come with the request",
		Doc:  "`hosts` whose images are fetched for models that see, where a request has a URL of http or https: names, *.suffix, or * for all. Addresses that are not public are never reached",
		bind: func(c *Config) pflag.Value { return list(&c.ImageURLs) }},
	{Flag: "max-image-bytes", Group: API,
		Doc:  "`bytes`, or with a unit such as 8MiB, that the file of an image may have for a model that sees",
		bind: func(c *Config) pflag.Value { return byteSizeFrom(&c.MaxImageBytes, 1<<10) }},
	{Flag: "max-image-pixels", Group: API,
		Doc:  "pixels that an image may have; while it is prepared one takes up to 11 bytes",
		bind: func(c *Config) pflag.Value { return integer(&c.MaxImagePixels, 1<<10, 1<<30) }},
	{Flag: "max-images", Group: API,
		Doc:  "images of a request, those of earlier turns included",
		bind: func(c *Config) pflag.Value { return integer(&c.MaxImages, 1, 1<<16) }},
	{Flag: "image-cache-bytes", Group: API,
		Doc:  "`bytes`, or with a unit such as 512MB or 2GiB, of what a model's tower made of images that are kept for later prompts, by every model that sees; 0 keeps none beyond the prompt",
		bind: func(c *Config) pflag.Value { return byteSizeFrom(&c.ImageCacheBytes, 0) }},
	{Flag: "stream-interval", Group: API,
		Doc:  "`tokens` of text that streams collect into one event, for about a second at most; the first, calls and the end never wait",
		bind: func(c *Config) pflag.Value { return integer(&c.StreamInterval, 1, 1024) }},
	{Flag: "model-process", Group: API,
		Doc:  "whether models run in processes of their own, which are started again when they end; auto is for those on Apple's GPU, which can end a process; never is for debugging",
		bind: func(c *Config) pflag.Value { return choice(&c.ModelProcess, "auto", "always", "never") }},
	{Flag: "small-model", Group: API, Unset: "the model itself",
		Doc:  "`folder` or id of a second model, for names with haiku in them and for its own name",
		bind: func(c *Config) pflag.Value { return text(&c.SmallModel) }},
	{Flag: "embedding-model", Group: API, Unset: "the model, if it is one",
		Doc:  "`folder` or id of a model for /v1/embeddings, loaded beside the others",
		bind: func(c *Config) pflag.Value { return text(&c.EmbeddingModel) }},
	{Flag: "rerank-model", Group: API, Unset: "the model, if it is one",
		Doc:  "`folder` or id of a model for /v1/rerank, loaded beside the others",
		bind: func(c *Config) pflag.Value { return text(&c.RerankModel) }},
	{Flag: "embedding-max-length", Group: API, PerModel: true, Unset: "what the model's folder says",
		Doc: "tokens that a text to embed or rank may have",
		bind: func(c *Config) pflag.Value {
			v := integer(&c.EmbeddingMaxLength, 0, 1<<20)
			v.parse = or(map[string]int{"auto": 0}, v.parse)
			return v
		}},
	{Flag: "embedding-overflow-policy", Group: API, PerModel: true,
		Doc:  "what happens to a text that is longer, where its request does not say: error is a 400, truncate cuts its end off",
		bind: func(c *Config) pflag.Value { return choice(&c.EmbeddingOverflow, "error", "truncate") }},
	{Flag: "script", Group: API, Unset: "the model answers",
		Doc:  "`file` whose lines answer in the model's place, for testing clients: docs/script.md",
		bind: func(c *Config) pflag.Value { return text(&c.Script) }},
	{Flag: "debug-request-dir", Env: []string{"DEBUG_REQUEST_DIR"}, Group: API, Unset: "none are written",
		Doc:  "`folder` to write a summary of every request to: names, sizes and counts, no text and no keys",
		bind: func(c *Config) pflag.Value { return text(&c.DebugRequestDir) }},

	{Flag: "log-level", Env: []string{"MLX_OMNI_LOG_LEVEL"}, Group: Log,
		Doc:  "what is logged on stderr, in small letters or capitals; warning and critical are warn and error; debug says of each request what it asks for and what was decided about it and why, in numbers and words of ours, without its text: docs/metrics.md",
		bind: func(c *Config) pflag.Value { return logLevel(&c.LogLevel) }},
	{Flag: "log-format", Group: Log,
		Doc:  "json makes every line on stderr an object with time, level and msg",
		bind: func(c *Config) pflag.Value { return choice(&c.LogFormat, "text", "json") }},
	{Flag: "log-prompts", Group: Log,
		Doc:  "let up to 80 bytes of a prompt into the log, around the place where it parts from what the same session sent before; with --log-level debug, all of it up to 64 KiB",
		bind: func(c *Config) pflag.Value { return boolean(&c.LogPrompts) }},
	{Flag: "enable-metrics", Also: []string{"metrics"}, Group: Log,
		Doc:  "serve /metrics for Prometheus, without asking for a key: docs/metrics.md",
		bind: func(c *Config) pflag.Value { return boolean(&c.Metrics) }},
	{Flag: "metrics-listen", Group: Log, Unset: "with the API, if --enable-metrics is set",
		Doc:  "`address` and port, such as 127.0.0.1:9100, on which /metrics is served, and nothing else; the API's own then has none",
		bind: func(c *Config) pflag.Value { return address(&c.MetricsAddr) }},
	{Flag: "metrics-vllm", Group: Log,
		Doc:  "add the names of vLLM to /metrics, which the Gateway API inference extension, llm-d and dashboards know",
		bind: func(c *Config) pflag.Value { return boolean(&c.MetricsVLLM) }},
})

// samplingKnobs are the flags of chat's sampling parameters.
func samplingKnobs() (knobs []Knob) {
	for _, p := range chat.ListedParameters {
		if p.Doc == "" {
			continue
		}
		k := Knob{Flag: strings.ReplaceAll(p.Name, "_", "-"), Env: p.Env, Group: Sampling, PerModel: true, Unset: "off", Doc: p.Doc}
		k.Also = append(slices.Clone(p.Also), "default-"+k.Flag)
		if p.Builtin != 0 {
			k.Unset = fmt.Sprint(p.Builtin)
		}
		if p.Recommended != 0 {
			k.Unset = "generation_config.json, then " + k.Unset
		}
		ok, want := func(x float64) bool { return p.Least <= x && x <= p.Most }, fmt.Sprintf("a number from %g to %g", p.Least, p.Most)
		switch {
		case p.Unbounded && p.Zero != 0: // an operator says what is meant
			ok, want = above0, "a number above 0"
		case p.Unbounded:
			ok, want = atLeast0, "a number from 0"
		}
		k.bind = func(c *Config) pflag.Value {
			if p.Whole {
				return optWhole(p.Field(&c.Sampling), int(p.Most))
			}
			return optFloat(p.Field(&c.Sampling), ok, want)
		}
		knobs = append(knobs, k)
	}
	return knobs
}

func atLeast0(x float64) bool { return x >= 0 && x <= math.MaxFloat32 }
func above0(x float64) bool   { return x > 0 && x <= math.MaxFloat32 }
func share(x float64) bool    { return x >= 0 && x <= 1 }
