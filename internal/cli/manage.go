package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"hearth/internal/budget"
	"hearth/internal/catalog"
	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/hub"
	"hearth/internal/regular"
	"hearth/internal/server"
	"hearth/internal/wire"
)

// newToken makes the token of a server: nobody guesses it.
func newToken() string { return rand.Text() }

// manager is what the server's routes under /hearth/ are about.
type manager struct {
	cfg    *config.Config
	on     *hub.Roots
	models *catalog.Catalog
	fits   *fits
}

// Models implements server.Manager.
func (m manager) Models(ctx context.Context, tokens int) (server.ManagedList, error) {
	entries, err := m.on.List(ctx)
	if err != nil {
		return server.ManagedList{}, err
	}
	var all []server.Managed
	at := map[string]int{} // by folder
	for i := range entries {
		e := lineOf(&entries[i])
		at[e.Folder] = len(all)
		all = append(all, server.Managed{ID: e.ID, Kind: e.Kind, State: string(e.State), Reason: e.Reason, Missing: e.Missing, Folder: e.Folder,
			Revision: e.Revision, ModelType: e.ModelType, Bits: e.Bits, Bytes: e.Bytes})
	}
	for i, row := range m.models.Rows(ctx) {
		d := &row.Model
		j, ok := at[d.Path]
		if !ok || d.Path == "" {
			j = len(all)
			all = append(all, server.Managed{State: string(hub.Whole), Folder: d.Path, Bytes: row.Bytes})
		}
		s := &all[j]
		s.ID, s.Names, s.Kind, s.Status, s.Pinned, s.Default, s.Context = d.ID, row.Names, cmp.Or(string(d.Kind), "chat"), row.State, row.Pinned, i == 0, d.Context
		s.Requests, s.Waiting, s.LastUse, s.Until, s.Problem, s.Held = row.Users, row.Waiting, stamp(row.LastUse), stamp(row.Until), row.Problem, row.Held
	}
	list := server.ManagedList{Models: all}
	memory := m.models.Memory()
	if memory == nil || memory.Capacity() == budget.Unknown {
		return list, nil
	}
	list.Memory = &server.Room{Capacity: memory.Capacity()}
	list.Memory.Held, list.Memory.Free = memory.Room()
	if tokens == 0 {
		return list, nil
	}
	needs, err := m.fits.of(ctx, entries, tokens, m.cfg, list.Memory.Capacity)
	for i, f := range needs {
		if s := &all[i]; f != nil && s.Held == 0 && s.State == string(hub.Whole) {
			s.Memory = &server.Need{Context: f.Context, Bytes: f.Bytes, Fits: f.Fits, Beside: f.Bytes <= list.Memory.Free, Mapped: f.Mapped}
		}
	}
	return list, err
}

// stamp is a time as JSON has it, "" for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Load implements server.Manager.
func (m manager) Load(ctx context.Context, model string, keep *time.Duration) error {
	return m.models.LoadModel(chat.WithKeepAlive(ctx, keep), model)
}

// Unload implements server.Manager.
func (m manager) Unload(ctx context.Context, model string) error {
	return m.models.UnloadModel(ctx, model)
}

// Pull implements server.Manager.
func (m manager) Pull(ctx context.Context, model, revision string, tell func(event string, body any) error) error {
	if to, ok := m.on.Aliases.Lookup(model); ok {
		model = to
	}
	if revision != "" {
		model += "@" + revision
	}
	p := &puller{cfg: m.cfg, out: io.Discard, events: func(e pullEvent) error { return tell(e.Event, e) }}
	_, err := p.pull(ctx, model, nil)
	var fetch *hub.FetchError
	switch {
	case err == nil, ctx.Err() != nil:
		return err
	case !errors.As(err, &fetch):
		return refused(err)
	}
	e := &chat.Error{Kind: chat.Invalid, Param: "model", Code: "model_not_fetched", Msg: err.Error(), Err: err}
	switch fetch.Status {
	case http.StatusNotFound:
		e.Kind = chat.NotFound
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Kind = chat.Forbidden
	}
	if fetch.Advice != "" {
		e.Msg += "; " + fetch.Advice
	}
	return e
}

// refused is err as clients get it: what they did wrong, and what to do.
func refused(err error) error {
	var missing *hub.NotFoundError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &missing):
		return &chat.Error{Kind: chat.NotFound, Param: "model", Code: "model_not_found", Msg: err.Error() + "; " + catalog.Missing(missing), Err: err}
	}
	e := &chat.Error{Kind: chat.Invalid, Msg: regular.Short(err).Error(), Err: err}
	if errors.Is(err, hub.ErrInUse) {
		e.Param, e.Code = "model", wire.CodeInUse
	}
	var h interface{ Hint() string }
	if errors.As(err, &h) && h.Hint() != "" {
		e.Msg += "; " + h.Hint()
	}
	return e
}

// Remove implements server.Manager. Only models of caches go: others are somebody's own folders.
func (m manager) Remove(_ context.Context, model, revision string) (server.Removed, error) {
	name := model
	if revision != "" {
		name += "@" + revision
	}
	e, err := m.on.Find(name)
	if err != nil {
		return server.Removed{}, refused(err)
	}
	if !e.Cached() {
		return server.Removed{}, chat.Invalidf("model", "%s is in no cache: hearth has not put it there, and removes it on the command line only: hearth rm --force", regular.Clip(e.Dir))
	}
	p, err := m.on.PlanRemoval(e)
	if err == nil {
		err = m.on.Remove(p)
	}
	if err != nil {
		return server.Removed{}, refused(err)
	}
	return server.Removed{ID: e.ID, Revision: e.Revision, Bytes: p.Bytes, Kept: p.Kept, Left: append([]string{}, p.Left...)}, nil
}

// Aliases implements server.Manager.
func (m manager) Aliases(context.Context) ([]server.Alias, error) {
	all, err := m.on.Aliases.List()
	return aliasesOf(all), refused(err)
}

// SetAlias implements server.Manager. A folder must be one that models are looked for in.
func (m manager) SetAlias(_ context.Context, a server.Alias) error {
	if catalog.Reserved(a.Name) {
		return chat.Invalidf("name", "%s has a meaning of its own", regular.Quote(a.Name))
	}
	if filepath.IsAbs(a.Model) {
		if _, err := m.on.Find(a.Model); err != nil {
			return refused(err)
		}
	}
	return refused(m.on.Aliases.Set(a.Name, a.Model))
}

// RemoveAlias implements server.Manager.
func (m manager) RemoveAlias(_ context.Context, name string) error {
	err := m.on.Aliases.Remove(name)
	if errors.Is(err, hub.ErrNoAlias) {
		return &chat.Error{Kind: chat.NotFound, Param: "name", Msg: err.Error()}
	}
	return refused(err)
}
