package schema

import (
	"encoding/json"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// plain is what json.Unmarshal makes of a value.
func plain(n *Node) any {
	switch n.Kind() {
	case Bool:
		return n.Is(true)
	case Number:
		x, _ := n.Float()
		return x
	case String:
		s, _ := n.Str()
		return s
	case Array:
		list := []any{}
		for i := range n.Elements() {
			list = append(list, plain(&n.Elements()[i]))
		}
		return list
	case Object:
		members := map[string]any{}
		for i := range n.Members() {
			members[n.Members()[i].Key] = plain(&n.Members()[i])
		}
		return members
	}
	return nil
}

// FuzzParse: what is read is what package encoding/json reads, in memory in proportion to what is there, and every member is
// found by its name.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"type": ["object", null], "a": {"b": [1, -2.5e3, 0.10], "b": "\u00e9\ud800\n"}, "": true, "z": false}`, ` [] `, `{}`, `1e999`, `[1e999, 2]`,
		`"` + "\xff\x00é" + `"`, `{"b": 1, "a": 2, "b": 3, "\u0061": 4}`, `{"a": 1,}`, `[1,,2]`, strings.Repeat("[", 200) + strings.Repeat("]", 200), `nul`, `{} {}`, `-`,
		`{"k": 1, "a": 2, "j": 3, "b": 4, "i": 5, "c": 6, "h": 7, "d": 8, "g": 9, "e": 10, "f": 11, "l": 12}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want any
		wrong := json.Unmarshal(raw, &want)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		n, err := Parse(raw)
		runtime.ReadMemStats(&after)
		if (err != nil) != (wrong != nil) || (n == nil) != (err != nil) {
			t.Fatalf("%v, and encoding/json says %v", err, wrong)
		}
		if made, most := after.TotalAlloc-before.TotalAlloc, uint64(1<<18+150*len(raw)); made > most {
			t.Errorf("%d bytes for %d", made, len(raw))
		}
		if err != nil {
			return
		}
		if got := plain(n); !reflect.DeepEqual(got, want) {
			t.Fatalf("%#v, want %#v", got, want)
		}
		for i, m := range n.Members() {
			if n.Member(m.Key) != &n.Items[i] {
				t.Errorf("member %q is not found", m.Key)
			}
		}
	})
}

// TestNode: numbers stand as they are written, members are in the order of their names, and what is not there is nothing.
func TestNode(t *testing.T) {
	n, err := Parse([]byte(`{"type": ["string", 1], "n": 12345678901234567890.10, "none": null, "a": [1, 2], "of": {"type": "x"}}`))
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, m := range n.Members() {
		keys = append(keys, m.Key)
	}
	if !slices.IsSorted(keys) || len(keys) != 5 {
		t.Errorf("members %q", keys)
	}
	if got := n.Member("n").Text; got != "12345678901234567890.10" {
		t.Errorf("number %s", got)
	}
	if names, ok := n.Types(); !ok || !slices.Equal(names, []string{"string", ""}) {
		t.Errorf("types %q", names)
	}
	if names, ok := n.Member("of").Types(); !ok || !slices.Equal(names, []string{"x"}) {
		t.Errorf("types %q", names)
	}
	if n.Member("none").Given() || !n.Member("a").Given() || n.Member("none") == nil {
		t.Error("null")
	}
	repeated, err := Parse([]byte(`{"b": 1, "c": 2, "b": 3, "a": 4}`))
	if err != nil {
		t.Fatal(err)
	}
	var written []string
	for _, m := range repeated.Written() {
		written = append(written, m.Key+m.Text)
	}
	if got := strings.Join(written, " "); got != "c2 b3 a4" {
		t.Errorf("written %s", got)
	}
	var nothing *Node
	_, types := nothing.Types()
	_, str := nothing.Str()
	_, float := nothing.Float()
	if nothing.Kind() != None || nothing.Member("a") != nil || nothing.Elements() != nil || nothing.Members() != nil || len(nothing.Written()) > 0 || nothing.Local("#/a") != nil || nothing.Given() ||
		nothing.Is(false) || types || str || float || n.Member("a").Member("0") != nil || n.Member("a").Members() != nil || n.Elements() != nil {
		t.Error("something is found in nothing")
	}
}

// TestParseIsLinear: a document of eight times the size takes about eight times the memory, and ten thousand levels are the most.
func TestParseIsLinear(t *testing.T) {
	cost := func(s string) int {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := Parse([]byte(s)); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return int(after.TotalAlloc - before.TotalAlloc)
	}
	for name, of := range map[string]func(n int) string{
		"elements": func(n int) string { return "[1" + strings.Repeat(",1", n) + "]" },
		"levels":   func(n int) string { return strings.Repeat(`{"a":`, n/8) + "1" + strings.Repeat("}", n/8) },
		"members":  func(n int) string { return "{" + strings.Repeat(`"a":1,`, n) + `"a":2}` },
	} {
		if a, b := cost(of(4000)), cost(of(32_000)); b > 16*a {
			t.Errorf("%s: %d bytes, and %d for eight times as much", name, a, b)
		}
	}
	for levels, want := range map[int]bool{10_000: true, 10_001: false} {
		if n, err := Parse([]byte(strings.Repeat("[", levels) + strings.Repeat("]", levels))); (err == nil) != want || (n != nil) != want {
			t.Errorf("%d levels: %v", levels, err)
		}
	}
}

// TestDocument: a document is read when it is asked for, once however many ask at once; there may be none, or one that is no
// JSON.
func TestDocument(t *testing.T) {
	read := OnRead(t)
	d := &Document{Raw: json.RawMessage(`{"type": "object"}`)}
	if len(read()) > 0 {
		t.Fatal("read before anybody asks")
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if d.Root().Member("type").Text != "object" {
				t.Error("no type")
			}
		})
	}
	wg.Wait()
	if got := read(); got[string(d.Raw)] != 1 || len(got) != 1 {
		t.Errorf("read: %v", got)
	}
	var none *Document
	broken := &Document{Raw: json.RawMessage(`{"a": 1`)}
	if none.Root() != nil || (&Document{}).Root() != nil || broken.Root() != nil || broken.Root() != nil {
		t.Error("something was read from nothing")
	}
	if got := read(); got[string(broken.Raw)] != 1 {
		t.Errorf("read: %v", got)
	}
}
