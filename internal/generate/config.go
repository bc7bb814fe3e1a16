package generate

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"hearth/internal/chat"
	"hearth/internal/dialect"
	"hearth/internal/jinja"
	"hearth/internal/tokenizer"
)

// Config is what a Generator is made of. Load fills in Tokenizer, Template and Warnings.
type Config struct {
	Info       chat.Model // ID, Path, Created; the rest New fills in
	Engine     Engine
	Sight      *Sight // nil: the model cannot see
	Tokenizer  *tokenizer.Tokenizer
	Template   *Template     // nil: a base model, which continues text and does not chat
	Warnings   []string      // about faults in the folder's files that were mended or ignored, the file first
	StopIDs    []int32       // that end a turn, as files name them; see turnEnds for those that come on top
	Generation chat.Sampling // what the model's authors recommend
	Loop       Loop          // ends a reply as if the tokens had run out
	// RunawayStop ends greedy replies that will not end by themselves: see runaway.
	RunawayStop bool
	// Undrafted says that the engine runs no drafts: what clients predict of replies is of no use to it.
	Undrafted bool
	// Unforced leaves out the openings of demanded calls, for an engine that writes whole turns by itself.
	Unforced bool

	Defaults chat.Sampling // configured; they come before Generation
	Thinking chat.Toggle   // for requests that do not say
	// NoThinking has Off hold whatever requests say, where the template can be told so.
	NoThinking bool
	// ThinkingBudget is the tokens of reasoning of requests that do not say; 0: no limit.
	ThinkingBudget int
	// TemplateArgs are variables of the template for requests that do not set them; the generator's own come before them.
	TemplateArgs map[string]json.RawMessage
	// MaxTokens of the answer for requests that do not say, as far as there is room; 0: all the room.
	MaxTokens int
	// TokensCap bounds the answer of every request, whatever it says; 0: nothing does.
	TokensCap int
	Limits    jinja.Limits     // of the template
	Now       func() time.Time // for dates in prompts; nil means time.Now

	// RefuseMedia has images and other files refused, but for those in results of tools, in place of a note in the prompt.
	RefuseMedia bool
	// Advice is a sentence for clients whose prompt is too long, see advise; may be nil.
	Advice func(tokens, context int) string
	// Readable is how many tokens a prompt with tools may have for the model to make sense of it. Longer ones get the Advice.
	Readable int

	// PlainHistory encodes earlier answers as the template renders them, instead of keeping the tokens that were generated.
	PlainHistory bool
	// HideThinking says that callers see no reasoning: no text of what is stored, which may have it, is shown.
	HideThinking bool
	// NoReplay leaves out reasoning that clients leave out, instead of putting back what was generated.
	NoReplay bool
	// HistoryTTL is how long texts are remembered that nobody uses, HistorySessions of how many sessions; 0: as long and of as
	// many as there is room.
	HistoryTTL      time.Duration
	HistorySessions int

	// ToolParser and ReasoningParser name output formats to use instead of those that the evidence points to, as
	// dialect.Override takes them; "" and "auto" leave the choice.
	ToolParser, ReasoningParser string
	NoToolsInPrompt             bool // tools that the template has no place for are left out, not told of in the system text
	NoToolRepair                bool // calls are taken as the model writes them
	ConstrainTools              bool // calls are kept to the request's tools while they are written where nobody asked for it, see newCalls

	Warn func(line string) // is told, once, of something that requests ask for and do not get; may be nil
}

// Loop says when a reply goes round in circles: its last tokens are MinCount times the same run of MinSize to MaxSize
// tokens. The zero value finds none. The fields are those of generation_config.json's repetition_detection, which is
// vLLM's name for it.
type Loop struct {
	MinSize, MaxSize, MinCount int
}

// Check tells what New would refuse. It needs no Engine.
func (c Config) Check() error {
	_, _, _, err := c.trial()
	return err
}

// Does tells what New would find that the model can do, without its vocabulary: whether it gets tools, can think, and can see.
// Of a template that New would refuse it is nothing of these.
func (c Config) Does() (tools, thinking, sees bool) {
	f, _, p, err := c.trial()
	if err != nil || p == nil {
		return false, false, false
	}
	return p.tools(), c.thinks(f, findSwitches(p)), p.form.has(imagesPrinted)
}

// thinks reports whether a model of such a family can think.
func (c *Config) thinks(f *dialect.Family, s switches) bool {
	return s.works || f.Open != "" && c.Template.mentions(f.Close)
}

// trial picks the form of the output and finds out what the template can render; the prober is nil without one.
func (c *Config) trial() (f *dialect.Family, warnings []string, p *prober, err error) {
	f = dialect.Choose(dialect.Evidence{})
	if c.Template != nil {
		f, _ = chooseFamily(*c)
	}
	if f, warnings, err = dialect.Override(f, c.ToolParser, c.ReasoningParser); err != nil {
		return nil, nil, nil, err
	}
	if c.Template == nil {
		return f, nil, nil, nil
	}
	if p, err = findForm(c.Template, f, c.Limits, c.tells(), c.places()); err == nil && c.Template.given && !p.works {
		err = fmt.Errorf("the chat template fails on every trial conversation: %s", firstLine(p.err))
	}
	switch {
	case err == nil:
		return p.family, warnings, p, nil
	case c.Template.given:
		return nil, nil, nil, &GivenError{Problem: err.Error(), Advice: "it gets the variables messages (of role and content), add_generation_prompt, bos_token and eos_token"}
	}
	return nil, nil, nil, fmt.Errorf("make generator: %w", err)
}

// Summary is what a chat template and a vocabulary say about a model, for people who want to know why hearth treats it as
// it does.
type Summary struct {
	Source string `json:"source,omitempty"` // the file, or the name of the built-in renderer; "" without a template
	Tools  bool   `json:"tools"`
	// ToolsInPrompt tells that the template has no place for tools, so that they stand in the system text.
	ToolsInPrompt bool `json:"tools_in_prompt,omitempty"`

	Thinking string `json:"thinking"` // "no", "always" or "switch"
	System   bool   `json:"system"`   // prints a system message
	Content  string `json:"content"`  // "text" or "list": the form of messages it prints
	Parser   string `json:"parser"`
	Evidence string `json:"evidence"` // what the parser was chosen by
	// Override is the parser that is used in place of Parser because a setting says so, "" where none does.
	Override string `json:"override,omitempty"`
	// Reasoning is the tag that begins reasoning, "" for output without.
	Reasoning string `json:"reasoning,omitempty"`
	// Replays tells that reasoning which clients leave out of earlier turns is put back.
	Replays  bool     `json:"replays,omitempty"`
	Warnings []string `json:"warnings,omitempty"`  // where settings contradict the evidence
	Ends     []End    `json:"ends"`                // what ends a reply
	EndTexts []string `json:"end_texts,omitempty"` // that end one where no token does
}

// Summary examines the text side of a model by trial renderings.
func (c Config) Summary() Summary {
	var t Summary
	if c.Template == nil {
		t.Ends, _ = turnEnds(&c, nil, nil)
		return t
	}
	src := c.Template.Source()
	family, evidence := chooseFamily(c)
	t.Source, t.Parser, t.Evidence = c.Template.Name(), family.Name, evidence
	used, warnings, err := dialect.Override(family, c.ToolParser, c.ReasoningParser)
	if err != nil {
		used, warnings = family, []string{err.Error()}
	}
	if t.Reasoning, t.Warnings = strings.TrimSpace(used.Open), warnings; used.Name != family.Name {
		t.Override = used.Name
	}
	family = used
	t.Thinking, t.Content = "no", "text"
	if family.Open != "" && strings.Contains(src, family.Close) {
		t.Thinking = "always"
	}
	p, err := findForm(c.Template, family, c.Limits, c.tells(), c.places())
	if err != nil {
		t.Ends, _ = turnEnds(&c, family, nil)
		return t
	}
	if p.family != family {
		family, t.Parser, t.Evidence, t.Override = p.family, p.family.Name, "what the system text tells it to write", ""
	}
	t.Replays = c.replays(family)
	t.Ends, t.EndTexts = turnEnds(&c, family, p)
	t.Warnings = append(t.Warnings, missingMarks(&c, p, t.EndTexts)...)
	if findSwitches(p).works {
		t.Thinking = "switch"
	}
	t.Tools, t.ToolsInPrompt = p.tools(), p.form.has(toolsInSystem)
	if p.form.has(contentIsList) {
		t.Content = "list"
	}
	t.System = p.form.has(systemFirst)
	return t
}

// replays tells whether reasoning of earlier turns is remembered and put back.
func (c *Config) replays(f *dialect.Family) bool {
	return f.Replay == dialect.ReplayPrinted && f.Open != "" && !c.NoReplay && !c.PlainHistory
}

// chooseFamily picks the parser as New does, and says by what.
func chooseFamily(c Config) (*dialect.Family, string) {
	hasToken := func(s string) bool { return false }
	if c.Tokenizer != nil {
		hasToken = func(s string) bool { _, ok := c.Tokenizer.ID(s); return ok }
	}
	src := c.Template.Source()
	f := dialect.Choose(dialect.Evidence{Template: src, HasToken: hasToken})
	switch byTemplate := dialect.Choose(dialect.Evidence{Template: src}); {
	case len(f.Markers) == 0:
		return f, "no markup known in template or vocabulary"
	case byTemplate == f:
		return f, "the template's text"
	}
	return f, "tokens of the vocabulary"
}
