package script

import (
	"context"
	"fmt"
	"iter"

	"hearth/internal/chat"
	"hearth/internal/engine"
	"hearth/internal/generate"
	"hearth/internal/timeline"
)

// defaultContext is the context of a scripted model that was not given another, in tokens.
const defaultContext = 200_000

// Generator is a chat.Generator that answers from a script. It is safe for concurrent use.
type Generator struct {
	script   *Script
	player   *player
	byFamily map[string]*generate.Generator
}

var _ chat.Generator = (*Generator)(nil)

// New makes a Generator with the text side of a model. The engine of text is left out; context is the most tokens of
// a request, 0 for defaultContext; hour, if not nil, is told what is played.
func New(text generate.Config, s *Script, context int, hour *timeline.Hour) (*Generator, error) {
	if context == 0 {
		context = defaultContext
	}
	p := &player{tok: text.Tokenizer, context: context, meter: hour.Meter()}
	text.Engine, text.Loop, text.RunawayStop, text.Unforced = p, generate.Loop{}, false, true // a script says what it says
	g := &Generator{script: s, player: p, byFamily: map[string]*generate.Generator{}}
	own := text.ToolParser
	for _, r := range append([]*rule{{}}, s.rules...) {
		if g.byFamily[r.family] != nil {
			continue
		}
		text.ToolParser = own
		if r.family != "" {
			text.ToolParser = r.family
		}
		of, err := generate.New(text)
		if err != nil {
			return nil, fmt.Errorf("script line %d: family: %w", r.line, err)
		}
		g.byFamily[r.family] = of
	}
	return g, nil
}

// Model describes the model whose text side answers.
func (g *Generator) Model() chat.Model { return g.byFamily[""].Model() }

// Live lists the replies that are being played.
func (g *Generator) Live() []engine.Live { return g.player.running() }

// Warnings says where parsers that were asked for contradict the model's template.
func (g *Generator) Warnings() []string { return g.byFamily[""].Warnings() }

// Count returns the length of the prompt in tokens, as the line that would answer it sees it.
func (g *Generator) Count(ctx context.Context, r *chat.Request) (int, error) {
	v := newView(r)
	family := ""
	if rule := g.script.find(&v, false); rule != nil {
		family = rule.family
	}
	return g.byFamily[family].Count(ctx, r)
}

// Generate answers with the first line that matches.
func (g *Generator) Generate(ctx context.Context, r *chat.Request) (iter.Seq2[chat.Event, error], error) {
	v := newView(r)
	rule := g.script.find(&v, true)
	if rule == nil {
		return nil, noAnswer(v)
	}
	raw, err := rule.say(v)
	if err != nil {
		return nil, err
	}
	return g.byFamily[rule.family].Generate(withAnswer(ctx, &answer{raw: raw, tokensPerSec: rule.tokensPerSec, fault: rule.fault}), r)
}
