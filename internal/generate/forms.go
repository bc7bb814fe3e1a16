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
	"hearth/internal/grammar/jsonschema"
	"hearth/internal/textform"
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
		g, unheld, err := textform.Grammar(ctx, f)
		if err != nil {
			return nil, formError(f.Path, err)
		}
		return &madeForm{Grammar: g, unheld: unheld}, nil
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
