// Package schema reads JSON Schemas. What a schema means is for its users: package wire/openai checks a value against one,
// dialect mends calls by the types it declares, grammar tells which tokens may come next.
//
// A document is read once, when it is first asked for, into a tree that does not change and that any number of goroutines may
// use. Reading takes time and memory in proportion to the document; its size is bounded by who takes it in. References are
// followed when they are asked for, and only into their own document: nothing is fetched.
package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
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
	if !json.Valid(raw) {
		return nil, errors.New("not JSON, or nested too deep")
	}
	p := parser{s: string(raw)}
	root := new(Node)
	p.value(root)
	if p.err != nil {
		return nil, p.err
	}
	return root, nil
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
	if members := n.Members(); members != nil {
		if i, ok := slices.BinarySearchFunc(members, key, func(m Node, key string) int { return strings.Compare(m.Key, key) }); ok {
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

// Len is the size of what was sent, in bytes.
func (d *Document) Len() int {
	if d == nil {
		return 0
	}
	return len(d.Raw)
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

// parser reads what json.Valid has found to be JSON.
type parser struct {
	s     string
	at    int
	nodes []Node // of the arrays and objects that are not at their end
	order []int32
	err   error
}

func (p *parser) space() {
	for p.at < len(p.s) && p.s[p.at] <= ' ' {
		p.at++
	}
}

// value reads the next value into n, all but its key.
func (p *parser) value(n *Node) {
	p.space()
	start := p.at
	switch c := p.s[start]; c {
	case '{', '[':
		n.kind = Array
		if c == '{' {
			n.kind = Object
		}
		p.items(n)
		return
	case '"':
		n.kind, n.Text = String, p.str()
		return
	case 'n':
		n.kind = Null
	case 't', 'f':
		n.kind = Bool
	default:
		n.kind = Number
	}
	for p.at < len(p.s) && p.s[p.at] > ' ' && p.s[p.at] != ',' && p.s[p.at] != ']' && p.s[p.at] != '}' {
		p.at++
	}
	if n.Text = p.s[start:p.at]; n.kind == Number {
		var err error
		if n.num, err = strconv.ParseFloat(n.Text, 64); err != nil && p.err == nil {
			p.err = err
		}
	}
}

// items reads an array or an object.
func (p *parser) items(n *Node) {
	first := len(p.nodes)
	p.at++ // its bracket
	for p.space(); p.s[p.at] != ']' && p.s[p.at] != '}'; p.space() {
		if p.s[p.at] == ',' {
			p.at++
			p.space()
		}
		var item Node
		if n.kind == Object {
			item.Key = p.str()
			p.space()
			p.at++ // its colon
		}
		p.value(&item)
		p.nodes = append(p.nodes, item)
	}
	p.at++
	n.Items = make([]Node, 0, len(p.nodes)-first)
	if list := p.nodes[first:]; n.kind == Array {
		n.Items = append(n.Items, list...)
	} else {
		n.Items = p.sorted(n.Items, list)
	}
	clear(p.nodes[first:])
	p.nodes = p.nodes[:first]
}

// sorted appends members in the order of their names, without those that a later one replaces.
func (p *parser) sorted(out, list []Node) []Node {
	p.order = p.order[:0]
	for i := range list {
		p.order = append(p.order, int32(i))
	}
	slices.SortFunc(p.order, func(a, b int32) int { return cmp.Or(strings.Compare(list[a].Key, list[b].Key), int(a-b)) })
	for i, at := range p.order {
		if i+1 == len(p.order) || list[p.order[i+1]].Key != list[at].Key {
			out = append(out, list[at])
		}
	}
	return out
}

// str reads a string. One without escapes shares the document's bytes.
func (p *parser) str() string {
	start, escaped := p.at, false
	for p.at++; p.s[p.at] != '"'; p.at++ {
		if p.s[p.at] == '\\' {
			p.at, escaped = p.at+1, true
		}
	}
	p.at++
	if text := p.s[start+1 : p.at-1]; !escaped && utf8.ValidString(text) {
		return text
	}
	var out string
	if err := json.Unmarshal([]byte(p.s[start:p.at]), &out); err != nil && p.err == nil {
		p.err = err
	}
	return out
}
