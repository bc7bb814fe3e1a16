package generate

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"hearth/internal/chat"
	"hearth/internal/grammar"
	"hearth/internal/grammar/gbnf"
	"hearth/internal/grammar/jsonschema"
	"hearth/internal/grammar/lark"
	"hearth/internal/grammar/regex"
	"hearth/internal/schema"
)

// Bounds of what is kept of forms that requests asked for: their grammars learn as they are followed, which is bounded too.
const (
	mostForms     = 64
	mostFormBytes = 4 << 20 // of their texts
)

// forms keeps the grammars of the forms that were asked for last, by what they say.
type forms struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]*list.Element // of *madeForm
	used  list.List                           // the latest first
	bytes int
}

// madeForm is a form as a grammar.
type madeForm struct {
	*grammar.Grammar
	unheld []jsonschema.Unheld // what a text may miss that follows the grammar
	calls  madeCalls           // of a form of calls
	key    [sha256.Size]byte
	bytes  int
}

// of gives the grammar of a form.
func (k *forms) of(ctx context.Context, f *chat.Form) (*madeForm, error) {
	return k.get(fmt.Sprint(f.Kind), append([]string{f.Source}, f.Choices...), func() (*madeForm, error) {
		m, err := makeForm(ctx, f)
		if err != nil {
			return nil, formError(f.Path, err)
		}
		return m, nil
	})
}

// get gives the grammar of what texts of a kind say, which is made by whoever asks for it first.
func (k *forms) get(kind string, texts []string, make func() (*madeForm, error)) (*madeForm, error) {
	key, bytes := formKey(kind, texts)
	k.mu.Lock()
	e, ok := k.known[key]
	if ok {
		k.used.MoveToFront(e)
	}
	k.mu.Unlock()
	if ok {
		return e.Value.(*madeForm), nil
	}
	m, err := make()
	if err != nil {
		return nil, err
	}
	m.key, m.bytes = key, bytes
	k.keep(m)
	return m, nil
}

func (k *forms) keep(m *madeForm) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		k.known = map[[sha256.Size]byte]*list.Element{}
	}
	if k.known[m.key] != nil || m.bytes > mostFormBytes {
		return
	}
	k.known[m.key] = k.used.PushFront(m)
	for k.bytes += m.bytes; k.bytes > mostFormBytes || k.used.Len() > mostForms; {
		old := k.used.Remove(k.used.Back()).(*madeForm)
		delete(k.known, old.key)
		k.bytes -= old.bytes
	}
}

func formKey(kind string, texts []string) (key [sha256.Size]byte, bytes int) {
	h := sha256.New()
	add := func(s string) {
		_, _ = h.Write(binary.AppendUvarint(nil, uint64(len(s)))) // a hash takes everything
		_, _ = io.WriteString(h, s)
	}
	add(kind)
	for _, s := range texts {
		add(s)
		bytes += len(s)
	}
	h.Sum(key[:0])
	return key, bytes
}

// makeForm compiles a form.
func makeForm(ctx context.Context, f *chat.Form) (m *madeForm, err error) {
	m = &madeForm{}
	switch f.Kind {
	case chat.FormObject:
		m.Grammar, _, err = ofSchema(ctx, `{"type": "object"}`)
	case chat.FormSchema:
		m.Grammar, m.unheld, err = ofSchema(ctx, f.Source)
	case chat.FormRegex:
		m.Grammar, err = regex.Grammar(f.Source, regex.Options{Python: true})
	case chat.FormChoice:
		m.Grammar, err = grammar.OneOf(f.Choices...)
	case chat.FormGBNF:
		m.Grammar, err = gbnf.Compile(ctx, f.Source, gbnf.Options{})
	case chat.FormLark:
		m.Grammar, err = lark.Compile(ctx, f.Source)
	}
	return m, err
}

// textsOf adds the texts of a form of either of these kinds to a grammar.
func textsOf(ctx context.Context, b *grammar.Builder, f *chat.Form) (*grammar.Expr, error) {
	if f.Kind == chat.FormLark {
		return lark.Build(ctx, b, f.Source)
	}
	return regex.Compile(b, f.Source, regex.Options{Python: true})
}

func ofSchema(ctx context.Context, source string) (*grammar.Grammar, []jsonschema.Unheld, error) {
	root, err := schema.Parse([]byte(source))
	if err != nil {
		return nil, nil, err
	}
	s, err := jsonschema.Read(ctx, root)
	if err != nil {
		return nil, nil, err
	}
	return s.Grammar(ctx, jsonschema.Options{Declared: true})
}

// formError is what a request gets of whose form no grammar can be made.
func formError(path string, err error) error {
	var limit *grammar.LimitError
	switch {
	case errors.As(err, &limit):
		return chat.Boundf(chat.BoundForm, path, "%v", err)
	case errors.Is(err, grammar.ErrNothing):
		return chat.Boundf(chat.BoundEndless, path, "%v", err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return &chat.Error{Kind: chat.Invalid, Param: path, Msg: err.Error(), Err: err}
}
