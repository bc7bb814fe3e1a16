// Package access says who asks and what they may: keys and the files that hold their hashes, the client of a request, and how
// much of the server one client gets. Package server asks it before a protocol sees a request; config and cli read and write key
// files through it. It knows no protocol and no model.
package access

import "context"

// Client is who asks: the holder of a key, or whoever there is where none is asked for.
type Client struct {
	Name     string // of the key, for logs; "": it has none
	Operator bool   // may see and clear what is of all clients

	Caller [16]byte // tells clients apart: a digest of the key; zero where all have the same, or none
	Salt   [16]byte // what the prompt cache has under one does not help requests under another; zero: one for all
	Owner  [16]byte // of what is stored: a digest of the key, also where all have the same; zero where none is asked for

	Limits
}

// Limits are what a key may, where that is less than, or something else than, what all may.
type Limits struct {
	Models      []string // names of models, in which one * stands for any text; none: all
	Background  bool     // all its requests let others go first
	PerMinute   int      // requests a minute; 0: as the server has it
	MaxRequests int      // at a time; 0: as the server has it
}

type clientKey struct{}

// With returns ctx carrying c, which may still be filled in.
func With(ctx context.Context, c *Client) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

// From returns the client of ctx. What the program itself asks for has none, and may anything.
func From(ctx context.Context) *Client {
	if c, ok := ctx.Value(clientKey{}).(*Client); ok {
		return c
	}
	return &Client{Operator: true}
}
