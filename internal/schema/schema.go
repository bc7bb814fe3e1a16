// Package schema reads JSON Schemas. What a schema means is for its users: package wire/openai checks a value against one,
// dialect mends calls by the types it declares, grammar tells which tokens may come next.
//
// A document is read once, when it is first asked for, into a tree that does not change and that any number of goroutines may
// use. Reading takes time and memory in proportion to the document; its size is bounded by who takes it in. References are
// followed when they are asked for, and only into their own document: nothing is fetched.
package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Kind is the type of a JSON value.
type Kind uint8

const (
	None Kind = iota // of a nil *Node: there is no value
	Null
	Bool
	Number
	String
	Array
	Object
)

// String is how a schema's type calls it.
func (k Kind) String() string {
	return [...]string{"", "null", "boolean", "number", "string", "array", "object"}[k]
}

// Node is a JSON value: a schema, a part of one, or a value to compare with one. Two nodes of a document are the same if their
// addresses are. The methods take a nil *Node for a value that is not there.
type Node struct {
	Key   string // its name, if it is a member of an object
	Text  string // what a string says; a number, true, false and null as they are written
	Items []Node // an array's elements; an object's members in the order of their names, of a repeated name the last
	num   float64
	kind  Kind
}

// Parse reads one JSON value. It takes what json.Unmarshal takes into an any: no number beyond float64, no more than 10,000
// levels, and what is not UTF-8 in strings is replaced.
func Parse(raw []byte) (*Node, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more than one value")
	}
	root := new(Node)
	if err := root.take(v); err != nil {
		return nil, err
	}
	return root, nil
}

// take fills a node.
func (n *Node) take(v any) (err error) {
	switch v := v.(type) {
	case nil:
		n.kind, n.Text = Null, "null"
	case bool:
		n.kind, n.Text = Bool, strconv.FormatBool(v)
	case json.Number:
		n.kind, n.Text = Number, string(v)
		n.num, err = v.Float64()
	case string:
		n.kind, n.Text = String, v
	case []any:
		n.kind, n.Items = Array, make([]Node, len(v))
		for i := range v {
			err = cmp.Or(err, n.Items[i].take(v[i]))
		}
	case map[string]any:
		n.kind, n.Items = Object, make([]Node, len(v))
		for i, key := range slices.Sorted(maps.Keys(v)) {
			n.Items[i].Key = key
			err = cmp.Or(err, n.Items[i].take(v[key]))
		}
	}
	return err
}

// NewString is a string that stands in no document.
func NewString(text string) *Node { return &Node{Text: text, kind: String} }

// Kind is the type of a value.
func (n *Node) Kind() Kind {
	if n == nil {
		return None
	}
	return n.kind
}

// Member is a member of an object, nil if there is none of that name.
func (n *Node) Member(key string) *Node {
	members := n.Members()
	for len(members) > 8 { // few are looked through sooner than halved
		if mid := len(members) / 2; members[mid].Key <= key {
			members = members[mid:]
		} else {
			members = members[:mid]
		}
	}
	for i := range members {
		if members[i].Key == key {
			return &members[i]
		}
	}
	return nil
}

// Members are those of an object; no other value has any.
func (n *Node) Members() []Node {
	if n.Kind() != Object {
		return nil
	}
	return n.Items
}

// Elements are those of an array; no other value has any.
func (n *Node) Elements() []Node {
	if n.Kind() != Array {
		return nil
	}
	return n.Items
}

// Str is what a string says; no other value is one.
func (n *Node) Str() (string, bool) {
	if n.Kind() != String {
		return "", false
	}
	return n.Text, true
}

// Float is a number as the nearest float64; no other value is one.
func (n *Node) Float() (float64, bool) {
	if n.Kind() != Number {
		return 0, false
	}
	return n.num, true
}

// Given tells whether a value is there and not null.
func (n *Node) Given() bool { return n.Kind() > Null }

// Is tells whether a value is the boolean b.
func (n *Node) Is(b bool) bool { return n.Kind() == Bool && (n.Text == "true") == b }

// Types are the names that a schema's type lists, "" for one that is no name. It reports false where type says nothing.
func (n *Node) Types() ([]string, bool) {
	switch t := n.Member("type"); t.Kind() {
	case String:
		return []string{t.Text}, true
	case Array:
		names := make([]string, len(t.Items))
		for i := range t.Items {
			names[i], _ = t.Items[i].Str()
		}
		return names, true
	}
	return nil, false
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// Local is what a reference leads to in the document whose root n is: a JSON Pointer as the fragment of a URI (RFC 6901, section
// 6), as in #/$defs/Node or #/anyOf/0/items; # is the root itself. It is nil for a reference into another document, to an anchor
// or to what is not there.
func (n *Node) Local(ref string) *Node {
	fragment, ok := strings.CutPrefix(ref, "#")
	if !ok || fragment == "" {
		if !ok {
			return nil
		}
		return n
	}
	if p, err := url.PathUnescape(fragment); err == nil { // some write a key with a % in it as it is
		fragment = p
	}
	path, ok := strings.CutPrefix(fragment, "/")
	if !ok {
		return nil
	}
	for token := range strings.SplitSeq(path, "/") {
		if n = n.child(unescape.Replace(token)); n == nil {
			return nil
		}
	}
	return n
}

// child is an object's member, or an array's element by its number.
func (n *Node) child(key string) *Node {
	if list := n.Elements(); len(list) > 0 {
		i, err := strconv.ParseUint(key, 10, 31)
		if err == nil && i < uint64(len(list)) && (key[0] != '0' || key == "0") { // no leading zeros
			return &list[i]
		}
	}
	return n.Member(key)
}

// Document is a schema as it was sent. It is read when its root is first asked for. It must not be copied.
type Document struct {
	Raw  json.RawMessage
	once sync.Once
	root *Node
}

// onRead is told of documents that are read: tests count them.
var onRead func(*Document)

// Root is the schema, nil where there is none or it is not JSON.
func (d *Document) Root() *Node {
	if d == nil || len(d.Raw) == 0 {
		return nil
	}
	d.once.Do(func() {
		if onRead != nil {
			onRead(d)
		}
		d.root, _ = Parse(d.Raw)
	})
	return d.root
}
