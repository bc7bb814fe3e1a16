package openai

import (
	"context"
	"encoding/json"
	"slices"

	"hearth/internal/chat"
	"hearth/internal/schema"
	"hearth/internal/wire"
)

// A reply that is not what response_format asked for says so in this header, or in a trailer of that name if it is a
// stream; so does one that took more work to compare than is done for a reply.
const SchemaHeader = "X-Hearth-Schema"

const (
	schemaUnmet     = "unmet"
	schemaUnchecked = "unchecked"
)

// Format is a response_format that a reply can be checked against: a JSON Schema, or without one any JSON object. It is for one
// reply, all whose choices share what is done to check them.
type Format struct {
	schema  json.RawMessage
	checker *checker // made for the first choice that is checked
	unmet   bool     // a choice is not what was asked for
	spent   bool     // a choice could not be compared to its end
}

// Look checks the text of a choice that has ended. A turn that ends in calls is not the answer yet.
func (f *Format) Look(ctx context.Context, text string, finish chat.Finish) {
	if f == nil || finish == chat.FinishToolCalls {
		return
	}
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

// Header is what the reply says of itself, "" where all is well.
func (f *Format) Header() string {
	switch {
	case f == nil:
	case f.unmet:
		return schemaUnmet
	case f.spent:
		return schemaUnchecked
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
