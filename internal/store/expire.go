package store

import (
	"bufio"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"hearth/internal/regular"
)

// sweepEvery is how often is looked for what has expired.
const sweepEvery = time.Minute

// expire archives and removes what has expired, until the store is closed.
func (s *Store) expire() {
	defer close(s.done)
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		if err := s.Sweep(context.Background()); err != nil {
			s.o.Note("stored responses that have expired could not be archived or removed: " + err.Error())
		}
		select {
		case <-s.stop:
			return
		case <-t.C:
		}
	}
}

// sweepAtOnce bounds the chains, the conversations and the responses that one Sweep takes on.
const sweepAtOnce = 1000

// Sweep archives the chains and the conversations that have been idle for long enough, and removes the responses that are too
// old.
func (s *Store) Sweep(ctx context.Context) error {
	now := s.o.Now()
	if s.o.Conversation > 0 {
		idle := now.Add(-s.o.Conversation).UnixMilli()
		err := s.each(ctx, s.keep, "SELECT root FROM chains WHERE archived = 0 AND used <= ? LIMIT ?", idle, sweepAtOnce)
		if err == nil {
			err = s.each(ctx, s.end, "SELECT id FROM conversations WHERE archived = 0 AND used <= ? LIMIT ?", idle, sweepAtOnce)
		}
		if err != nil {
			return err
		}
	}
	if s.o.Responses > 0 {
		_, err := s.write.ExecContext(ctx, "DELETE FROM responses WHERE id IN (SELECT id FROM responses WHERE created <= ? AND status <> ? LIMIT ?)",
			now.Add(-s.o.Responses).UnixMilli(), InProgress, sweepAtOnce)
		if err == nil {
			_, err = s.write.ExecContext(ctx, "DELETE FROM chains WHERE archived = 1 AND NOT EXISTS (SELECT 1 FROM responses WHERE responses.root = chains.root)")
		}
		return err
	}
	return nil
}

// each calls f with the first column of the rows of a query, once all are read.
func (s *Store) each(ctx context.Context, f func(context.Context, string) error, query string, args ...any) error {
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		all = append(all, text)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, text := range all {
		if err := f(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// archive is the file of the archive of a chain or of a conversation. Ids are made here; one that is odd all the same cannot lead
// elsewhere.
func (s *Store) archive(root string) string {
	name := root
	if slices.ContainsFunc([]byte(root), func(c byte) bool { return !isPlain(c) }) || len(root) > 100 {
		name = fmt.Sprintf("%x", sha256.Sum256([]byte(root)))
	}
	return filepath.Join(s.o.Archive, name+".json")
}

func isPlain(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '-'
}

// archivedConversation is the document that is kept of a conversation.
type archivedConversation struct {
	ID        string            `json:"id"`
	Object    string            `json:"object"`
	CreatedAt int64             `json:"created_at"`
	Metadata  json.RawMessage   `json:"metadata"`
	Items     []json.RawMessage `json:"items"`
}

// archiveObject is the type of that, and of the archive of a chain.
const archiveObject = "conversation.archive"

// archivedResponse is what is kept of a response of a chain.
type archivedResponse struct {
	ID        string            `json:"id"`
	CreatedAt int64             `json:"created_at"`
	Status    string            `json:"status"`
	Input     []json.RawMessage `json:"input"`
	Output    []json.RawMessage `json:"output"`
}

// keep writes the archive of a chain, whole or not at all, and then marks the chain. It may be done again.
func (s *Store) keep(ctx context.Context, root string) error {
	var used int64
	var some bool
	err := s.read.QueryRowContext(ctx, "SELECT used, EXISTS (SELECT 1 FROM responses r WHERE r.root = chains.root) FROM chains WHERE root = ?", root).Scan(&used, &some)
	if err == nil && some && s.o.Archive != "" {
		err = writeFile(s.o.Archive, s.archive(root), func(w io.Writer) error { return s.writeChain(ctx, w, root) })
	}
	if err == nil {
		_, err = s.write.ExecContext(ctx, "UPDATE chains SET archived = 1 WHERE root = ? AND used = ?", root, used)
	}
	return err
}

// writeChain writes all of a chain, branches included, of which no more than one response is held at a time: together they may be
// larger than memory.
func (s *Store) writeChain(ctx context.Context, w io.Writer, root string) error {
	rows, err := s.read.QueryContext(ctx, `SELECT r.id, r.created, r.status, i.output, i.body FROM responses r LEFT JOIN items i ON i.response = r.id
		WHERE r.root = ? ORDER BY r.created, r.depth, r.id, i.output, i.n`, root)
	if err != nil {
		return err
	}
	defer rows.Close()
	id, err := json.Marshal(root)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "{\n \"id\": %s,\n \"object\": %q,\n \"responses\": [", id, archiveObject)
	comma := ""
	var r *archivedResponse
	flush := func() error {
		if r == nil {
			return nil
		}
		text, err := json.MarshalIndent(r, "  ", " ")
		if err == nil {
			_, err = fmt.Fprintf(w, "%s\n  %s", comma, text)
		}
		comma = ","
		return err
	}
	for err == nil && rows.Next() {
		var id, status string
		var created int64
		var output sql.NullBool
		var body []byte
		if err := rows.Scan(&id, &created, &status, &output, &body); err != nil {
			return err
		}
		if r == nil || r.ID != id {
			err = flush()
			r = &archivedResponse{ID: id, CreatedAt: created / 1000, Status: status, Input: []json.RawMessage{}, Output: []json.RawMessage{}}
		}
		switch {
		case body == nil:
		case output.Bool:
			r.Output = append(r.Output, body)
		default:
			r.Input = append(r.Input, body)
		}
	}
	if err = errors.Join(err, rows.Err()); err == nil {
		err = flush()
	}
	if err == nil {
		_, err = io.WriteString(w, "\n ]\n}\n")
	}
	return err
}

// end archives a conversation, as keep does a chain, and ends it, unless it has gone on meanwhile.
func (s *Store) end(ctx context.Context, id string) error {
	if s.holds(id) {
		return nil
	}
	doc := archivedConversation{ID: id, Object: archiveObject, Items: []json.RawMessage{}}
	var used, next int64
	err := s.read.QueryRowContext(ctx, "SELECT created / 1000, used, metadata, next FROM conversations WHERE id = ?", id).Scan(&doc.CreatedAt, &used, (*[]byte)(&doc.Metadata), &next)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil && s.o.Archive != "" {
		var items []Item
		items, err = conversationItems(ctx, s.read, id, next)
		for _, i := range items {
			doc.Items = append(doc.Items, i.Body)
		}
		if err == nil {
			err = writeFile(s.o.Archive, s.archive(id), func(w io.Writer) error {
				e := json.NewEncoder(w)
				e.SetIndent("", " ")
				return e.Encode(doc)
			})
		}
	}
	if err != nil {
		return err
	}
	return s.transact(ctx, func(tx *sql.Tx) error { // Close waits for this with the lock that do takes
		if s.o.Archive == "" {
			_, err := tx.ExecContext(ctx, "DELETE FROM conversations WHERE id = ? AND used = ?", id, used)
			return err
		}
		var at int64
		err := tx.QueryRowContext(ctx, "SELECT used FROM conversations WHERE id = ?", id).Scan(&at)
		switch {
		case errors.Is(err, sql.ErrNoRows): // it was removed while its archive was written
			return s.removeArchive(id)
		case err != nil || at != used:
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE conversations SET archived = 1, metadata = x'', items = 0, bytes = 0 WHERE id = ?", id)
		if err == nil {
			_, err = tx.ExecContext(ctx, "DELETE FROM conversation_items WHERE conversation = ?", id)
		}
		return err
	})
}

// writeFile writes a file of the user's alone, in place of one that is there, whole or not at all.
func writeFile(dir, path string, write func(w io.Writer) error) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return regular.Short(err)
	}
	f, err := os.CreateTemp(dir, ".archive-*") // 0600
	if err != nil {
		return regular.Short(err)
	}
	w := bufio.NewWriter(f)
	err = errors.Join(write(w), w.Flush(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return regular.Short(err)
	}
	return nil
}
