package wiretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// Breaking is how a protocol's requests are broken.
type Breaking struct {
	// Values are put in the place of values of another JSON type.
	Values []any
	// Index spells an element's place in an array, as the protocol's errors do: "[%d]".
	Index string
	// Own are ends of the paths below which everything is the client's own.
	Own []string
}

// All breaks body in every place: each value missing, null and of each other type. The names say what was done.
func (b Breaking) All(t *testing.T, body string) map[string]string {
	t.Helper()
	var root any
	if err := json.Unmarshal([]byte(body), &root); err != nil {
		t.Fatal(err)
	}
	bodies := map[string]string{}
	put := func(name string) {
		text, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		bodies[name] = string(text)
	}
	var walk func(path string, v any)
	try := func(path string, v any, set func(any)) {
		for _, other := range append(b.Values, nil) {
			if fmt.Sprintf("%T", other) != fmt.Sprintf("%T", v) {
				set(other)
				text, _ := json.Marshal(other)
				put(path + " = " + string(text))
			}
		}
		set(v)
		walk(path, v)
	}
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if slices.ContainsFunc(b.Own, func(end string) bool { return strings.HasSuffix(path, end) }) {
				return
			}
			for _, key := range slices.Sorted(maps.Keys(v)) {
				at := strings.TrimPrefix(path+"."+key, ".")
				old := v[key]
				delete(v, key)
				put(at + " missing")
				try(at, old, func(x any) { v[key] = x })
			}
		case []any:
			for i, old := range v {
				try(path+fmt.Sprintf(b.Index, i), old, func(x any) { v[i] = x })
			}
		}
	}
	walk("", root)
	return bodies
}

// Post sends body to p at path, as request req_1. A refusal must not be the server's fault and must have made nobody generate.
func Post(t *testing.T, p wire.Protocol, path, body string) (status int, reply string) {
	t.Helper()
	asked := false
	w := post(p, greeter(&asked), path, []byte(body))
	if w.Code != http.StatusOK && asked || w.Code >= 500 {
		t.Errorf("%s: status %d, generated %t: %s", body, w.Code, asked, w.Body)
	}
	return w.Code, w.Body.String()
}

// greeter answers every request with Hello, under any name, and notes that it was asked.
func greeter(asked *bool) *Generator {
	g := New()
	g.Script = func(r *chat.Request) ([]Step, error) { return Hello(max(r.N, 1)), nil }
	g.Names = []string{"*"}
	g.Got = func(*chat.Request) { *asked = true }
	return g
}

// post sends body to p at path, as request req_1, where g replies.
func post(p wire.Protocol, g *Generator, path string, body []byte) *httptest.ResponseRecorder {
	mux := http.NewServeMux()
	p.Mount(mux, Options(g))
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r.WithContext(wire.WithInfo(r.Context(), &wire.Info{RequestID: "req_1"})))
	return w
}

// Golden compares got with a file, line by line, or writes it with -update.
func Golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s: -want +got, rerun with -update if intended:\n%s", file, diff)
	}
}
