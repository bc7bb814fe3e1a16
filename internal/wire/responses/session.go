package responses

import (
	"context"
	"slices"

	"hearth/internal/store"
)

// maxLinks bounds the responses of a connection that can be built on.
const maxLinks = 32

// session is what was said on one connection and is not in the store. Responses build on each other there, and nobody else sees
// them. What there is no room for is forgotten, the oldest first: a client that names it is told to send it again.
type session struct {
	of    *sockets
	most  int64   // bytes of this one
	bytes int64   // that are held
	links []*link // that can be built on, the oldest first
}

// link is a response with what it builds on.
type link struct {
	id       string
	previous *link        // the one before, on this connection
	root     string       // where there is none: the stored response that it builds on, if any
	items    []store.Item // input and output of its own
	bytes    int64
	depth    int // how many are before it
	users    int // what needs it: the session, and those that build on it
}

// chain is the items of a response and of those before it on its connection, and the stored response that the first builds on.
func (l *link) chain() (items []store.Item, root string) {
	own := make([][]store.Item, 0, l.depth+1)
	for at := l; at != nil; at = at.previous {
		own, root = append(own, at.items), at.root
	}
	slices.Reverse(own)
	return slices.Concat(own...), root
}

// chain gives what a response that builds on id has before its own input; on is that response, if it is the connection's.
func (p past) chain(id string, on *link) ([]store.Item, error) {
	if on == nil {
		return p.store.Chain(p.ctx, p.owner, id, false)
	}
	if on.depth >= store.MaxChain {
		return nil, store.ErrLong
	}
	items, root := on.chain()
	if root == "" {
		return items, nil
	}
	before, err := p.store.Chain(p.ctx, p.owner, root, false)
	return append(before, items...), err
}

// find is a response that can be built on; nil: there is none of that id.
func (s *session) find(id string) *link {
	if i := slices.IndexFunc(s.links, func(l *link) bool { return l.id == id }); i >= 0 {
		return s.links[i]
	}
	return nil
}

// Begin implements records: what has not ended is not built on.
func (s *session) Begin(context.Context, *store.Response) error { return nil }

// Finish implements records.
func (s *session) Finish(_ context.Context, r *store.Response) error {
	if r.Status != completed && r.Status != unfinished {
		return nil
	}
	l := &link{id: r.ID, previous: s.find(r.Previous), items: slices.Concat(r.Input, r.Output), users: 1}
	if l.previous == nil {
		l.root = r.Previous
	} else {
		l.previous.users++
		l.depth = l.previous.depth + 1
	}
	for _, i := range l.items {
		l.bytes += int64(len(i.ID) + len(i.Body))
	}
	s.bytes += l.bytes
	s.of.kept.Add(l.bytes)
	s.links = append(s.links, l)
	for len(s.links) > maxLinks || len(s.links) > 0 && (s.bytes > s.most || s.of.kept.Load() > s.of.most) {
		s.forget(s.links[0])
	}
	return nil
}

// evict forgets a response after one that builds on it has failed, so that the client begins anew; nil is none.
func (s *session) evict(l *link) {
	if l != nil && slices.Contains(s.links, l) {
		s.forget(l)
	}
}

// forget lets nothing build on a response any more. What builds on it already keeps it.
func (s *session) forget(l *link) {
	s.links = slices.DeleteFunc(s.links, func(other *link) bool { return other == l })
	for ; l != nil; l = l.previous {
		if l.users--; l.users > 0 {
			return
		}
		s.bytes -= l.bytes
		s.of.kept.Add(-l.bytes)
	}
}

// drop forgets all.
func (s *session) drop() {
	for len(s.links) > 0 {
		s.forget(s.links[0])
	}
}
