package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"hearth/internal/regular"
)

// Foreign is a flag of another server that is no other name of a knob: it says the same in another way, or there is nothing
// here that it could say. Command lines made for those servers start all the same.
type Foreign struct {
	Flag string
	Env  []string // variables that say the same and belong to other programs
	Kind Kind     // of its value
	// Sets is the knob that it gives the value of to; none: it sets nothing, and Answer says what that means.
	Sets string
	to   func(value string) string // "" leaves the knob alone
	// With is another flag, without which this one changes nothing.
	With   string
	Answer Answer
	Same   string // the value with which there is nothing to say: it is what is done here anyway, or it means off
	Doc    string // one line
}

// Kind is what a foreign flag's value is.
type Kind string

const (
	Switch Kind = "switch" // no value, or true or false
	Count  Kind = "int"    // a whole number from 0
	Amount Kind = "float"  // a number from 0
	Text   Kind = "string"
)

// Answer is what happens to a flag that sets nothing.
type Answer int

const (
	// Note is for what is so already, and for what bears on nothing here.
	Note Answer = iota
	// Warning is for what was asked for and is not there.
	Warning
	// Unprotected is a Warning of something that would have protected the machine or those who use it.
	Unprotected
	// Refusal is a Warning where MODEL is named, and ends the start where it is not: what would be served is not what was asked
	// for.
	Refusal
)

// Foreigners is the table of flags of mlx-lm's server, of vllm-mlx, also of those that only its documents have, and of Rapid-MLX
// that are no names of knobs. Of two that set one knob the later one wins.
var Foreigners = []Foreign{
	{Flag: "continuous-batching", Kind: Switch, Doc: "replies always run together, --max-sequences of them at most"},
	{Flag: "prefill-batch-size", Kind: Count, Doc: "prompts share steps of --prefill-step-size tokens, however many there are"},
	{Flag: "prompt-concurrency", Kind: Count, Doc: "prompts share steps of --prefill-step-size tokens, however many there are"},
	{Flag: "completion-batch-size", Kind: Count, Doc: "how many replies run together is --max-sequences"},
	{Flag: "chunked-prefill-tokens", Kind: Count, Sets: "prefill-step-size", to: unless0, Same: "0",
		Doc: "prompts always run in pieces; 0 leaves their length as it is"},
	{Flag: "mllm-prefill-step-size", Kind: Count, Same: "0", Doc: "only text is computed, in steps of --prefill-step-size tokens"},
	{Flag: "moe-top-k", Kind: Count, Answer: Warning, Doc: "every token has as many experts as the model was made with"},
	{Flag: "force-hybrid", Kind: Switch, Doc: "which layers are recurrent is what the model's config.json says"},
	{Flag: "no-hybrid", Kind: Switch, Doc: "which layers are recurrent is what the model's config.json says"},

	{Flag: "use-paged-cache", Kind: Switch, Doc: "keys and values always stand in pages"},
	{Flag: "paged-cache-block-size", Kind: Count, Doc: "pages have a length of their own"},
	{Flag: "max-cache-blocks", Kind: Count, Doc: "pages are bounded by the memory they take: --cache-memory-mb, --cache-memory-percent"},
	{Flag: "enable-prefix-cache", Kind: Switch, Sets: "prompt-cache", to: onlyIf("true"), Doc: "as --prompt-cache, which is on already"},
	{Flag: "disable-prefix-cache", Kind: Switch, Sets: "prompt-cache", to: onlyIf("false"), Doc: "as --prompt-cache=false"},
	{Flag: "prefix-cache-size", Kind: Count, Doc: "the prompt cache is bounded in bytes, by --prompt-cache-bytes and --cache-memory-mb, not in entries"},
	{Flag: "prompt-cache-size", Kind: Count, Doc: "the prompt cache is bounded in bytes, by --prompt-cache-bytes and --cache-memory-mb, not in entries"},
	{Flag: "no-memory-aware-cache", Kind: Switch, Doc: "the cache is always bounded in bytes: --cache-memory-mb, --cache-memory-percent"},
	{Flag: "prefix-trie-cache", Kind: Switch, Doc: "the prompt cache is a tree already"},
	{Flag: "prefix-trie-cache-size", Kind: Count, Doc: "the prompt cache is bounded in bytes, by --prompt-cache-bytes and --cache-memory-mb, not in entries"},
	{Flag: "prefix-trie-cache-memory-mb", Kind: Count, Sets: "prompt-cache-bytes", to: func(mib string) string { return mib + "MiB" },
		Doc: "as --prompt-cache-bytes, in MiB"},
	{Flag: "ssd-cache-max-gb", Kind: Amount, Sets: "prefix-cache-disk-mb", to: gibAsMiB, Doc: "as --prefix-cache-disk-mb, in GiB"},
	{Flag: "warm-prompts", Kind: Text, Answer: Warning, Doc: "no prompt is computed before it is asked for; what was computed survives restarts in --prefix-cache-dir"},
	{Flag: "prefix-cache-index", Kind: Text, Doc: "the prompt cache is a tree already"},
	{Flag: "hybrid-cache-entries", Kind: Count, Same: "0", Doc: "the prompt cache is bounded in bytes, by --prompt-cache-bytes and --cache-memory-mb, not in entries"},
	{Flag: "response-cache-entries", Kind: Count, Same: "0", Doc: "replies are always generated; what is kept is of prompts and answers as their beginnings"},
	{Flag: "pin-system-prompt", Kind: Switch, Doc: "nothing is pinned; what many prompts begin with stays longer by itself"},
	{Flag: "kv-disk-checkpoint-interval", Kind: Count, Same: "0", Doc: "--prefix-cache-dir says where prompts are kept on disk, and how often is nobody's to say"},

	{Flag: "kv-cache-quantization", Kind: Switch, Sets: "kv-type", to: onlyIf("q8"), Doc: "as --kv-type q8"},
	{Flag: "kv-cache-quantization-bits", Kind: Count, Sets: "kv-type", to: func(bits string) string { return bits }, With: "kv-cache-quantization",
		Doc: "as --kv-type q8 or q4"},
	{Flag: "kv-cache-quantization-group-size", Kind: Count, Answer: Warning, Same: "64", Doc: "groups of keys and values have 64 numbers"},
	{Flag: "kv-group-size", Kind: Count, Answer: Warning, Same: "64", Doc: "groups of keys and values have 64 numbers"},
	{Flag: "reasoning", Kind: Switch, Sets: "kv-type", to: onlyIf("q8"), Doc: "as --kv-type q8"},
	{Flag: "kv-cache-min-quantize-tokens", Kind: Count, Same: "0", Doc: "with --kv-type q8 or q4, prompts of every length are kept so"},
	{Flag: "quantized-kv-start", Kind: Count, Same: "0", Doc: "with --kv-type q8 or q4, every position is kept so, the first ones too"},

	{Flag: "gpu-memory-utilization", Kind: Amount, Answer: Unprotected,
		Doc: "the GPU's memory is not bounded as a whole; keys and values are, by --cache-memory-mb or --cache-memory-percent"},
	{Flag: "memory-budget-gb", Kind: Amount, Answer: Unprotected,
		Doc: "weights are not bounded: what is named is loaded and stays; keys and values are, by --cache-memory-mb or --cache-memory-percent"},
	{Flag: "auto-unload-idle-seconds", Kind: Amount, Answer: Unprotected, Same: "0", Doc: "a model that nobody asks stays in memory"},
	{Flag: "idle-unload-seconds", Kind: Amount, Answer: Unprotected, Same: "0", Doc: "a model that nobody asks stays in memory"},
	{Flag: "resident-model-idle-ttl", Kind: Amount, Answer: Unprotected, Same: "0", Doc: "a model that nobody asks stays in memory"},
	{Flag: "resident-memory-limit-gb", Kind: Amount, Answer: Unprotected, Same: "0",
		Doc: "weights are not bounded: what is named is loaded and stays; keys and values are, by --cache-memory-mb or --cache-memory-percent"},
	{Flag: "idle-cache-clear-seconds", Kind: Amount, Answer: Unprotected, Same: "0", Doc: "the prompt cache stays while nobody asks; DELETE /v1/cache empties it"},
	{Flag: "watchdog-ppid", Kind: Count, Answer: Unprotected, Doc: "the server does not end with another process; SIGTERM, Ctrl-C or, on a terminal, SIGHUP end it"},
	{Flag: "metal-cap-kv-bytes-per-token", Kind: Count, Same: "0", Doc: "what a token takes is known from the model"},

	{Flag: "models-config", Kind: Text, Answer: Refusal, Doc: "the file is not read: one model is served, the one that MODEL names; --small-model adds a second"},
	{Flag: "lazy-load-model", Kind: Switch, Answer: Warning, Doc: "the model is loaded at the start; requests wait until it is"},
	{Flag: "lazy-load", Kind: Switch, Answer: Warning, Doc: "the model is loaded at the start; requests wait until it is"},
	{Flag: "disk-stream", Kind: Switch, Sets: "low-memory", to: onlyIf("true"), Doc: "as --low-memory"},
	{Flag: "disk-stream-cache-gb", Kind: Amount, Doc: "with --low-memory the system decides how much of the files stays in memory"},
	{Flag: "listen-fd", Kind: Count, Sets: "listen", to: func(fd string) string { return FDPrefix + fd }, Doc: "as --listen fd:NUMBER"},

	{Flag: "draft-model", Kind: Text, Answer: Warning, Doc: "no second model drafts yet: --speculation looks drafts up in what was said, and replies are the same"},
	{Flag: "num-draft-tokens", Kind: Count, Doc: "how many are drafted is measured (--speculation)"},
	{Flag: "enable-mtp", Kind: Switch, Answer: Warning, Doc: "no second model drafts yet: --speculation looks drafts up in what was said, and replies are the same"},
	{Flag: "mtp", Kind: Switch, Answer: Warning, Doc: "no second model drafts yet: --speculation looks drafts up in what was said, and replies are the same"},
	{Flag: "speculative-config", Kind: Text, Answer: Warning, Doc: "no second model drafts yet: --speculation looks drafts up in what was said, and replies are the same"},
	{Flag: "mtp-num-draft-tokens", Kind: Count, Doc: "how many are drafted is measured (--speculation)"},
	{Flag: "mtp-optimistic", Kind: Switch, Doc: "no second model drafts yet; every token is the model's own"},
	{Flag: "specprefill", Kind: Switch, Answer: Warning, Doc: "prompts are computed whole"},
	{Flag: "pflash", Kind: Text, Doc: "prompts are computed whole"},
	{Flag: "spec-prefill", Kind: Switch, Answer: Warning, Doc: "prompts are computed whole"},
	{Flag: "specprefill-threshold", Kind: Count, Doc: "prompts are computed whole"},
	{Flag: "specprefill-keep-pct", Kind: Amount, Doc: "prompts are computed whole"},
	{Flag: "specprefill-backbone-pct", Kind: Amount, Doc: "prompts are computed whole"},
	{Flag: "specprefill-draft-model", Kind: Text, Answer: Warning, Doc: "prompts are computed whole"},

	{Flag: "mllm", Kind: Switch, Doc: "a model whose folder has a tower that is known here sees images anyway"},
	{Flag: "no-mllm", Kind: Switch, Doc: "the part of a model that sees takes no memory before the first image"},
	{Flag: "text-only", Kind: Switch, Doc: "the part of a model that sees takes no memory before the first image"},
	{Flag: "enable-mllm-cache", Kind: Switch, Doc: "what was made of images is kept anyway"},
	{Flag: "mllm-cache-max-mb", Kind: Count, Doc: "--image-cache-bytes bounds what is kept of images"},
	{Flag: "vision-min-pixels", Kind: Count, Same: "0", Doc: "images are prepared as the model's own files say"},
	{Flag: "vision-max-pixels", Kind: Count, Same: "0", Doc: "images are prepared as the model's own files say; --max-image-pixels refuses larger ones"},
	{Flag: "vision-prefill-token-budget", Kind: Count, Doc: "images are part of the prompt, whose steps --prefill-step-size bounds"},
	{Flag: "mllm-draft-model", Kind: Text, Answer: Warning, Doc: "no second model drafts yet: --speculation looks drafts up in what was said, and replies are the same"},
	{Flag: "mllm-draft-kind", Kind: Text, Doc: "how many are drafted is measured (--speculation)"},
	{Flag: "mllm-draft-block-size", Kind: Count, Doc: "how many are drafted is measured (--speculation)"},
	{Flag: "default-mllm-draft", Kind: Switch, Doc: "how many are drafted is measured (--speculation)"},
	{Flag: "max-audio-upload-mb", Kind: Count, Doc: "no audio is taken, whatever its size"},
	{Flag: "max-tts-input-chars", Kind: Count, Doc: "nothing is spoken, whatever its length"},

	{Flag: "trust-remote-code", Env: []string{"MLX_TRUST_REMOTE_CODE"}, Kind: Switch, Doc: "code that comes with a model is never run; none is needed"},
	{Flag: "use-default-chat-template", Kind: Switch, Doc: "a model's own chat template is used, unless --chat-template gives another"},
	{Flag: "relocate-mid-conversation-system", Kind: Switch, Doc: "where system messages of later turns go is found by trial: docs/templates.md"},
	{Flag: "no-thinking", Kind: Switch, Sets: "enable-thinking", to: onlyIf("false"), Doc: "as --enable-thinking=false"},
	{Flag: "no-think", Kind: Switch, Sets: "enable-thinking", to: onlyIf("false"), Doc: "as --enable-thinking=false"},
	{Flag: "no-tool-call-parser", Kind: Switch, Sets: "tool-call-parser", to: onlyIf("none"), Doc: "as --tool-call-parser none"},
	{Flag: "no-reasoning-parser", Kind: Switch, Sets: "reasoning-parser", to: onlyIf("none"), Doc: "as --reasoning-parser none"},
	{Flag: "download-timeout", Kind: Count, Doc: "hearth pull tries again what fails, as long as bytes arrive between"},
	{Flag: "download-retries", Kind: Count, Doc: "hearth pull tries again what fails, as long as bytes arrive between"},
	{Flag: "pipeline", Kind: Switch, Doc: "one machine runs the model, there is nobody to share its layers with"},
}

func unless0(s string) string {
	if n, err := strconv.ParseUint(s, 10, 64); err == nil && n == 0 {
		return ""
	}
	return s
}

// onlyIf is value for a switch that is on.
func onlyIf(value string) func(string) string {
	return func(s string) string {
		if on, _ := parseBool(s); on {
			return value
		}
		return ""
	}
}

func gibAsMiB(s string) string {
	gib, _ := strconv.ParseFloat(s, 64)                                  // it was checked
	return strconv.FormatFloat(max(1, math.Ceil(gib*1024)), 'f', -1, 64) // 0 would be as much as there is by default
}

// check reports a value that the flag's server would not take either.
func (f *Foreign) check(s string) error {
	switch f.Kind {
	case Switch:
		_, err := parseBool(s)
		return err
	case Count:
		_, err := parseInt(0, math.MaxInt)(s)
		return err
	case Amount:
		_, err := parseFloat(atLeast0, "a number from 0")(s)
		return err
	}
	return nil
}

// means reports whether the value says anything: a switch that is off does not, nor does what is so anyway.
func (f *Foreign) means(value string) bool {
	if f.Kind == Switch {
		on, _ := parseBool(value)
		return on
	}
	if f.Same == "" {
		return true
	}
	a, _ := strconv.ParseFloat(value, 64)
	b, _ := strconv.ParseFloat(f.Same, 64)
	return a != b
}

// own is the variable of this program that says the same.
func (f *Foreign) own() string { return variable(f.Flag) }

// foreignNamed finds a flag of other servers, with dashes or underscores; nil: there is none.
func foreignNamed(name string) *Foreign {
	name = strings.ReplaceAll(name, "_", "-")
	i := slices.IndexFunc(Foreigners, func(f Foreign) bool { return f.Flag == name })
	if i < 0 {
		return nil
	}
	return &Foreigners[i]
}

// given is a value with its origin, as Config.Origin has it.
type given struct{ value, from string }

// foreignValue is the pflag.Value of a foreign flag: it keeps what was given for Load.
type foreignValue struct {
	f    *Foreign
	into map[string]given
}

func (v *foreignValue) String() string { return "" }

func (v *foreignValue) Type() string {
	if v.f.Kind == Switch {
		return "bool"
	}
	return string(v.f.Kind)
}

func (v *foreignValue) Set(s string) error {
	if err := v.f.check(s); err != nil {
		return err
	}
	v.into[v.f.Flag] = given{s, "--" + v.f.Flag}
	return nil
}

// RegisterForeign adds the flags of other servers to fs, after Register. They do not show in help.
func (c *Config) RegisterForeign(fs *pflag.FlagSet) {
	for i := range Foreigners {
		f := &Foreigners[i]
		flag := fs.VarPF(&foreignValue{f, c.foreign}, f.Flag, "", f.Doc)
		flag.Hidden = true
		if f.Kind == Switch {
			flag.NoOptDefVal = "true"
		}
	}
}

// foreignEnv is what the environment says under the names of foreign flags that mean something to the command of fs.
func foreignEnv(fs *pflag.FlagSet, env Env, warn func(string)) (map[string]given, error) {
	all := map[string]given{}
	for i := range Foreigners {
		f := &Foreigners[i]
		if fs.Lookup(f.Flag) == nil && (f.Sets == "" || fs.Lookup(f.Sets) == nil) {
			continue
		}
		for _, name := range append([]string{f.own()}, f.Env...) {
			s, ok := env(name)
			if !ok || s == "" {
				continue
			}
			if err := f.check(s); err != nil {
				if name != f.own() {
					warn(fmt.Sprintf("ignoring %s=%s: %v", name, regular.Quote(s), err))
					continue
				}
				return nil, fmt.Errorf("environment variable %s=%s: %w", name, regular.Quote(s), err)
			}
			all[f.Flag] = given{s, name}
			break
		}
	}
	return all, nil
}

// forKnobs is what the foreign flags of one level (command line, environment, file) say of knobs, by the knob's flag.
func forKnobs(level map[string]given) map[string]given {
	out := map[string]given{}
	for i := range Foreigners {
		f := &Foreigners[i]
		g, ok := level[f.Flag]
		if !ok || f.Sets == "" {
			continue
		}
		if f.With != "" {
			if with := foreignNamed(f.With); !with.means(level[f.With].value) {
				continue
			}
		}
		if value := f.to(g.value); value != "" {
			out[f.Sets] = given{value, g.from}
		}
	}
	return out
}

// Reply is what there is to say about a foreign flag that was given.
type Reply struct {
	Flag   string
	Value  string // "": a switch
	Origin string // as Config.Origin has it
	Answer Answer
	Text   string
}

// Warns reports what is more than a note.
func (r *Reply) Warns() bool { return r.Answer != Note }

// Given is the setting as whoever made it wrote it.
func (r *Reply) Given() string {
	value := regular.Clip(r.Value)
	switch {
	case strings.HasPrefix(r.Origin, "--"):
		return strings.TrimSpace(r.Origin + " " + value)
	case strings.Contains(r.Origin, ":"): // a file and its line
		return r.Origin + ": " + strings.TrimSuffix(r.Flag+" = "+value, " = ")
	}
	return strings.TrimSuffix(r.Origin+"="+value, "=")
}

// Kind is a note or a warning, in a word.
func (r *Reply) Kind() string {
	if r.Warns() {
		return "warning"
	}
	return "note"
}

// Line is the whole of it but for its Kind, in one line.
func (r *Reply) Line() string { return r.Given() + ": " + r.Text }

// Replies are about the foreign flags that were given and do not just set a knob, in the table's order.
func (c *Config) Replies() []Reply {
	var out []Reply
	for i := range Foreigners {
		f := &Foreigners[i]
		g, ok := c.foreign[f.Flag]
		if !ok || !f.means(g.value) {
			continue
		}
		r := Reply{Flag: f.Flag, Value: g.value, Origin: g.from, Answer: f.Answer, Text: f.Doc}
		if f.Kind == Switch {
			r.Value = ""
		}
		if f.Sets != "" {
			switch from := c.origin[f.Sets]; {
			case from == g.from, c.refines(f, from):
				continue
			case f.With != "" && !foreignNamed(f.With).means(c.foreign[f.With].value):
				r.Text = "changes nothing without --" + f.With
			default:
				r.Text = f.Sets + " comes from " + from
			}
		}
		out = append(out, r)
	}
	return out
}

// refines reports whether from is a flag that goes with f, as the bits of a quantisation with the quantisation.
func (c *Config) refines(f *Foreign, from string) bool {
	return slices.ContainsFunc(Foreigners, func(o Foreign) bool { return o.With == f.Flag && c.foreign[o.Flag].from == from })
}

// Refused is the error of a foreign flag without which there is no telling what to serve; nil: there is none.
func (c *Config) Refused() error {
	for _, r := range c.Replies() {
		if r.Answer == Refusal && c.Model == "" {
			return fmt.Errorf("%s: no MODEL is named, and %s", r.Given(), r.Text)
		}
	}
	return nil
}
