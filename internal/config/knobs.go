package config

import (
	"math"
	"strings"

	"github.com/spf13/pflag"
)

// Group gathers knobs that belong together: a subcommand takes whole groups, and the documentation has a table for each.
type Group string

const (
	Listen   Group = "Listening"
	Access   Group = "Access"
	Model    Group = "Model"
	Run      Group = "Running"
	Sampling Group = "Defaults for requests"
	Log      Group = "Logging"
)

// Groups is the order of the documentation.
var Groups = []Group{Listen, Access, Model, Run, Sampling, Log}

// Knob is a row of the table.
type Knob struct {
	Flag  string
	Also  []string // the same flag under the names other servers gave it
	Env   []string // environment names after HEARTH_<FLAG>, in order
	Group Group
	Doc   string // one line; what is in back quotes names the value in help
	// Unset says what happens where the default is empty.
	Unset string

	bind func(c *Config) pflag.Value
	// shared, if set, checks a value that came from a name in Env. Such names belong to other programs too, so a value
	// that fails is ignored with a warning, not an error.
	shared func(string) error
}

// Envs lists the environment names that set the knob, strongest first.
func (k *Knob) Envs() []string {
	own := "HEARTH_" + strings.ToUpper(strings.ReplaceAll(k.Flag, "-", "_"))
	return append([]string{own}, k.Env...)
}

// Knobs is the table: every setting of the program.
var Knobs = []Knob{
	{Flag: "host", Env: []string{"HOST"}, Group: Listen, Unset: "127.0.0.1 and ::1",
		Doc:  "`address` or name to listen on; 0.0.0.0 or :: for every address",
		bind: func(c *Config) pflag.Value { return text(&c.Host) }, shared: checkHost},
	{Flag: "port", Env: []string{"PORT"}, Group: Listen,
		Doc:  "port to listen on; 0 picks a free one",
		bind: func(c *Config) pflag.Value { return integer(&c.Port, 0, 65535) }, shared: checkPort},
	{Flag: "drain-timeout", Group: Listen,
		Doc:  "how long requests may go on after SIGTERM or Ctrl-C; a second signal quits at once",
		bind: func(c *Config) pflag.Value { return duration(&c.DrainTimeout) }},

	{Flag: "api-key", Env: []string{"ANTHROPIC_AUTH_TOKEN"}, Group: Access, Unset: "no check",
		Doc:  "`key` every request must show as Bearer, x-api-key or api-key",
		bind: func(c *Config) pflag.Value { return text(&c.APIKey) }},
	{Flag: "allowed-hosts", Also: []string{"trusted-hosts"}, Group: Access, Unset: "loopback, *.localhost, *.local, *.internal, own names, private literal addresses",
		Doc:  "further values of the Host header to accept; * accepts all",
		bind: func(c *Config) pflag.Value { return list(&c.AllowedHosts) }},
	{Flag: "allowed-origins", Also: []string{"cors-origins"}, Group: Access, Unset: "pages on loopback and own names",
		Doc:  "further web origins whose pages may call the API; * accepts all",
		bind: func(c *Config) pflag.Value { return list(&c.AllowedOrigins) }},

	{Flag: "model", Group: Model, Unset: "the embedded demo",
		Doc:  "`folder` or Hugging Face id to load; the argument of the command wins",
		bind: func(c *Config) pflag.Value { return text(&c.Model) }},
	{Flag: "served-model-name", Also: []string{"alias"}, Group: Model, Unset: "the id, or the folder's name",
		Doc:  "names the model goes by; the first is shown to clients",
		bind: func(c *Config) pflag.Value { return list(&c.ServedModelName) }},
	{Flag: "any-model", Group: Model,
		Doc:  "answer any model name with the loaded model instead of 404",
		bind: func(c *Config) pflag.Value { return boolean(&c.AnyModel) }},
	{Flag: "hf-hub-cache", Env: []string{"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}, Group: Model, Unset: "hub in the folder of hf-home",
		Doc:  "`folder` where Hugging Face clients keep models (models--org--name)",
		bind: func(c *Config) pflag.Value { return text(&c.HubCache) }},
	{Flag: "hf-home", Env: []string{"HF_HOME"}, Group: Model, Unset: "~/.cache/huggingface",
		Doc:  "`folder` of Hugging Face clients",
		bind: func(c *Config) pflag.Value { return text(&c.HFHome) }},

	{Flag: "backend", Group: Run,
		Doc:  "what runs the model",
		bind: func(c *Config) pflag.Value { return choice(&c.Backend, "auto", "cpu") }},
	{Flag: "precision", Group: Run,
		Doc:  "exact keeps activations in float, fast quantises them for speed; auto is exact for models small enough that it costs nothing (weights up to 64 MiB), else fast",
		bind: func(c *Config) pflag.Value { return choice(&c.Precision, "auto", "fast", "exact") }},
	{Flag: "threads", Group: Run, Unset: "one per core",
		Doc:  "threads of the cpu backend; 0 is one per core",
		bind: func(c *Config) pflag.Value { return integer(&c.Threads, 0, 1024) }},
	{Flag: "context-length", Also: []string{"max-context", "ctx-size", "max-model-len", "max-kv-size"}, Group: Run, Unset: "the model's own",
		Doc:  "`tokens` a request may use in all, prompt and output; 0 is what the model was made for, as far as the cache reaches",
		bind: func(c *Config) pflag.Value { return integer(&c.ContextLength, 0, math.MaxInt32) }},
	{Flag: "prompt-cache", Env: []string{"PROMPT_CACHE"}, Group: Run,
		Doc:  "reuse what was computed for the beginnings of earlier prompts and answers",
		bind: func(c *Config) pflag.Value { return boolean(&c.PromptCache) }, shared: checkBool},
	{Flag: "cache-memory-mb", Also: []string{"kv-cache-mb"}, Group: Run, Unset: "see cache-memory-percent",
		Doc:  "memory in `MiB` for keys and values, of running replies and of the prompt cache together; 0 leaves it to cache-memory-percent",
		bind: func(c *Config) pflag.Value { return integer(&c.CacheMemoryMB, 0, 1<<24) }},
	{Flag: "cache-memory-percent", Group: Run,
		Doc:  "the same as a `share` of the machine's memory from 0 to 1, lowered to what the weights and 15 % of their size leave",
		bind: func(c *Config) pflag.Value { return float(&c.CacheMemoryPart, share, "a number from 0 to 1") }},
	{Flag: "max-sequences", Also: []string{"max-num-seqs", "parallel", "decode-concurrency"}, Group: Run,
		Doc:  "replies that are generated together; more wait in the queue",
		bind: func(c *Config) pflag.Value { return integer(&c.MaxSequences, 1, 1024) }},
	{Flag: "prefill-step-size", Also: []string{"prefill-chunk", "chunked-prefill-tokens"}, Group: Run,
		Doc:  "prompt `tokens` that run in one step; smaller lets other replies go on more smoothly",
		bind: func(c *Config) pflag.Value { return integer(&c.PrefillStepSize, 1, MaxBatchTokens) }},
	{Flag: "step-target", Group: Run,
		Doc:  "how long a step may take while replies are being generated: prompts then run in smaller pieces; 0 never makes them smaller",
		bind: func(c *Config) pflag.Value { return duration(&c.StepTarget) }},

	{Flag: "temperature", Also: []string{"temp", "default-temperature"}, Group: Sampling, Unset: "generation_config.json, then 0.7",
		Doc:  "randomness; 0 always takes the likeliest token",
		bind: func(c *Config) pflag.Value { return optFloat(&c.Temperature, atLeast0, "a number from 0") }},
	{Flag: "top-p", Also: []string{"default-top-p"}, Group: Sampling, Unset: "generation_config.json, then 0.95",
		Doc:  "sample from the likeliest tokens that hold this share of the probability",
		bind: func(c *Config) pflag.Value { return optFloat(&c.TopP, share, "a number from 0 to 1") }},
	{Flag: "top-k", Also: []string{"default-top-k"}, Group: Sampling, Unset: "generation_config.json, then off",
		Doc: "sample from this many likeliest tokens; 0 is off",
		bind: func(c *Config) pflag.Value {
			return optional(&c.TopK, "int", parseInt(0, math.MaxInt32), itoa)
		}},
	{Flag: "min-p", Also: []string{"default-min-p"}, Group: Sampling, Unset: "generation_config.json, then off",
		Doc:  "drop tokens less likely than this share of the likeliest",
		bind: func(c *Config) pflag.Value { return optFloat(&c.MinP, share, "a number from 0 to 1") }},
	{Flag: "repetition-penalty", Also: []string{"default-repetition-penalty"}, Group: Sampling, Unset: "generation_config.json, then off",
		Doc:  "divide the logits of recent tokens; 1 is off",
		bind: func(c *Config) pflag.Value { return optFloat(&c.RepetitionPenalty, above0, "a number above 0") }},
	{Flag: "max-tokens", Group: Sampling, Unset: "the room left in the context",
		Doc:  "output `tokens` of a request that names no limit; 0 is the room left in the context",
		bind: func(c *Config) pflag.Value { return integer(&c.MaxTokens, 0, math.MaxInt32) }},
	{Flag: "enable-thinking", Group: Sampling, Unset: "the model's template decides",
		Doc: "let models that can think before they answer do so, or not",
		bind: func(c *Config) pflag.Value {
			return optional(&c.EnableThinking, "bool", parseBool, formatBool)
		}},

	{Flag: "tool-call-parser", Also: []string{"tool-parser"}, Group: Sampling,
		Doc:  "`name` of the form in which the model writes tool calls; auto goes by its template, then its vocabulary; none leaves calls as text; docs/dialects.md has the names",
		bind: func(c *Config) pflag.Value { return text(&c.ToolCallParser) }},
	{Flag: "reasoning-parser", Group: Sampling,
		Doc:  "`name` of the form in which the model writes reasoning; auto goes by its template; none leaves it as text",
		bind: func(c *Config) pflag.Value { return text(&c.ReasoningParser) }},
	{Flag: "enable-auto-tool-choice", Group: Sampling,
		Doc:  "accepted for command lines made for other servers; tools that a request declares can always be called",
		bind: func(c *Config) pflag.Value { return boolean(&c.EnableAutoToolChoice) }},

	{Flag: "log-level", Group: Log,
		Doc:  "what is logged on stderr",
		bind: func(c *Config) pflag.Value { return choice(&c.LogLevel, "debug", "info", "warn", "error") }},
}

func atLeast0(x float64) bool { return x >= 0 && x <= math.MaxFloat32 }
func above0(x float64) bool   { return x > 0 && x <= math.MaxFloat32 }
func share(x float64) bool    { return x >= 0 && x <= 1 }
