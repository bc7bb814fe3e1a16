package grammar

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"hearth/internal/schema"
)

// Tool is a function that may be called. Schema is that of its arguments; nil allows any object.
type Tool struct {
	Name   string
	Schema *schema.Document
}

// Form is the calls that the tools of a request allow. Only what Loose tells changes; any number of goroutines may use it.
type Form struct {
	CallGrammar
	tools []*tool // by their spelling
}

// tool is one of a form. Its schema is read when it is called, since a request has many tools and calls few.
type tool struct {
	Tool
	spelled string
	loose   atomic.Bool // it has been called and its arguments are any object
	read    func() (*shape, bool)
}

// longSchema is the most bytes of a schema that is read while a reply is written.
const longSchema = 1 << 16

// Call is the form of a call of one of the tools, as a JSON object with its name and then its arguments, and of what ends it:
//
//	{"name": "f", "arguments": {…}}end
//
// The arguments follow the tool's schema; their members come in any order. Of tools with the same name the first one counts.
// A schema that no finite value follows allows any object.
func Call(tools []Tool, end string) *Form {
	f := &Form{}
	names := &choices{}
	known := map[string]bool{}
	for _, t := range tools {
		name := spelled(t.Name)
		if known[name] {
			continue
		}
		known[name] = true
		k := &tool{Tool: t, spelled: name}
		k.read = sync.OnceValues(func() (*shape, bool) { return arguments(t.Schema) })
		if t.Schema != nil && len(t.Schema.Raw) > longSchema {
			k.read()
		}
		f.tools = append(f.tools, k)
	}
	slices.SortFunc(f.tools, func(a, b *tool) int { return strings.Compare(a.spelled, b.spelled) })
	for _, k := range f.tools {
		names.texts = append(names.texts, k.spelled)
	}
	names.after = func(next *frame, i int32) *frame {
		s, ok := f.tools[i].read()
		if !ok {
			f.tools[i].loose.Store(true)
		}
		return next.push(frame{op: value, shape: s}).push(spaced(":")).push(spaced(`"arguments"`)).push(spaced(","))
	}
	form := (*frame)(nil).push(spaced(end)).push(spaced("}"))
	f.start = form.push(frame{op: value, shape: &shape{spellings: names}}).push(spaced(":")).push(spaced(`"name"`)).push(spaced("{"))
	return f
}

// Finite tells whether finite arguments exist for the tool of that name, or for any tool if it is "". It reads their schemas.
func (f *Form) Finite(name string) bool {
	for _, k := range f.tools {
		if name == "" || k.Name == name {
			if _, ok := k.read(); ok {
				return true
			}
		}
	}
	return false
}

// Loose are the tools that were called although no finite value follows their schema.
func (f *Form) Loose() []string {
	var names []string
	for _, k := range f.tools {
		if k.loose.Load() {
			names = append(names, k.Name)
		}
	}
	return names
}

func spaced(s string) frame { return frame{op: spacedLiteral, text: s} }
