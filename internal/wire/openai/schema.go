package openai

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"hearth/internal/chat"
	"hearth/internal/grammar/jsonschema"
	"hearth/internal/schema"
	"hearth/internal/wire"
)

// What the header says of a reply that is not held to its form: it was checked, and is or is not what was asked for; or
// comparing takes more work than is done for a reply, or a pattern that is not supported.
const (
	schemaChecked   = "checked"
	schemaUnmet     = "unmet"
	schemaUnchecked = "unchecked"
)

// Format is a response_format that a reply can be checked against: a JSON Schema, or without one any JSON object. It is for one
// reply, all whose choices share what is done to check them.
type Format struct {
	schema  json.RawMessage
	checker *jsonschema.Checker // made for the first choice that is checked
	unread  jsonschema.Verdict  // of every choice, where the schema cannot be read
	held    bool                // the text is held to it while it is written
	looked  bool                // a choice was compared
	unmet   bool                // a choice is not what was asked for
	spent   bool                // a choice could not be compared to its end
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
	case jsonschema.Invalid:
		f.unmet = true
	case jsonschema.Unchecked:
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

func (f *Format) check(ctx context.Context, text string) jsonschema.Verdict {
	v, err := schema.Parse([]byte(text))
	if err != nil || f.schema == nil && v.Kind() != schema.Object {
		return jsonschema.Invalid
	}
	if f.schema == nil {
		return jsonschema.Valid
	}
	if f.checker == nil && f.unread == jsonschema.Valid {
		f.checker, f.unread = read(ctx, f.schema)
	}
	if f.checker == nil {
		return f.unread
	}
	return f.checker.Check(ctx, v)
}

// read makes the checker of a schema, or tells what any text is where there is none: nothing is what a wrong schema asks for.
func read(ctx context.Context, text []byte) (*jsonschema.Checker, jsonschema.Verdict) {
	root, err := schema.Parse(text)
	if err != nil {
		return nil, jsonschema.Invalid
	}
	s, err := jsonschema.Read(ctx, root)
	if wrong := (*jsonschema.Error)(nil); errors.As(err, &wrong) {
		return nil, jsonschema.Invalid
	} else if err != nil {
		return nil, jsonschema.Unchecked
	}
	return s.Checker(false), jsonschema.Valid
}
