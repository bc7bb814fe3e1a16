package grammar

import (
	"encoding/json"
	"slices"
	"sync"
)

// Tool is a function that may be called. Parameters is its JSON Schema; nil allows any object.
type Tool struct {
	Name       string
	Parameters json.RawMessage
}

// Call is the form of a call of one of the tools, as a JSON object with its name and then its arguments, and of what ends it:
//
//	{"name": "f", "arguments": {…}}end
//
// The arguments follow the tool's schema; their members come in any order.
func Call(tools []Tool, end string) *Grammar {
	names := &choices{}
	byName := map[string]func() *shape{}
	for _, t := range tools {
		name := spelled(t.Name)
		if byName[name] == nil {
			names.texts = append(names.texts, name)
			byName[name] = sync.OnceValue(func() *shape { // a request has many tools and calls few
				if len(t.Parameters) == 0 {
					return anyObject
				}
				return arguments(t.Parameters)
			})
		}
	}
	slices.Sort(names.texts)
	names.after = func(next *frame, i int32) *frame {
		return next.push(frame{op: value, shape: byName[names.texts[i]]()}).push(spaced(":")).push(spaced(`"arguments"`)).push(spaced(","))
	}
	form := (*frame)(nil).push(spaced(end)).push(spaced("}"))
	form = form.push(frame{op: value, shape: &shape{spellings: names}}).push(spaced(":")).push(spaced(`"name"`)).push(spaced("{"))
	return &Grammar{start: form}
}

func spaced(s string) frame { return frame{op: spacedLiteral, text: s} }
