package catalog

import (
	"context"
	"errors"
	"fmt"

	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/embed"
	"hearth/internal/model"
)

// Encoders adds models that embed or rank to those that generate. It is a chat.Models over all of them. The main model may
// itself embed or rank: then nothing generates.
type Encoders struct {
	chat.Models
	main   *Catalog
	any    bool
	strict bool
	beside []*Encoder
}

var (
	_ chat.Models   = (*Encoders)(nil)
	_ chat.Encoders = (*Encoders)(nil)
)

// NewEncoders puts encoders beside the models of all, of which main is the first.
func NewEncoders(all chat.Models, main *Catalog, cfg *config.Config) *Encoders {
	return &Encoders{Models: all, main: main, any: cfg.AnyModel, strict: cfg.StrictModels}
}

// AddEmbedder and AddRanker put a model beside the others. They are called before Load.
func (s *Encoders) AddEmbedder(src *Source, cfg *config.Config) { s.add(src, cfg, model.Embeds) }

func (s *Encoders) AddRanker(src *Source, cfg *config.Config) { s.add(src, cfg, model.Ranks) }

// add takes of cfg everything but what is about the main model alone.
func (s *Encoders) add(src *Source, cfg *config.Config, kind model.Kind) {
	own := *cfg
	own.ServedModelName = nil
	s.beside = append(s.beside, newEncoder(src, Settings(src, &own), kind))
}

// Load loads the models beside, one after the other. With an error of the models before them it only passes that on.
func (s *Encoders) Load(bs Backends, before error) error {
	err := before
	for _, e := range s.beside {
		if err != nil {
			e.end(err)
			continue
		}
		err = e.load(bs)
	}
	return err
}

// Close frees the models beside. Those of all are closed by whom they belong to.
func (s *Encoders) Close() error {
	var errs []error
	for _, e := range s.beside {
		errs = append(errs, e.close())
	}
	return errors.Join(errs...)
}

// Ready are the encoders that are loaded, the main model first if it is one.
func (s *Encoders) Ready() []*Encoder {
	var ready []*Encoder
	if s.main.encodes() {
		ready = append(ready, s.main.enc)
	}
	for _, e := range s.beside {
		if e.Ready() {
			ready = append(ready, e)
		}
	}
	return ready
}

// Beside are the models that were added.
func (s *Encoders) Beside() []*Encoder { return s.beside }

// List implements chat.Models.
func (s *Encoders) List() []chat.Model {
	list := s.Models.List()
	for _, e := range s.beside {
		list = append(list, e.Model())
	}
	return list
}

// Open implements chat.Models. The names of models that do not generate are known, but nothing is there to open.
func (s *Encoders) Open(ctx context.Context, name string) (chat.Generator, error) {
	if name != "" && !s.main.names.is(name) {
		for _, e := range s.beside {
			if e.names.is(name) {
				return nil, generatesNothing(e.Model())
			}
		}
	}
	return s.Models.Open(ctx, name)
}

// generatesNothing refuses a request for text.
func generatesNothing(m chat.Model) *chat.Error {
	does, path := "embeds texts", "/v1/embeddings"
	if m.Kind == chat.Ranks {
		does, path = "ranks texts", "/v1/rerank"
	}
	return &chat.Error{Kind: chat.Invalid, Param: "model", Code: "model_not_supported",
		Msg: fmt.Sprintf("%q %s and generates none: it answers POST %s", m.ID, does, path)}
}

// OpenEmbedder implements chat.Encoders.
func (s *Encoders) OpenEmbedder(ctx context.Context, name string) (chat.Embedder, error) {
	return s.open(ctx, name, chat.Embeds)
}

// OpenRanker implements chat.Encoders.
func (s *Encoders) OpenRanker(ctx context.Context, name string) (chat.Ranker, error) {
	return s.open(ctx, name, chat.Ranks)
}

// open is the service of find, once the model is loaded.
func (s *Encoders) open(ctx context.Context, name string, kind chat.ModelKind) (*embed.Service, error) {
	e, err := s.find(ctx, name, kind)
	if err == nil {
		err = e.wait(ctx)
	}
	if err != nil {
		return nil, err
	}
	return e.service, nil
}

// wanted is how a kind of model is spoken of.
var wanted = map[chat.ModelKind]struct{ noun, verb, flag string }{
	chat.Embeds: {"an embedding model", "embeds texts", "--embedding-model"},
	chat.Ranks:  {"a ranking model", "ranks texts", "--rerank-model"},
}

// find is the model of a kind that a name stands for: its own, or one that clients have built in.
func (s *Encoders) find(ctx context.Context, name string, kind chat.ModelKind) (*Encoder, error) {
	all, err := s.all(ctx)
	if err != nil {
		return nil, err
	}
	var first *Encoder
	for _, e := range all {
		m := e.Model()
		if m.Kind == kind && first == nil {
			first = e
		}
		if !e.names.is(name) {
			continue
		}
		if m.Kind != kind {
			return nil, s.refuse(name, kind, m.Kind, first)
		}
		return e, nil
	}
	generates := s.main.names.is(name)
	switch {
	case first == nil || generates && !s.main.encodes():
		return nil, s.refuse(name, kind, chat.Chats, first)
	case s.any, name == "", generates:
		return first, nil
	}
	for _, a := range textAliases {
		if matchGlob(a, name) {
			return first, nil
		}
	}
	if _, deployment := chat.Deployment(ctx); deployment && !s.strict {
		s.main.tell(name, first.names.id())
		return first, nil
	}
	return nil, &chat.Error{Kind: chat.NotFound, Param: "model", Code: "model_not_found",
		Msg: fmt.Sprintf("%s is not served here; %s is %q (names that always work: default, local; the server's flag --any-model accepts every name)",
			shown(name), wanted[kind].noun, first.names.id())}
}

// all are the encoders; whether the main model is one is known when it is loaded.
func (s *Encoders) all(ctx context.Context) ([]*Encoder, error) {
	if len(s.beside) == 0 {
		select {
		case <-s.main.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if s.main.encodes() {
		return append([]*Encoder{s.main.enc}, s.beside...), nil
	}
	return s.beside, nil
}

// refuse says why a name is of no use, and what would be.
func (s *Encoders) refuse(name string, kind, is chat.ModelKind, instead *Encoder) *chat.Error {
	w := wanted[kind]
	if name == "" {
		name = s.main.ID()
	}
	msg := fmt.Sprintf("%s generates text", shown(name))
	if is != chat.Chats {
		msg = fmt.Sprintf("%s %s", shown(name), wanted[is].verb)
	}
	if instead != nil {
		msg += fmt.Sprintf("; what %s here is %q", w.verb, instead.names.id())
	} else {
		msg += fmt.Sprintf("; %s is needed: start the server with %s", w.noun, w.flag)
	}
	return &chat.Error{Kind: chat.Invalid, Param: "model", Code: "model_not_supported", Msg: msg}
}
