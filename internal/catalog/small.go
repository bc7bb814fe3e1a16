package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/generate"
	"hearth/internal/model"
)

// Small is two models: the main one, and a small one for the side work that clients give to models with haiku in their
// names. It is a chat.Models over two Catalogs, whose lives it shares.
type Small struct {
	main, small *Catalog
}

var _ chat.Models = (*Small)(nil)

// smallPart is the small model's share of the memory that keys and values of the main one get; it comes on top.
const smallPart = 4

// NewSmall puts the model of src beside main. Of cfg it takes everything but what is about the main model alone.
func NewSmall(main *Catalog, src *Source, cfg *config.Config) *Small {
	own := *cfg
	own.ServedModelName, own.AnyModel, own.AdapterPath, own.ChatTemplate = nil, false, "", ""
	own.ContextLength = 0
	own.CacheMemoryMB = (cfg.CacheMemoryMB + smallPart - 1) / smallPart
	own.CacheMemoryPart = cfg.CacheMemoryPart / smallPart
	main.names.guess = false // either could be meant
	return &Small{main: main, small: New(src, &own)}
}

// ID is what the small model is called towards clients.
func (s *Small) ID() string { return s.small.ID() }

// Load loads both models, the main one first. A small one that does not chat is of no use: names with haiku ask for nothing else.
func (s *Small) Load(bs Backends) error {
	if err := mustChat(s.small.src, s.small.cfg); err != nil {
		s.main.end(err)
		s.small.end(err)
		return err
	}
	if err := s.main.Load(bs); err != nil {
		s.small.end(err)
		return err
	}
	return s.small.Load(bs)
}

// mustChat refuses a base model, and a template that was given and does not work, before the weights of any model are read. What
// else is wrong with a folder is said when it is loaded.
func mustChat(src *Source, cfg *config.Config) error {
	if encodes(src) {
		return nil
	}
	if cfg.ChatTemplate != "" {
		if text, err := Text(src, cfg); err != nil || text.Template != nil {
			return err
		}
	} else if _, err := generate.LoadTemplate(src.FS, ""); !isBase(err) {
		return nil
	}
	return &model.LoadError{Where: src.Where, Problem: "the small model is a base model: it has no chat template, and what it is for, the side work of clients that chat, it cannot do",
		Hint: fmt.Sprintf("use one that chats, or give it a template in the settings file: [models.%q] and under it chat-template = \"NAME or FILE\"", src.ID)}
}

// Open implements chat.Models. Names of the main model win.
func (s *Small) Open(ctx context.Context, name string) (chat.Generator, error) {
	if s.isSmall(name) {
		return s.small.Open(ctx, "")
	}
	return s.main.Open(ctx, name)
}

func (s *Small) isSmall(name string) bool {
	if slices.Contains(s.main.names.exact, name) {
		return false
	}
	return slices.Contains(s.small.names.exact, name) || strings.Contains(strings.ToLower(name), "haiku")
}

// List implements chat.Models.
func (s *Small) List() []chat.Model { return append(s.main.List(), s.small.List()...) }

// Weights gives those of the small model, nil until it is loaded.
func (s *Small) Weights() *Weights { return s.small.Weights() }

// Close frees both.
func (s *Small) Close() error { return errors.Join(s.small.Close(), s.main.Close()) }
