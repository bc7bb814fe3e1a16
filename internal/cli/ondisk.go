package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"hearth/internal/catalog"
	"hearth/internal/chat"
	"hearth/internal/hub"
)

// onDisk is the folders in which models are looked for, as catalog.Disk.
type onDisk struct{ roots *hub.Roots }

// Find implements catalog.Disk.
func (d onDisk) Find(name string) (*catalog.Found, error) {
	e, err := d.roots.Find(name)
	if err != nil {
		return nil, err
	}
	f, err := found(&e)
	var half *catalog.HalfError
	switch {
	case errors.As(err, &half):
		return nil, notLoadable(strings.TrimPrefix(err.Error(), "model ") + "; " + half.Hint())
	case e.State != hub.Whole:
		return nil, notLoadable(fmt.Sprintf("%s cannot be loaded: %s", e.ID, e.Reason))
	}
	return f, err
}

func notLoadable(msg string) error {
	return &chat.Error{Kind: chat.NotFound, Param: "model", Code: "model_not_loadable", Msg: msg}
}

// Named implements catalog.Disk.
func (d onDisk) Named(name string) bool { return d.roots.Aliases.Own(name) }

// List implements catalog.Disk.
func (d onDisk) List(ctx context.Context) []catalog.Found {
	entries, _ := d.roots.List(ctx) // an error is ctx's
	var all []catalog.Found
	for i := range entries {
		if entries[i].State != hub.Whole {
			continue
		}
		if f, err := found(&entries[i]); err == nil {
			all = append(all, *f)
		}
	}
	return all
}

func found(e *hub.Entry) (*catalog.Found, error) {
	src, err := catalog.FromDisk(e)
	if err != nil {
		return nil, err
	}
	return &catalog.Found{Source: src, Kind: chat.ModelKind(e.Kind)}, nil
}
