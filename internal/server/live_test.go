package server

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

// What is asked of the tree reaches the monitor as the caller may have it, and bad questions are refused by name.
func TestCacheTree(t *testing.T) {
	for _, isolate := range []bool{true, false} {
		f := &figures{tree: someTree}
		o := options()
		o.Monitor, o.Keys, o.Isolation = f, named("alice", "bob", "OP"), "none"
		if isolate {
			o.Isolation = "key"
		}
		s := New(o)
		get := func(who, query string, want int) string {
			t.Helper()
			w := do(s, "GET", "/v1/cache/tree"+query, "", "X-Api-Key: key-"+who)
			if w.Code != want {
				t.Errorf("isolated %t: %s of %s: %d %s, want %d", isolate, query, who, w.Code, w.Body, want)
			}
			return w.Body.String()
		}
		if !isolate {
			get("alice", "", 403)
			get("OP", "", 200)
			if q := f.asked; len(q) != 1 || !q[0].All || q[0].Labels || q[0].Salt != ([16]byte{}) {
				t.Errorf("where all share a cache the operator asks %+v", q)
			}
			continue
		}
		var tree Tree
		if err := json.Unmarshal([]byte(get("alice", "", 200)), &tree); err != nil || len(tree.Nodes) != 2 {
			t.Errorf("%v: %+v", err, tree)
		}
		get("bob", "?most="+strconv.Itoa(mostNodes), 200)
		get("OP", "?most=1", 200)
		a, b, op := f.asked[0], f.asked[1], f.asked[2]
		if a.All || !a.Labels || a.Most != usualNodes || a.Salt == b.Salt || a.Salt == ([16]byte{}) || b.All || b.Most != mostNodes || !op.All || !op.Labels || op.Salt == a.Salt || op.Most != 1 {
			t.Errorf("asked %+v", f.asked)
		}
		for _, bad := range []string{"0", "-1", "1001", "x", "1e3", "99999999999999999999", "%00"} {
			if text := get("alice", "?most="+bad, 400); !strings.Contains(text, "most in the query must be a whole number from 1 to 1000") {
				t.Errorf("most=%s: %s", bad, text)
			}
		}
	}
}
