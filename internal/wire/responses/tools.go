package responses

import (
	"encoding/json"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// searchName is the function by which a model looks for tools that it has not been told of.
const searchName = "tool_search"

// declare reads the tools. The model has those of a namespace under both names; the client gets them apart.
func (d *decoder) declare(v wire.Value) {
	for _, t := range d.Tools(v) {
		if !d.Want(t, wire.Object) {
			return
		}
		d.r.body.Tools = append(d.r.body.Tools, echoed(t))
		d.declareOne("", t, false)
	}
}

// declareOne reads a tool. A deferred one can be called, and the model has its schema from elsewhere.
func (d *decoder) declareOne(namespace string, t wire.Value, deferred bool) {
	var made chat.Tool
	as := tool{namespace: namespace}
	switch kind := d.String(t.Get("type")); kind {
	case "function":
		made = d.Function(t)
	case "custom":
		made, as.kind = d.Custom(t), custom
	case "namespace":
		if namespace != "" {
			d.Fail(t.Get("type"), "a namespace cannot stand in another")
			return
		}
		name := d.String(t.Get("name"))
		for _, inner := range d.Tools(t.Get("tools")) {
			if !d.Want(inner, wire.Object) {
				return
			}
			d.declareOne(name, inner, deferred)
		}
		return
	case "tool_search":
		made = chat.Tool{Name: searchName, Description: d.OptString(t.Get("description")), Parameters: d.ObjectRaw(t.Get("parameters")), Path: t.Get("parameters").Path()}
		as.kind = toolSearch
	default:
		if d.refuseHosted {
			d.Fail(t.Get("type"), "tools of type %s do not run here: leave them out", wire.Quote(kind))
		}
		return
	}
	as.name = made.Name
	if made.Name != "" {
		made.Name = joined(namespace, made.Name)
	}
	made.Deferred = deferred || d.Bool(t.Get("defer_loading"))
	if _, known := d.r.tools[made.Name]; known && deferred { // found again
		return
	}
	d.AddTool(&d.r.Request, t.Get("name"), made)
	d.r.tools[made.Name] = as
}

// joined is the name of a tool in a namespace. Codex's namespaces end in the two underscores themselves.
func joined(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return strings.TrimSuffix(namespace, "__") + "__" + name
}

// echoed is a tool as a response has it: of a function every field, null where the client left it out.
func echoed(t wire.Value) json.RawMessage {
	kind := t.Get("type")
	if kind.Kind() != wire.String || string(kind.Raw()) != `"function"` {
		return raw(t)
	}
	b := []byte(`{"type":"function"`)
	for _, key := range []string{"name", "description", "parameters", "strict"} {
		b = append(append(b, `,"`...), key...)
		b = append(b, `":`...)
		if v := t.Get(key); v.Absent() {
			b = append(b, "null"...)
		} else {
			b = append(b, raw(v)...)
		}
	}
	return append(b, '}')
}
