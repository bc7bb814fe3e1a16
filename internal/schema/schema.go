// Package schema reads JSON Schemas. What a schema means is for its users: grammar/jsonschema tells what may be written by it,
// and whether a value is valid; dialect mends calls by the types it declares.
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
	place uint32 // among the members of its object, as they are written
	kind  Kind
}

// Parse reads one JSON value. It takes what json.Unmarshal takes into an any: no number beyond float64, no more than 10,000
// levels, and what is not UTF-8 in strings is replaced.
func Parse(raw []byte) (*Node, error) {
	if !json.Valid(raw) {
		return nil, errors.New("not one JSON value")
	}
	r := reader{text: string(raw)}
	r.count()
	root := new(Node)
	if err := r.value(root); err != nil {
		return nil, err
	}
	return root, nil
}

// MustParse is Parse of a value that stands in the program.
func MustParse(text string) *Node {
	n, err := Parse([]byte(text))
	if err != nil {
		panic(err)
	}
	return n
}

// reader makes nodes of valid JSON. Nodes share its text.
type reader struct {
	text  string
	at    int   // of the next byte
	sizes []int // of the arrays and objects that were not read yet, in the order they begin; 1 for empty ones
}

// count finds the sizes, so that the nodes of an array are made at once.
func (r *reader) count() {
	var open []int // of sizes
	for i := 0; i < len(r.text); i++ {
		switch r.text[i] {
		case '"':
			i = quoteAfter(r.text, i)
		case '[', '{':
			open = append(open, len(r.sizes))
			r.sizes = append(r.sizes, 1)
		case ',':
			r.sizes[open[len(open)-1]]++
		case ']', '}':
			open = open[:len(open)-1]
		}
	}
}

// quoteAfter is where a string ends that begins at i.
func quoteAfter(text string, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}

// next is the next byte that is neither blank nor between values.
func (r *reader) next() byte {
	for strings.IndexByte(" \t\r\n,:", r.text[r.at]) >= 0 {
		r.at++
	}
	return r.text[r.at]
}

// value fills a node.
func (r *reader) value(n *Node) (err error) {
	switch c := r.next(); c {
	case '[', '{':
		n.kind = Array
		if c == '{' {
			n.kind = Object
		}
		return r.items(n)
	case '"':
		n.kind, n.Text = String, r.string()
	case 't', 'f':
		n.kind, n.Text = Bool, r.word()
	case 'n':
		n.kind, n.Text = Null, r.word()
	default:
		n.kind, n.Text = Number, r.word()
		n.num, err = strconv.ParseFloat(n.Text, 64)
	}
	return err
}

// items reads an array or an object.
func (r *reader) items(n *Node) error {
	size := r.sizes[0]
	r.at, r.sizes = r.at+1, r.sizes[1:]
	for c := r.next(); c != ']' && c != '}'; c = r.next() {
		if n.Items == nil {
			n.Items = make([]Node, 0, size)
		}
		n.Items = n.Items[:len(n.Items)+1]
		item := &n.Items[len(n.Items)-1]
		if n.kind == Object {
			item.Key, item.place = r.string(), uint32(len(n.Items))
		}
		if err := r.value(item); err != nil {
			return err
		}
	}
	r.at++
	if n.kind == Object {
		slices.Reverse(n.Items) // the last one of a name is kept
		slices.SortStableFunc(n.Items, func(a, b Node) int { return strings.Compare(a.Key, b.Key) })
		n.Items = slices.CompactFunc(n.Items, func(a, b Node) bool { return a.Key == b.Key })
	}
	return nil
}

// word reads a number, true, false or null.
func (r *reader) word() string {
	start := r.at
	for r.at < len(r.text) && strings.IndexByte(" \t\r\n,]}", r.text[r.at]) < 0 {
		r.at++
	}
	return r.text[start:r.at]
}

// string reads a string. Only one that is not written as it is takes memory.
func (r *reader) string() string {
	start := r.at
	r.at = quoteAfter(r.text, start) + 1
	quoted := r.text[start:r.at]
	if strings.IndexByte(quoted, '\\') < 0 && utf8.ValidString(quoted) {
		return quoted[1 : len(quoted)-1]
	}
	var s string
	_ = json.Unmarshal([]byte(quoted), &s) // it is valid
	return s
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

// Written are the members of an object in the order in which they are written, a repeated one where it comes last.
func (n *Node) Written() []*Node {
	members := n.Members()
	list := make([]*Node, len(members))
	for i := range members {
		list[i] = &members[i]
	}
	slices.SortFunc(list, func(a, b *Node) int { return cmp.Compare(a.place, b.place) })
	return list
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
	if !ok {
		return nil
	}
	steps, ok := Steps(fragment)
	if !ok {
		return nil
	}
	for _, s := range steps {
		n = n.child(s)
	}
	return n
}

// Steps are the members and elements that a JSON Pointer leads through. It reports false for a fragment that is none.
func Steps(fragment string) ([]string, bool) {
	if fragment == "" {
		return nil, true
	}
	if p, err := url.PathUnescape(fragment); err == nil { // some write a key with a % in it as it is
		fragment = p
	}
	path, ok := strings.CutPrefix(fragment, "/")
	if !ok {
		return nil, false
	}
	steps := strings.Split(path, "/")
	for i, s := range steps {
		steps[i] = unescape.Replace(s)
	}
	return steps, true
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
