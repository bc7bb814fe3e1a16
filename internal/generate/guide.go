package generate

import (
	"slices"
	"strings"
	"sync"

	"hearth/internal/engine"
	"hearth/internal/grammar"
	"hearth/internal/sample"
)

// calls knows what keeps tool calls to the tools of a request while they are written: the vocabulary as package grammar wants
// it, and the token that opens a call. There is none for formats in which calls are not one JSON object, and for vocabularies
// in which what opens a call is not a token of its own.
type calls struct {
	open  int32
	vocab func() *grammar.Vocab // made when a request first has tools
}

// newCalls is nil where calls are not guided.
func newCalls(g *Generator) *calls {
	f, tok := g.family, g.cfg.Tokenizer
	if !g.cfg.ConstrainTools || f.CallOpen == "" {
		return nil
	}
	open, ok := tok.ID(f.CallOpen)
	if !ok || string(tok.Bytes(open)) != f.CallOpen {
		return nil
	}
	return &calls{open: open, vocab: sync.OnceValue(func() *grammar.Vocab {
		return grammar.NewVocab(tok.Size(), func(id int32) []byte {
			if !g.visible(id) || slices.Contains(g.cfg.StopIDs, id) {
				return nil
			}
			return tok.Bytes(id)
		})
	})}
}

// guide follows one reply: from what opens a call to its end it tells which tokens may come. Behind a token that comes all the
// same, be it that a budget put it there or that no token would do, the rest of that call is left alone.
type guide struct {
	g     *Generator
	vocab *grammar.Vocab
	form  *grammar.Grammar
	match *grammar.Matcher // nil outside of calls
}

// newGuide is nil where there is nothing to guide.
func (g *Generator) newGuide(p *prompt) *guide {
	if g.calls == nil || p.raw || len(p.options.Tools) == 0 {
		return nil
	}
	tools := make([]grammar.Tool, len(p.options.Tools))
	for i, t := range p.options.Tools {
		tools[i] = grammar.Tool(t)
	}
	u := &guide{g: g, vocab: g.calls.vocab(), form: grammar.Call(tools, g.family.CallClose)}
	if _, begun, ok := strings.Cut(p.forced, g.family.CallOpen); ok {
		u.match = u.vocab.Match(u.form)
		u.accept([]byte(begun))
	}
	return u
}

// next takes note of a token and returns those that may follow, nil for all.
func (u *guide) next(id int32) sample.Set {
	switch {
	case id == u.g.calls.open:
		u.match = u.vocab.Match(u.form)
	case u.match != nil:
		u.accept(u.g.cfg.Tokenizer.Bytes(id))
	}
	return u.only()
}

func (u *guide) accept(written []byte) {
	if !u.match.Accept(written) || u.match.Done() {
		u.match = nil
	}
}

// only is what may come now.
func (u *guide) only() sample.Set {
	if u.match == nil {
		return nil
	}
	return u.match.Allowed()
}

// steer is the engine's hook for a choice, and what its first token must be of: a budget of reasoning, and calls that are kept
// to the request's tools. The hook is nil where there is neither, as it keeps the engine from working ahead.
func (g *Generator) steer(p *prompt, budget int) (func(int32) engine.Course, sample.Set) {
	limit, calls := g.newBudget(p, budget), g.newGuide(p)
	if limit == nil && calls == nil {
		return nil, nil
	}
	var first sample.Set
	if calls != nil {
		first = calls.only()
	}
	return func(id int32) (c engine.Course) {
		if limit != nil {
			c.IDs = limit(id)
		}
		if calls != nil {
			c.Only = calls.next(id)
		}
		return c
	}, first
}
