package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"hearth/internal/regular"
)

const (
	// MaxItems bounds the items of a conversation that may be added to. What a response says is added all the same.
	MaxItems = 10_000
	// MaxConversation bounds the bytes of its items in the same way, and those of a chain, which is read as a whole.
	MaxConversation = 64 << 20
)

// Errors about conversations.
var (
	ErrHeld  = errors.New("another response on the conversation is in progress, or it has changed meanwhile")
	ErrFull  = fmt.Errorf("a conversation has at most %d items and %d MiB", MaxItems, MaxConversation>>20)
	ErrTwice = errors.New("the conversation has an item of that id already")
)

// Conversation is a list of items that responses are made on: what goes into them and comes out is added to it.
type Conversation struct {
	ID       string
	Owner    Owner
	Created  time.Time
	Metadata []byte // JSON
	// Next is the position behind its last item. Every change of its items moves it on, so that it tells states apart.
	Next int64

	items int
	bytes int64
}

// querier is a database or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func conversation(ctx context.Context, db querier, owner Owner, id string) (*Conversation, error) {
	c := &Conversation{ID: id, Owner: owner}
	var created int64
	err := db.QueryRowContext(ctx, "SELECT created, metadata, next, items, bytes FROM conversations WHERE id = ? AND owner = ? AND archived = 0", id, owner[:]).
		Scan(&created, &c.Metadata, &c.Next, &c.items, &c.bytes)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrUnknown
	}
	c.Created = time.UnixMilli(created)
	return c, err
}

// save keeps what has changed.
func (c *Conversation) save(ctx context.Context, tx *sql.Tx, now time.Time) error {
	_, err := tx.ExecContext(ctx, "UPDATE conversations SET used = ?, metadata = ?, next = ?, items = ?, bytes = ? WHERE id = ?",
		now.UnixMilli(), c.Metadata, c.Next, c.items, c.bytes, c.ID)
	return err
}

// fits tells whether items may be added.
func (c *Conversation) fits(items []Item) bool {
	bytes := c.bytes
	for _, i := range items {
		bytes += int64(len(i.Body))
	}
	return c.items+len(items) <= MaxItems && bytes <= MaxConversation
}

// add adds items behind the last one.
func (c *Conversation) add(ctx context.Context, tx *sql.Tx, items []Item, now time.Time) error {
	stmt, err := tx.PrepareContext(ctx, "INSERT INTO conversation_items (conversation, n, id, body) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING")
	if err != nil {
		return err
	}
	defer stmt.Close()
	for _, i := range items {
		done, err := stmt.ExecContext(ctx, c.ID, c.Next, i.ID, i.Body)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return errors.Join(fmt.Errorf("%w: %.100q", ErrTwice, i.ID), err)
		}
		c.Next++
		c.items++
		c.bytes += int64(len(i.Body))
	}
	return c.save(ctx, tx, now)
}

// AddConversation keeps a new conversation with its first items.
func (s *Store) AddConversation(ctx context.Context, c *Conversation, items []Item) error {
	return s.do(ctx, func(tx *sql.Tx) error {
		if !c.fits(items) {
			return ErrFull
		}
		now := s.o.Now()
		c.Created = now
		_, err := tx.ExecContext(ctx, "INSERT INTO conversations (id, owner, created, used, archived, metadata, next, items, bytes) VALUES (?, ?, ?, ?, 0, ?, 0, 0, 0)",
			c.ID, c.Owner[:], now.UnixMilli(), now.UnixMilli(), c.Metadata)
		if err == nil {
			err = c.add(ctx, tx, items, now)
		}
		return err
	})
}

// Conversation finds a conversation, without its items.
func (s *Store) Conversation(ctx context.Context, owner Owner, id string) (*Conversation, error) {
	if err := s.look(); err != nil {
		return nil, err
	}
	return conversation(ctx, s.read, owner, id)
}

// ConversationItems gives a conversation and its items before Next, the oldest first.
func (s *Store) ConversationItems(ctx context.Context, owner Owner, id string) (*Conversation, []Item, error) {
	c, err := s.Conversation(ctx, owner, id)
	if err != nil {
		return nil, nil, err
	}
	items, err := conversationItems(ctx, s.read, id, c.Next)
	return c, items, err
}

// conversationItems are those before a position.
func conversationItems(ctx context.Context, db querier, id string, before int64) ([]Item, error) {
	rows, err := db.QueryContext(ctx, "SELECT id, body FROM conversation_items WHERE conversation = ? AND n < ? ORDER BY n", id, before)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var items []Item
	for rows.Next() {
		var i Item
		if err := rows.Scan(&i.ID, &i.Body); err != nil {
			return nil, err
		}
		items = append(items, i)
	}
	return items, rows.Err()
}

// ConversationItem finds an item of a conversation.
func (s *Store) ConversationItem(ctx context.Context, owner Owner, id, item string) (*Item, error) {
	if _, err := s.Conversation(ctx, owner, id); err != nil {
		return nil, err
	}
	i := &Item{ID: item}
	err := s.read.QueryRowContext(ctx, "SELECT body FROM conversation_items WHERE conversation = ? AND id = ?", id, item).Scan(&i.Body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrUnknown
	}
	return i, err
}

// change runs f on a conversation in a transaction.
func (s *Store) change(ctx context.Context, owner Owner, id string, f func(tx *sql.Tx, c *Conversation) error) (c *Conversation, err error) {
	if err := s.look(); err != nil {
		return nil, err
	}
	err = s.do(ctx, func(tx *sql.Tx) error {
		if c, err = conversation(ctx, tx, owner, id); err != nil {
			return err
		}
		return f(tx, c)
	})
	return c, err
}

// SetMetadata changes what a conversation is labelled with.
func (s *Store) SetMetadata(ctx context.Context, owner Owner, id string, metadata []byte) (*Conversation, error) {
	return s.change(ctx, owner, id, func(tx *sql.Tx, c *Conversation) error {
		c.Metadata = metadata
		return c.save(ctx, tx, s.o.Now())
	})
}

// AddItems adds items to a conversation that no response holds.
func (s *Store) AddItems(ctx context.Context, owner Owner, id string, items []Item) error {
	_, err := s.change(ctx, owner, id, func(tx *sql.Tx, c *Conversation) error {
		switch {
		case s.holds(id):
			return ErrHeld
		case !c.fits(items):
			return ErrFull
		}
		return c.add(ctx, tx, items, s.o.Now())
	})
	return err
}

// RemoveItem takes an item out of a conversation that no response holds.
func (s *Store) RemoveItem(ctx context.Context, owner Owner, id, item string) (*Conversation, error) {
	return s.change(ctx, owner, id, func(tx *sql.Tx, c *Conversation) error {
		if s.holds(id) {
			return ErrHeld
		}
		var size int64
		err := tx.QueryRowContext(ctx, "DELETE FROM conversation_items WHERE conversation = ? AND id = ? RETURNING length(body)", id, item).Scan(&size)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrUnknown
		}
		if err == nil {
			c.Next++
			c.items--
			c.bytes -= size
			err = c.save(ctx, tx, s.o.Now())
		}
		return err
	})
}

// RemoveConversation removes a conversation and its items, also while a response holds it, or the archive of one that has
// expired.
func (s *Store) RemoveConversation(ctx context.Context, owner Owner, id string) error {
	if err := s.look(); err != nil {
		return err
	}
	err := s.do(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "DELETE FROM conversations WHERE id = ? AND owner = ? RETURNING id", id, owner[:]).Scan(&id)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return ErrUnknown
	}
	if err == nil {
		err = s.removeArchive(id)
	}
	return err
}

// Hold keeps others from changing the items of a conversation until it is released, which may be done twice. It is for a response
// that is made on it as it was at position at, and whose input will be added to it.
func (s *Store) Hold(ctx context.Context, owner Owner, id string, at int64, input []Item) (release func(), err error) {
	took := false
	release = sync.OnceFunc(func() {
		s.holding.Lock()
		defer s.holding.Unlock()
		delete(s.held, id)
	})
	_, err = s.change(ctx, owner, id, func(tx *sql.Tx, c *Conversation) error {
		switch {
		case c.Next != at || s.holds(id):
			return ErrHeld
		case !c.fits(input):
			return ErrFull
		}
		// Only transactions look whether it is held and take it, and there is one at a time.
		s.holding.Lock()
		defer s.holding.Unlock()
		if s.held == nil {
			s.held = map[string]bool{}
		}
		s.held[id], took = true, true
		return c.save(ctx, tx, s.o.Now())
	})
	if err != nil && took {
		release()
	}
	return release, err
}

func (s *Store) holds(id string) bool {
	s.holding.Lock()
	defer s.holding.Unlock()
	return s.held[id]
}

// Append adds what went into a response and came out to the conversation that it holds. One that was removed meanwhile stays so.
func (s *Store) Append(ctx context.Context, r *Response) error {
	return s.do(ctx, func(tx *sql.Tx) error { return s.join(ctx, tx, r) })
}

func (s *Store) join(ctx context.Context, tx *sql.Tx, r *Response) error {
	c, err := conversation(ctx, tx, r.Owner, r.Conversation)
	if errors.Is(err, ErrUnknown) {
		return nil
	}
	if err == nil {
		err = c.add(ctx, tx, r.Input, s.o.Now())
	}
	if err == nil {
		err = c.add(ctx, tx, r.Output, s.o.Now())
	}
	return err
}

// removeArchive removes the archive of a chain or a conversation, if there is one.
func (s *Store) removeArchive(id string) error {
	if s.o.Archive == "" {
		return nil
	}
	if err := os.Remove(s.archive(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return regular.Short(err)
	}
	return nil
}
