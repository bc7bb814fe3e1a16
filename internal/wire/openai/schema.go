package openai

import (
	"context"
	"encoding/json"
	"slices"

	"hearth/internal/chat"
	"hearth/internal/schema"
	"hearth/internal/wire"
)

// What the header says of a reply that is not held to its form: it was checked, and is or is not what was asked for; or
// comparing takes more work than is done for a reply.
const (
	schemaChecked   = "checked"
	schemaUnmet     = "unmet"
	schemaUnchecked = "unchecked"
)

// Format is a response_format that a reply can be checked against: a JSON Schema, or without one any JSON object. It is for one
// reply, all whose choices share what is done to check them.
type Format struct {
	schema  json.RawMessage
	checker *checker // made for the first choice that is checked
	held    bool     // the text is held to it while it is written
	looked  bool     // a choice was compared
	unmet   bool     // a choice is not what was asked for
	spent   bool     // a choice could not be compared to its end
}

// Begin hears of the beginning of the reply.
func (f *Format) Begin(u *chat.Usage) {
	if f != nil && u != nil {
		f.held = u.Enforced
	}
}

// Look checks the text of a choice that has ended. A turn that ends in calls is not the answer yet.
func (f *Format) Look(ctx context.Context, text string, finish chat.Finish) {
	if f == nil || f.held || finish == chat.FinishToolCalls {
		return
	}
	f.looked = true
	switch f.check(ctx, text) {
	case unmet:
		f.unmet = true
	case unchecked:
		f.spent = true
		if u := wire.InfoFrom(ctx).Usage; u != nil && !slices.Contains(u.Bounds, chat.BoundSchema) {
			u.Bounds = append(u.Bounds, chat.BoundSchema)
		}
	}
}

// Header is what the reply says of itself behind its text, "" where it says nothing or has said so before.
func (f *Format) Header() string {
	switch {
	case f == nil:
	case f.unmet:
		return schemaUnmet
	case f.spent:
		return schemaUnchecked
	case f.looked:
		return schemaChecked
	}
	return ""
}

// verdict is what came out of a check.
type verdict uint8

const (
	met verdict = iota
	unmet
	unchecked // it would have taken too much work, or nobody waits for it any more
)

func (f *Format) check(ctx context.Context, text string) verdict {
	v, err := schema.Parse([]byte(text))
	if err != nil || f.schema == nil && v.Kind() != schema.Object {
		return unmet
	}
	if f.schema == nil {
		return met
	}
	if f.checker == nil {
		root, err := schema.Parse(f.schema)
		if err != nil {
			return unmet
		}
		f.checker = newChecker(root)
	}
	return f.checker.check(ctx, v)
}
