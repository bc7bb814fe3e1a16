// Package store keeps what clients ask to be kept: responses with the items that went into them and came out, what they build on,
// and conversations, in a SQLite database. It knows ids, owners, chains and times; a body or an item is JSON of the protocol's.
//
// A database has a write-ahead log, and its commits do not wait for the disk. What was committed survives the end of this
// process, however it ends, kill -9 included. A power loss may take the commits of the last moments, never a part of one, and
// leaves the database whole. What was in progress when the process ended is found to have failed by the next one that opens the
// database.
//
// Everything has an owner, and who is not the owner of an id is told that there is none.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"modernc.org/sqlite"

	"hearth/internal/regular"
)

// Owner is whose something is: a digest of a key. Where nobody has a key all is the zero owner's, which no key stands for.
type Owner [16]byte

// Mode is where things are kept.
type Mode string

// Modes of a store.
const (
	Disk   Mode = "disk"
	Memory Mode = "memory"
	Off    Mode = "off"
)

const (
	// MaxChain bounds how many responses stand before one in its chain.
	MaxChain = 1000
	// maxMemory bounds the bytes of a store in memory.
	maxMemory = 256 << 20
)

// Options say where and for how long things are kept.
type Options struct {
	Mode Mode
	Dir  string // of the database; made when it is first needed
	// Responses is for how long responses are kept, Conversation after how long without a new one a chain is archived, and a
	// conversation ends; 0: for ever, never.
	Responses, Conversation time.Duration
	Archive                 string // folder of archives; "": none are written
	// Note is told once of what a person should know, such as that another process has the database.
	Note func(text string)
	Now  func() time.Time
}

// Errors that a caller tells apart.
var (
	ErrOff     = errors.New("nothing is stored: the server was started with --store off")
	ErrUnknown = errors.New("there is no such id")
	ErrLong    = fmt.Errorf("the chain of previous responses is longer than %d, or has more than %d MiB", MaxChain, MaxConversation>>20)
)

// Response is one that is stored.
type Response struct {
	ID       string
	Owner    Owner
	Previous string // the response that it builds on, "" if none
	Status   string
	Created  time.Time
	Body     []byte // as it was last told
	Input    []Item // its own, without those of Previous
	Output   []Item

	Conversation string // that it is made on, "" if none; excludes Previous
	At           int64  // where that ended then
	Joins        bool   // its items are added to the conversation when it is finished
	// Events are kept with it, behind those that were kept before; nil: none.
	Events *Events
}

// Events are a run of a response's events, as the protocol has packed them.
type Events struct {
	First int // number of the first
	Body  []byte
}

// InProgress is the Status of a response that is not finished; Interrupted of one that never will be, because the process that
// made it has ended.
const (
	InProgress  = "in_progress"
	Interrupted = "interrupted"
)

// Item is an input or output of a response.
type Item struct {
	ID   string
	Body []byte
}

// Store is a store that is opened when something is first kept. It may be used by several goroutines.
type Store struct {
	o Options

	mu     sync.Mutex
	opened bool
	err    error // of opening
	lock   *os.File
	write  *sql.DB // of one connection
	read   *sql.DB
	stop   chan struct{}
	done   chan struct{}

	holding sync.Mutex
	held    map[string]bool // conversations that a response in progress holds
}

// New makes a store and opens nothing.
func New(o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Note == nil {
		o.Note = func(string) {}
	}
	return &Store{o: o}
}

// Keeps tells whether anything is kept.
func (s *Store) Keeps() bool { return s != nil && s.o.Mode != Off }

// Close ends what is under way and closes the database.
func (s *Store) Close() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.opened || s.err != nil {
		return nil
	}
	close(s.stop)
	<-s.done
	s.opened, s.err = true, errors.New("the store is closed")
	return s.shut()
}

func (s *Store) shut() error {
	err := s.read.Close()
	if s.write != s.read {
		err = errors.Join(err, s.write.Close())
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

// open opens the database, once. Where something was tried and failed the error stays: a store that comes and goes would lose
// what it was asked to keep.
func (s *Store) open() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened {
		return s.err
	}
	s.opened = true
	if s.o.Mode == Off {
		s.err = ErrOff
		return s.err
	}
	if s.err = s.openIn(s.o.Mode); s.err != nil {
		s.err = fmt.Errorf("responses cannot be stored in %s: %w; start with --store memory to keep them in memory alone, or with --store off", s.o.Dir, s.err)
		return s.err
	}
	s.stop, s.done = make(chan struct{}), make(chan struct{})
	go s.expire()
	return nil
}

// database is the name of the database's file.
const database = "responses.db"

func (s *Store) openIn(mode Mode) (err error) {
	if mode == Disk {
		if err = os.MkdirAll(s.o.Dir, 0o700); err != nil {
			return regular.Short(err)
		}
		s.lock, err = os.OpenFile(filepath.Join(s.o.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return regular.Short(err)
		}
		if err = regular.Lock(s.lock); err != nil {
			s.lock.Close()
			s.lock = nil
			if !errors.Is(err, regular.ErrBusy) {
				return err
			}
			s.o.Note("another process stores responses in " + s.o.Dir + ": this one keeps them in memory, until it ends")
			mode = Memory
		}
	}
	if err = s.connect(mode); err != nil {
		if s.lock != nil {
			s.lock.Close()
		}
	}
	return err
}

func (s *Store) connect(mode Mode) (err error) {
	pragmas := "_pragma=foreign_keys(1)&_pragma=busy_timeout(5000)&_pragma=temp_store(2)"
	if mode == Memory {
		s.write, err = sql.Open("sqlite", "file::memory:?"+pragmas+fmt.Sprintf("&_pragma=max_page_count(%d)", maxMemory/4096))
		s.read = s.write
	} else {
		path := filepath.Join(s.o.Dir, database)
		f, ferr := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) // SQLite would let others read
		if ferr != nil {
			return regular.Short(ferr)
		}
		f.Close()
		name := (&url.URL{Scheme: "file", Opaque: url.PathEscape(filepath.ToSlash(path))}).String() + "?" + pragmas + "&_pragma=journal_mode(wal)&_pragma=synchronous(normal)"
		if s.write, err = sql.Open("sqlite", name+"&_txlock=immediate"); err != nil {
			return err
		}
		s.read, err = sql.Open("sqlite", name+"&_pragma=query_only(1)")
	}
	if err != nil {
		return err
	}
	s.write.SetMaxOpenConns(1)
	s.write.SetMaxIdleConns(1)
	s.write.SetConnMaxLifetime(0) // a database in memory ends with its connection
	if s.read != s.write {
		s.read.SetMaxOpenConns(4)
	}
	ctx := context.Background()
	if err = migrate(ctx, s.write); err == nil {
		_, err = s.write.ExecContext(ctx, "UPDATE responses SET status = ? WHERE status = ?", Interrupted, InProgress)
	}
	if err != nil {
		s.read.Close()
		s.write.Close()
	}
	return err
}

// do opens the database and runs f in a transaction.
func (s *Store) do(ctx context.Context, f func(tx *sql.Tx) error) error {
	if err := s.open(); err != nil {
		return err
	}
	err := s.transact(ctx, f)
	if broken := (*sqlite.Error)(nil); errors.As(err, &broken) && s.write != s.read {
		return fmt.Errorf("%w, in %s; start with --store memory to keep responses in memory alone", err, s.o.Dir)
	}
	return err
}

func (s *Store) transact(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err = f(tx); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

// exists tells whether there is a database to look into, without making one.
func (s *Store) exists() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened || s.o.Mode == Off {
		return s.o.Mode != Off
	}
	_, err := os.Stat(filepath.Join(s.o.Dir, database))
	return s.o.Mode == Disk && err == nil
}

// Begin keeps a response that is in progress, with its input. Its Previous must be one of the owner's.
func (s *Store) Begin(ctx context.Context, r *Response) error {
	return s.do(ctx, func(tx *sql.Tx) error {
		root, depth := r.ID, 0
		if r.Previous != "" {
			err := tx.QueryRowContext(ctx, "SELECT root, depth + 1 FROM responses WHERE id = ? AND owner = ?", r.Previous, r.Owner[:]).Scan(&root, &depth)
			switch {
			case errors.Is(err, sql.ErrNoRows):
				return ErrUnknown
			case err != nil:
				return err
			case depth > MaxChain:
				return ErrLong
			}
		}
		now := s.o.Now().UnixMilli()
		_, err := tx.ExecContext(ctx, "INSERT INTO responses (id, owner, previous, root, depth, status, created, body, conversation, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			r.ID, r.Owner[:], r.Previous, root, depth, InProgress, now, r.Body, r.Conversation, r.At)
		if err == nil {
			err = insert(ctx, tx, r.ID, false, r.Input)
		}
		if err == nil {
			err = insertEvents(ctx, tx, r.ID, r.Events)
		}
		if err == nil && r.Conversation == "" { // which has an archive of its own
			_, err = tx.ExecContext(ctx, "INSERT INTO chains (root, used, archived) VALUES (?, ?, 0) ON CONFLICT (root) DO UPDATE SET used = excluded.used, archived = 0", root, now)
		}
		return err
	})
}

func insert(ctx context.Context, tx *sql.Tx, response string, output bool, items []Item) error {
	if len(items) == 0 {
		return nil
	}
	stmt, err := tx.PrepareContext(ctx, "INSERT INTO items (response, output, n, id, body) VALUES (?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer stmt.Close()
	for n, i := range items {
		if _, err := stmt.ExecContext(ctx, response, output, n, i.ID, i.Body); err != nil {
			return err
		}
	}
	return nil
}

func insertEvents(ctx context.Context, tx *sql.Tx, response string, e *Events) error {
	if e == nil {
		return nil
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO events (response, first, body) VALUES (?, ?, ?)", response, e.First, e.Body)
	return err
}

// AddEvents keeps events of a response in progress. One that was deleted meanwhile stays so: then the error is ErrUnknown.
func (s *Store) AddEvents(ctx context.Context, owner Owner, id string, e *Events) error {
	return s.do(ctx, func(tx *sql.Tx) error {
		var n int
		err := tx.QueryRowContext(ctx, "SELECT 1 FROM responses WHERE id = ? AND owner = ?", id, owner[:]).Scan(&n)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrUnknown
		}
		if err == nil {
			err = insertEvents(ctx, tx, id, e)
		}
		return err
	})
}

// Events finds the run of a response's events in which number n is, the last run if there is none so high. The error is
// ErrUnknown if no events are kept of it.
func (s *Store) Events(ctx context.Context, owner Owner, id string, n int) (*Events, error) {
	if err := s.look(); err != nil {
		return nil, err
	}
	e := &Events{}
	err := s.read.QueryRowContext(ctx, `SELECT e.first, e.body FROM events e JOIN responses r ON r.id = e.response
		WHERE e.response = ? AND r.owner = ? AND e.first <= ? ORDER BY e.first DESC LIMIT 1`, id, owner[:], n).Scan(&e.First, &e.Body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrUnknown
	}
	return e, err
}

// Finish keeps how a response that was in progress ended, and in the same transaction adds its items to its conversation. A
// response that was deleted meanwhile stays so: then the error is ErrUnknown.
func (s *Store) Finish(ctx context.Context, r *Response) error {
	return s.do(ctx, func(tx *sql.Tx) error {
		var root string
		err := tx.QueryRowContext(ctx, "UPDATE responses SET status = ?, body = ? WHERE id = ? AND owner = ? RETURNING root", r.Status, r.Body, r.ID, r.Owner[:]).Scan(&root)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrUnknown
		}
		if err == nil {
			err = insert(ctx, tx, r.ID, true, r.Output)
		}
		if err == nil && r.Joins {
			err = s.join(ctx, tx, r)
		}
		if err == nil {
			err = insertEvents(ctx, tx, r.ID, r.Events)
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, "UPDATE chains SET used = ?, archived = 0 WHERE root = ?", s.o.Now().UnixMilli(), root)
		}
		return err
	})
}

// Get finds a response, without its items.
func (s *Store) Get(ctx context.Context, owner Owner, id string) (*Response, error) {
	if err := s.look(); err != nil {
		return nil, err
	}
	r := &Response{ID: id, Owner: owner}
	var created int64
	err := s.read.QueryRowContext(ctx, "SELECT previous, status, created, body FROM responses WHERE id = ? AND owner = ?", id, owner[:]).
		Scan(&r.Previous, &r.Status, &created, &r.Body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrUnknown
	}
	r.Created = time.UnixMilli(created)
	return r, err
}

// look opens the database for reading, if there is one.
func (s *Store) look() error {
	if s == nil || !s.exists() {
		return ErrUnknown
	}
	return s.open()
}

// Chain gives the inputs and outputs of a response and of all that it builds on, the oldest first; withoutOwn leaves out the
// output of the response itself, and then a conversation that is gone does not count.
func (s *Store) Chain(ctx context.Context, owner Owner, id string, withoutOwn bool) ([]Item, error) {
	if err := s.look(); err != nil {
		return nil, err
	}
	items, on, at, err := s.links(ctx, owner, id, withoutOwn)
	if err != nil || on == "" {
		return items, err
	}
	switch _, err := conversation(ctx, s.read, owner, on); {
	case errors.Is(err, ErrUnknown) && withoutOwn:
		return items, nil
	case err != nil:
		return nil, err
	}
	before, err := conversationItems(ctx, s.read, on, at)
	return append(before, items...), err
}

// links are the items of a chain, and what its first response was made on.
func (s *Store) links(ctx context.Context, owner Owner, id string, withoutOwn bool) (items []Item, on string, at int64, err error) {
	rows, err := s.read.QueryContext(ctx, `
		WITH RECURSIVE chain (id, previous, conversation, at, up) AS (
			SELECT id, previous, conversation, at, 0 FROM responses WHERE id = ?1 AND owner = ?2
			UNION ALL
			SELECT r.id, r.previous, r.conversation, r.at, up + 1 FROM chain JOIN responses r ON r.id = chain.previous AND r.owner = ?2 WHERE up <= ?3
		)
		SELECT up, chain.previous, chain.conversation, chain.at, output, items.id, items.body FROM chain LEFT JOIN items ON items.response = chain.id
		ORDER BY up DESC, output, n`, id, owner[:], MaxChain)
	if err != nil {
		return nil, "", 0, err
	}
	defer rows.Close()
	any, bytes := false, 0
	for rows.Next() {
		var up int
		var previous, of string
		var position int64
		var output sql.NullBool
		var item sql.NullString
		var body []byte
		if err := rows.Scan(&up, &previous, &of, &position, &output, &item, &body); err != nil {
			return nil, "", 0, err
		}
		if !any {
			switch {
			case up > MaxChain:
				return nil, "", 0, ErrLong
			case previous != "": // deleted, or expired
				return nil, "", 0, ErrUnknown
			}
			any, on, at = true, of, position
		}
		if bytes += len(body); bytes > MaxConversation {
			return nil, "", 0, ErrLong
		}
		if item.Valid && !(withoutOwn && up == 0 && output.Bool) {
			items = append(items, Item{item.String, body})
		}
	}
	if err := rows.Err(); err != nil {
		return nil, "", 0, err
	}
	if !any {
		return nil, "", 0, ErrUnknown
	}
	return items, on, at, nil
}

// Item finds an item by its id.
func (s *Store) Item(ctx context.Context, owner Owner, id string) (*Item, error) {
	if err := s.look(); err != nil {
		return nil, err
	}
	i := &Item{ID: id}
	err := s.read.QueryRowContext(ctx, `
		SELECT i.body, r.created FROM items i JOIN responses r ON r.id = i.response WHERE i.id = ?1 AND r.owner = ?2
		UNION ALL
		SELECT i.body, c.created FROM conversation_items i JOIN conversations c ON c.id = i.conversation WHERE i.id = ?1 AND c.owner = ?2
		ORDER BY 2 DESC LIMIT 1`, id, owner[:]).Scan(&i.Body, new(int64))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrUnknown
	}
	return i, err
}

// Delete removes a response, its items and the archive of its chain.
func (s *Store) Delete(ctx context.Context, owner Owner, id string) error {
	if err := s.look(); err != nil {
		return err
	}
	var root string
	err := s.do(ctx, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, "DELETE FROM responses WHERE id = ? AND owner = ? RETURNING root", id, owner[:]).Scan(&root)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrUnknown
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, "DELETE FROM chains WHERE root = ?1 AND NOT EXISTS (SELECT 1 FROM responses WHERE root = ?1)", root)
		}
		return err
	})
	if err == nil {
		err = s.removeArchive(root)
	}
	return err
}
