package dialect

// Families are all families.
var Families = append(append([]*Family(nil), families...), plain)

// Writer is a family's way to write calls.
type Writer struct {
	Family string
	w      written
}

// Writers are the ways of all families.
func Writers() (all []Writer) {
	for _, w := range writings {
		all = append(all, Writer{w.family, w})
	}
	return all
}

// Param is an argument: a string, or a json.Number, which is written as it is.
type Param struct {
	Name  string
	Value any
}

// Call writes one call.
func (w Writer) Call(name string, params []Param) string {
	c := call{name: name}
	for _, p := range params {
		c.params = append(c.params, param{p.Name, p.Value})
	}
	return w.w.calls([]call{c})
}
