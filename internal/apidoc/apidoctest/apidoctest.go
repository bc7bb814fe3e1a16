// Package apidoctest compares what is sent and answered with the description of the API. Only tests import it.
package apidoctest

import (
	"context"
	"encoding/json"
	"maps"
	"mime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"hearth/internal/apidoc"
	"hearth/internal/grammar/jsonschema"
	"hearth/internal/schema"
)

// Version is that of the document.
const Version = "test"

// Object is one of JSON.
type Object = map[string]any

// Doc is the document. Of replies it knows the members that are described and no others.
type Doc struct {
	Root    Object
	open    []byte // the same as text
	closed  []byte // likewise, with objects that have no other members than those described
	mu      sync.Mutex
	schemas map[string]*jsonschema.Schema
}

// Read reads the document, once for all tests.
var Read = sync.OnceValue(func() *Doc {
	d := &Doc{open: apidoc.JSON(Version), schemas: map[string]*jsonschema.Schema{}}
	var closed Object
	for _, into := range []*Object{&d.Root, &closed} {
		if err := json.Unmarshal(d.open, into); err != nil {
			panic(err)
		}
	}
	shut(closed)
	var err error
	if d.closed, err = json.Marshal(closed); err != nil {
		panic(err)
	}
	return d
})

// shut has objects allow no members but those that are described, where nothing else is said of others.
func shut(v any) {
	switch v := v.(type) {
	case Object:
		_, some := v["properties"].(Object)
		if _, said := v["additionalProperties"]; some && !said {
			v["additionalProperties"] = false
		}
		for _, of := range v {
			shut(of)
		}
	case []any:
		for _, of := range v {
			shut(of)
		}
	}
}

// Operation is a method at a path, with the media types it sends and answers.
type Operation struct {
	doc          *Doc
	Method, Path string
	at           string // its JSON Pointer
	Body         Object
}

// methods are those of a path item.
var methods = []string{"get", "post", "put", "delete"}

// Operations are all of them, by method and path: "POST /v1/messages"; also at the paths that x-also lists.
func (d *Doc) Operations() map[string]*Operation {
	all := map[string]*Operation{}
	for path, item := range d.Root["paths"].(Object) {
		item := item.(Object)
		for _, method := range methods {
			body, ok := item[method].(Object)
			if !ok {
				continue
			}
			also, _ := item["x-also"].([]any)
			for _, p := range append([]any{path}, also...) {
				o := &Operation{d, strings.ToUpper(method), p.(string), pointer("paths", path, method), body}
				all[o.Method+" "+o.Path] = o
			}
		}
	}
	return all
}

// pointer is a JSON Pointer.
func pointer(steps ...string) string {
	var b strings.Builder
	for _, s := range steps {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(s))
	}
	return b.String()
}

// Request checks the body of a request.
func (o *Operation) Request(t testing.TB, body []byte) {
	t.Helper()
	o.doc.check(t, o.Method+" "+o.Path+", request", o.at+pointer("requestBody", "content", "application/json", "schema"), body, false)
}

// Reply checks the body of a reply: a document, or the events of a stream.
func (o *Operation) Reply(t testing.TB, status int, contentType string, body []byte) {
	t.Helper()
	where := o.Method + " " + o.Path + ", " + strconv.Itoa(status)
	at := o.at + "/responses/"
	responses := o.Body["responses"].(Object)
	code := strconv.Itoa(status)
	if responses[code] == nil {
		code = code[:1] + "XX"
	}
	response, _ := responses[code].(Object)
	at += code
	if ref, ok := response["$ref"].(string); ok {
		at = strings.TrimPrefix(ref, "#")
		response = o.doc.at(at)
	}
	if response == nil {
		t.Errorf("%s: the document has no such reply", where)
		return
	}
	kind, _, err := mime.ParseMediaType(contentType)
	content, _ := response["content"].(Object)
	media, ok := content[kind].(Object)
	if err != nil || !ok {
		t.Errorf("%s: the document has no reply of type %q, but %v", where, contentType, slices.Sorted(maps.Keys(content)))
		return
	}
	at += pointer("content", kind)
	switch {
	case kind == "text/event-stream":
		if media["x-event"] == nil {
			t.Errorf("%s: the document does not say what events are", where)
			return
		}
		for _, data := range Events(body) {
			o.doc.check(t, where+", event", at+"/x-event", []byte(data), true)
		}
	case kind == "application/json":
		o.doc.check(t, where, at+"/schema", body, true)
	}
}

// Events are the data of the events of a stream, without comments and [DONE].
func Events(stream []byte) (all []string) {
	for line := range strings.Lines(string(stream)) {
		if data, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data: "); ok && data != "[DONE]" {
			all = append(all, data)
		}
	}
	return all
}

// at is the object at a JSON Pointer.
func (d *Doc) at(pointer string) Object {
	var v any = d.Root
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		o, ok := v.(Object)
		if !ok {
			return nil
		}
		v = o[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	o, _ := v.(Object)
	return o
}

// Plain is a schema itself, where it is a reference to one, or one or null.
func (d *Doc) Plain(s Object) Object {
	if ref, ok := s["$ref"].(string); ok {
		return d.Plain(d.at(strings.TrimPrefix(ref, "#")))
	}
	if any, ok := s["anyOf"].([]any); ok && len(any) == 2 && any[0].(Object)["type"] == "null" {
		return d.Plain(any[1].(Object))
	}
	return s
}

// Value checks a value against a schema of the document, by its name.
func (d *Doc) Value(t testing.TB, name string, value []byte) {
	t.Helper()
	d.check(t, name, pointer("components", "schemas", name), value, true)
}

// check compares a value with the schema at a JSON Pointer.
func (d *Doc) check(t testing.TB, where, at string, value []byte, closed bool) {
	t.Helper()
	if d.at(at) == nil {
		t.Errorf("%s: the document has no schema at %s", where, at)
		return
	}
	node, err := schema.Parse(value)
	if err != nil {
		t.Errorf("%s: %v: %.2000s", where, err, value)
		return
	}
	switch verdict := d.schema(t, at, closed).Checker(true).Check(context.Background(), node); verdict {
	case jsonschema.Valid:
	case jsonschema.Invalid:
		t.Errorf("%s: is not as the schema at %s has it: %.2000s", where, at, value)
	default:
		t.Errorf("%s: was not compared with the schema at %s: %.2000s", where, at, value)
	}
}

// schema reads a schema of the document. References in it are followed in the whole document.
func (d *Doc) schema(t testing.TB, at string, closed bool) *jsonschema.Schema {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	key := strconv.FormatBool(closed) + at
	if s := d.schemas[key]; s != nil {
		return s
	}
	of := d.open
	if closed {
		of = d.closed
	}
	text := append(strconv.AppendQuote([]byte(`{"$ref":`), "#"+at), ',')
	text = append(text, of[1:]...)
	node, err := schema.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	s, err := jsonschema.Read(context.Background(), node)
	if err != nil {
		t.Fatalf("%s: %v", at, err)
	}
	d.schemas[key] = s
	return s
}
