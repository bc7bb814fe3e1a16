// Package apidoc is the description of the HTTP API, as OpenAPI 3.1 has it (https://spec.openapis.org/oas/v3.1.1): every route
// with its parameters, bodies, replies, errors and the events of its streams. It is written by hand, a file for each group of
// routes in parts, and served as one document by package server; tests hold it to the routes of the mux, to the fields that
// requests are asked for and to what the protocols' cases send and answer.
//
// Three keys are the document's own. x-also lists the paths at which a path's operations are found besides. x-event is the schema
// of the events of a stream: what stands behind "data:" of each, but for the word [DONE]; OpenAPI 3.2 calls it itemSchema. On a
// WebSocket it is that of the server's messages, and x-message that of the client's.
package apidoc

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io"
)

//go:embed parts
var parts embed.FS

// order is that of the groups in the document; the first part is what all share.
var order = []string{"common", "messages", "chat", "completions", "encoders", "responses", "conversations", "models", "status", "manage", "mcp", "page"}

// part is one file.
type part struct {
	Tag     json.RawMessage
	Paths   members
	Schemas members
}

// document is what all share. Its members come in this order.
type document struct {
	OpenAPI    string            `json:"openapi"`
	Info       json.RawMessage   `json:"info"`
	Servers    json.RawMessage   `json:"servers"`
	Security   json.RawMessage   `json:"security"`
	Tags       []json.RawMessage `json:"tags"`
	Paths      members           `json:"paths"`
	Components components        `json:"components"`
}

type components struct {
	Security   json.RawMessage `json:"securitySchemes"`
	Parameters json.RawMessage `json:"parameters"`
	Headers    json.RawMessage `json:"headers"`
	Responses  json.RawMessage `json:"responses"`
	Schemas    members         `json:"schemas"`
}

// JSON is the document of a server of that version. It makes it anew each time.
func JSON(version string) []byte {
	doc, err := join(version)
	if err != nil {
		panic("apidoc: " + err.Error()) // a test reads them all
	}
	return doc
}

func join(version string) ([]byte, error) {
	var doc document
	for i, name := range order {
		text, err := parts.ReadFile("parts/" + name + ".json")
		if err != nil {
			return nil, err
		}
		if i == 0 {
			err = strict(text, &doc)
		} else {
			var p part
			err = strict(text, &p)
			doc.Tags = append(doc.Tags, p.Tag)
			doc.Paths = append(doc.Paths, p.Paths...)
			doc.Components.Schemas = append(doc.Components.Schemas, p.Schemas...)
		}
		if err != nil {
			return nil, fmt.Errorf("%s.json: %w", name, err)
		}
	}
	for _, all := range []members{doc.Paths, doc.Components.Schemas} {
		seen := map[string]bool{}
		for _, one := range all {
			if seen[one.name] {
				return nil, fmt.Errorf("there are two of %s", one.name)
			}
			seen[one.name] = true
		}
	}
	quoted, err := json.Marshal(version)
	if err != nil {
		return nil, err
	}
	doc.Info = bytes.Replace(doc.Info, []byte(`"VERSION"`), quoted, 1)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err = e.Encode(&doc)
	return b.Bytes(), err
}

// strict reads a value and nothing else, whose members are all known.
func strict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("something follows the value")
	}
	return nil
}

// members are those of an object, in the order in which they are written.
type members []member

type member struct {
	name  string
	value json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *members) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("an object is needed, not %v: %w", t, err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		one := member{name: name.(string)}
		if err := d.Decode(&one.value); err != nil {
			return err
		}
		*m = append(*m, one)
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (m members) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, one := range m {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(one.name)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), one.value...)
	}
	return append(b, '}'), nil
}
