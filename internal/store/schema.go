package store

import (
	"context"
	"database/sql"
	"fmt"
)

// migrations bring a database from one version to the next, in order. One that was released is never changed: what is new is
// appended.
var migrations = []string{
	// 1: responses with their items. root is the first response of the chain, depth how many stand before this one in it.
	`CREATE TABLE responses (
		id       TEXT PRIMARY KEY,
		owner    BLOB NOT NULL,
		previous TEXT NOT NULL,
		root     TEXT NOT NULL,
		depth    INTEGER NOT NULL,
		status   TEXT NOT NULL,
		created  INTEGER NOT NULL,
		body     BLOB NOT NULL
	) STRICT;
	CREATE INDEX responses_root ON responses (root);
	CREATE INDEX responses_created ON responses (created);
	CREATE INDEX responses_open ON responses (status) WHERE status = 'in_progress';
	CREATE TABLE items (
		response TEXT NOT NULL REFERENCES responses (id) ON DELETE CASCADE,
		output   INTEGER NOT NULL,
		n        INTEGER NOT NULL,
		id       TEXT NOT NULL,
		body     BLOB NOT NULL,
		PRIMARY KEY (response, output, n)
	) STRICT, WITHOUT ROWID;
	CREATE INDEX items_id ON items (id);
	CREATE TABLE chains (
		root     TEXT PRIMARY KEY,
		used     INTEGER NOT NULL,
		archived INTEGER NOT NULL
	) STRICT, WITHOUT ROWID;
	CREATE INDEX chains_idle ON chains (used) WHERE archived = 0;`,
	// 2: events of responses that are followed apart from the request that made them, in runs that the protocol packs.
	`CREATE TABLE events (
		response TEXT NOT NULL REFERENCES responses (id) ON DELETE CASCADE,
		first    INTEGER NOT NULL,
		body     BLOB NOT NULL,
		PRIMARY KEY (response, first)
	) STRICT;`,

	// 3: conversations with their items. A response that was made on one builds on the items before at. Of a conversation that is
	// archived only the owner is left, who may have the archive removed.
	`ALTER TABLE responses ADD COLUMN conversation TEXT NOT NULL DEFAULT '';
	ALTER TABLE responses ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
	CREATE TABLE conversations (
		id       TEXT PRIMARY KEY,
		owner    BLOB NOT NULL,
		created  INTEGER NOT NULL,
		used     INTEGER NOT NULL,
		archived INTEGER NOT NULL,
		metadata BLOB NOT NULL,
		next     INTEGER NOT NULL,
		items    INTEGER NOT NULL,
		bytes    INTEGER NOT NULL
	) STRICT;
	CREATE INDEX conversations_idle ON conversations (used) WHERE archived = 0;
	CREATE TABLE conversation_items (
		conversation TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
		n            INTEGER NOT NULL,
		id           TEXT NOT NULL,
		body         BLOB NOT NULL,
		PRIMARY KEY (conversation, n),
		UNIQUE (id, conversation)
	) STRICT, WITHOUT ROWID;`,
}

// migrate brings a database up to date, each step with its number in one transaction. One from a newer version is left as it is.
func migrate(ctx context.Context, db *sql.DB) error {
	var at int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&at); err != nil {
		return err
	}
	if at < 0 {
		return fmt.Errorf("it has the format %d, which no version of hearth has written", at)
	}
	if at > len(migrations) {
		return fmt.Errorf("it was written by a newer version of hearth (format %d, this one knows %d)", at, len(migrations))
	}
	for ; at < len(migrations); at++ {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, migrations[at])
		if err == nil {
			_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", at+1))
		}
		if err != nil {
			_ = tx.Rollback()
			return err
		}
		if err := tx.Commit(); err != nil {
			return err
		}
	}
	return nil
}
