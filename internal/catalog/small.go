package catalog

import (
	"context"
	"errors"
	"slices"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/config"
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
	own.ServedModelName, own.AnyModel, own.AdapterPath = nil, false, ""
	own.ContextLength = 0
	own.CacheMemoryMB = (cfg.CacheMemoryMB + smallPart - 1) / smallPart
	own.CacheMemoryPart = cfg.CacheMemoryPart / smallPart
	main.names.guess = false // either could be meant
	return &Small{main: main, small: New(src, &own)}
}

// ID is what the small model is called towards clients.
func (s *Small) ID() string { return s.small.ID() }

// Load loads both models, the main one first.
func (s *Small) Load(bs Backends) error {
	if err := s.main.Load(bs); err != nil {
		s.small.abandon(err)
		return err
	}
	return s.small.Load(bs)
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
