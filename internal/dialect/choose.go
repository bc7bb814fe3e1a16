package dialect

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Evidence is what a family is chosen by. Names of models are not evidence: they go stale and misroute fine-tunes.
type Evidence struct {
	Template string                  // the chat template's text
	HasToken func(token string) bool // whether the vocabulary has a token of its own for this text; may be nil
}

func (e Evidence) mentions(all ...string) bool {
	for _, s := range all {
		if !strings.Contains(e.Template, s) {
			return false
		}
	}
	return true
}

func (e Evidence) token(all ...string) bool {
	for _, s := range all {
		if e.HasToken == nil || !e.HasToken(s) {
			return false
		}
	}
	return true
}

// families in the order they are tried: the more special markup first, because templates quote each other's.
var families = []*Family{harmony, muse, kimiK3, minimaxM3, minimax, hunyuan, longcat, solar, apertus, gigachat, gigachat30,
	miniCPM5, gemma4, functionGemma, dsml, deepseekV3, deepseekV31, kimi, seedOSS, commandA, lfm2, mistral, mistralV3, granite,
	nemotron, glm, jamba, qwen3Coder, hermes, functionaryV31, functionary, pythonic, llama3, xlam, gemma3, thinkOnly}

// Choose returns the family that the evidence points to, first by the template, then by the vocabulary. Without
// evidence the output is plain text.
func Choose(e Evidence) *Family {
	byTemplate := first(Evidence{Template: e.Template})
	if byTemplate == plain || byTemplate == thinkOnly && e.mentions("tools") { // some templates show tools but no call
		if f := first(Evidence{HasToken: e.HasToken}); f != plain {
			return reasoningOf(f, e)
		}
	}
	return reasoningOf(byTemplate, e)
}

func first(e Evidence) *Family {
	for _, f := range families {
		if f.matches(e) {
			return f
		}
	}
	return plain
}

// plain is output without markup.
var plain = tagFamily("plain", &syntax{}, nil, func(Evidence) bool { return false })

// thinkOnly is output with reasoning in <think> tags and no known form of tool calls.
var thinkOnly = tagFamily("think", &syntax{open: thinkOpen, close: thinkClose}, nil,
	func(e Evidence) bool { return e.mentions(thinkClose) || e.token(thinkOpen, thinkClose) })

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// style is a form of reasoning.
type style struct {
	open, close, label string
	reopen             bool
	names              []string // the first is its own, the others are those of parsers elsewhere
}

// channelNames are names of forms of reasoning that are a message of its own, read by the family alone.
var channelNames = []string{"gpt_oss", "harmony", "muse", "muse_spark"}

// styles in the order their evidence is looked for.
var styles = []style{
	{open: "[THINK]", close: "[/THINK]", names: []string{"mistral", "magistral", "ministral"}},
	{open: "<seed:think>", close: "</seed:think>", names: []string{"seed_oss", "seed"}},
	{open: "<|START_THINKING|>", close: "<|END_THINKING|>", names: []string{"command_a", "cohere", "cohere2", "north"}},
	{open: "<|channel>", close: "<channel|>", label: "thought", reopen: true, names: []string{"gemma4"}},
	{open: "<mm:think>", close: "</mm:think>", names: []string{"minimax_m3"}},
	{open: "<longcat_think>", close: "</longcat_think>", names: []string{"longcat"}},
	{open: "<think:opensource>", close: "</think:opensource>", names: []string{"hunyuan", "hy_v3"}},
	{open: "<|inner_prefix|>", close: "<|inner_suffix|>", names: []string{"apertus"}},
	{open: "<|open|>think<|sep|>", close: "<|close|>think<|sep|>", names: []string{"kimi_k3"}},
	{open: thinkOpen, close: thinkClose, names: []string{"think", "qwen3", "qwen", "deepseek_r1", "deepseek_v3", "deepseek", "glm4", "glm45", "glm47", "glm",
		"minimax", "minimax_m2", "kimi", "kimi_k2", "nemotron", "nemotron_v3", "granite", "step3", "step3p5", "poolside_v1", "holo2", "ernie45", "olmo3", "smollm3"}},
}

// reasoningOf adjusts a family to the form of reasoning that the template shows.
func reasoningOf(f *Family, e Evidence) *Family {
	if f.syntax == nil || f.Close != "" && e.mentions(f.Close) {
		return f
	}
	for i := range styles {
		if s := &styles[i]; e.mentions(s.close) {
			return withReasoning(f, s)
		}
	}
	return f
}

// derived holds families with another form of reasoning, so that each exists once.
var derived sync.Map // of [2]string{name, open} to *Family

func withReasoning(f *Family, s *style) *Family {
	if f.syntax == nil || f.Open == s.open {
		return f
	}
	syn := *f.syntax
	syn.open, syn.close, syn.label, syn.reopen = s.open, s.close, s.label, s.reopen
	return derive(f, &syn, s.open)
}

// derive makes a variant of f with another syntax; what tells it from other variants.
func derive(f *Family, syn *syntax, what string) *Family {
	d := tagFamily(f.Name, syn, f.Force, f.matches, slices.DeleteFunc(slices.Clone(f.Markers), func(m string) bool {
		return m == f.Open || m == f.Close
	})...)
	d.CallOpen, d.CallClose = f.CallOpen, f.CallClose
	got, _ := derived.LoadOrStore([2]string{f.Name, what}, d)
	return got.(*Family)
}

// toolNames are the names of parsers that people know, here and elsewhere, with the families they stand for. The
// evidence decides between several; without it the first is meant.
var toolNames = map[string][]*Family{
	"hermes": {hermes, qwen3Coder}, "nous": {hermes, qwen3Coder}, "qwen": {hermes, qwen3Coder}, "qwen3": {hermes, qwen3Coder}, "qwen25": {hermes},
	"qwen3_coder": {qwen3Coder}, "qwen3_xml": {qwen3Coder}, "qwen3_coder_xml": {qwen3Coder}, "qwen35": {qwen3Coder}, "qwen3_5": {qwen3Coder},
	"nemotron": {nemotron, qwen3Coder}, "nemotron3": {qwen3Coder}, "step3p5": {qwen3Coder}, "step": {qwen3Coder},
	"mistral": {mistral, mistralV3}, "mistral_v3": {mistralV3}, "devstral": {mistral}, "ministral": {mistral},
	"llama": {llama3, pythonic}, "llama3": {llama3}, "llama3_json": {llama3}, "llama4_json": {pythonic, llama3},
	"pythonic": {pythonic, lfm2}, "llama4_pythonic": {pythonic}, "llama4": {pythonic},
	"harmony": {harmony}, "gpt_oss": {harmony}, "openai": {harmony},
	"deepseek": {deepseekV3, deepseekV31, dsml}, "deepseek_v3": {deepseekV3}, "deepseek_r1": {deepseekV3},
	"deepseek_v31": {deepseekV31}, "deepseek_v3_1": {deepseekV31}, "deepseek_v32": {dsml}, "deepseek_v3_2": {dsml}, "deepseek_v4": {dsml}, "dsml": {dsml},
	"glm": {glm}, "glm4": {glm}, "glm45": {glm}, "glm46": {glm}, "glm47": {glm}, "laguna": {glm}, "poolside_v1": {glm}, "longcat": {longcat},
	"hunyuan": {hunyuan}, "hy_v3": {hunyuan}, "kimi": {kimi, kimiK3}, "kimi_k2": {kimi}, "moonshot": {kimi, kimiK3}, "kimi_k3": {kimiK3},
	"minimax": {minimax, minimaxM3}, "minimax_m2": {minimax}, "minimax_m3": {minimaxM3}, "minicpm5": {miniCPM5},
	"apertus": {apertus}, "gigachat": {gigachat, gigachat30}, "gigachat3": {gigachat, gigachat30}, "solar": {solar}, "solar_open": {solar},
	"muse": {muse}, "muse_spark": {muse}, "muse_glimmer": {muse}, "smollm3": {hermes},
	"gemma": {gemma4, functionGemma, gemma3}, "gemma3": {gemma3}, "gemma4": {gemma4},
	"functiongemma": {functionGemma}, "function_gemma": {functionGemma},
	"granite": {granite, hermes}, "granite3": {granite}, "granite4": {hermes}, "xlam": {xlam}, "firefunction": {xlam},
	"functionary": {functionary, functionaryV31}, "meetkai": {functionary, functionaryV31}, "functionary_v3": {functionary}, "functionary_v31": {functionaryV31},
	"lfm2": {lfm2}, "lfm2_5": {lfm2}, "liquid": {lfm2}, "seed_oss": {seedOSS}, "seed": {seedOSS},
	"command_a": {commandA}, "cohere": {commandA}, "command_r": {commandA}, "jamba": {jamba}, "apriel": {jamba},
}

// normal is a name as the tables spell it.
func normal(name string) string {
	return strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToLower(strings.TrimSpace(name)))
}

// ToolParsers lists the names that Override knows for forms of calls.
func ToolParsers() []string {
	names := []string{"auto", "none", "generic"} // the last is auto elsewhere
	for n := range toolNames {
		names = append(names, n)
	}
	slices.Sort(names[2:])
	return names
}

// ReasoningParsers lists the names that Override knows for forms of reasoning.
func ReasoningParsers() []string {
	names := append([]string{"auto", "none"}, channelNames...)
	for i := range styles {
		names = append(names, styles[i].names...)
	}
	slices.Sort(names[2:])
	return names
}

// CheckNames reports names that Override does not know.
func CheckNames(tool, reasoning string) error {
	if !slices.Contains(append(ToolParsers(), ""), normal(tool)) {
		return fmt.Errorf("no tool-call parser is named %q; there are %s", tool, strings.Join(ToolParsers(), ", "))
	}
	if !slices.Contains(append(ReasoningParsers(), ""), normal(reasoning)) {
		return fmt.Errorf("no reasoning parser is named %q; there are %s", reasoning, strings.Join(ReasoningParsers(), ", "))
	}
	return nil
}

// Override replaces what Choose made of the evidence by what a user asks for: names as ToolParsers and ReasoningParsers
// list them, "" and "auto" for the choice itself. Warnings say where that contradicts the template. Unknown names are an
// error that lists the known ones.
func Override(chosen *Family, tool, reasoning string) (f *Family, warnings []string, err error) {
	if err := CheckNames(tool, reasoning); err != nil {
		return nil, nil, err
	}
	f = chosen
	switch name := normal(tool); name {
	case "", "auto", "generic":
	case "none":
		f = withoutCalls(f)
	default:
		if of := toolNames[name]; !isOneOf(chosen, of) {
			f = of[0]
			if chosen.Force != nil {
				warnings = append(warnings, fmt.Sprintf("tool-call parser %s is asked for, but the model's template or vocabulary shows calls of %s", tool, chosen.Name))
			}
			if f.syntax != nil && chosen.syntax != nil && chosen.Open != "" && chosen.Open != f.Open {
				f = withReasoning(f, &style{open: chosen.Open, close: chosen.Close, label: chosen.syntax.label, reopen: chosen.syntax.reopen})
			}
		}
	}
	g, warning := overrideReasoning(f, normal(reasoning))
	if warning != "" {
		warnings = append(warnings, warning)
	}
	return g, warnings, nil
}

func isOneOf(f *Family, of []*Family) bool {
	return slices.ContainsFunc(of, func(o *Family) bool { return o.Name == f.Name })
}

func overrideReasoning(f *Family, name string) (*Family, string) {
	isChannel := slices.Contains(channelNames, name)
	switch {
	case name == "" || name == "auto" || f.syntax == nil && isChannel:
		return f, ""
	case f.syntax == nil || isChannel:
		return f, fmt.Sprintf("reasoning parser %s is asked for, but reasoning is not apart from calls in the output of %s", name, f.Name)
	case name == "none":
		return withReasoning(f, &style{}), ""
	}
	for i := range styles {
		if s := &styles[i]; slices.Contains(s.names, name) {
			if f.Open != "" && f.Open != s.open && f.Name != thinkOnly.Name {
				return withReasoning(f, s), fmt.Sprintf("reasoning parser %s is asked for, but output of %s has its reasoning in %s", name, f.Name, f.Open)
			}
			return withReasoning(f, s), ""
		}
	}
	return f, ""
}

// Taught is the family of a model that its prompt tells how to write calls: f itself where it has calls of its own, else hermes
// with f's form of reasoning.
func Taught(f *Family) *Family {
	if f.Force != nil || f.syntax == nil {
		return f
	}
	return withReasoning(hermes, &style{open: f.Open, close: f.Close, label: f.syntax.label, reopen: f.syntax.reopen})
}

// CallsAreText tells whether a name, as Override takes it, asks for calls to be left alone.
func CallsAreText(tool string) bool { return normal(tool) == "none" }

// withoutCalls is a family whose calls are plain text.
func withoutCalls(f *Family) *Family {
	if f.syntax == nil { // its channels cannot be told from its calls
		return f
	}
	syn := &syntax{open: f.syntax.open, close: f.syntax.close, reopen: f.syntax.reopen, label: f.syntax.label, drop: f.syntax.drop}
	d := *derive(f, syn, "none "+f.Open)
	d.Force, d.CallOpen, d.CallClose = nil, "", ""
	return &d
}
