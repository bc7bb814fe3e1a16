//go:build unix

package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hearth/internal/access"
)

// A running server takes in keys that are made and lets go of those that are revoked, down to the last one, and shows each what
// it may use.
func TestKeysOfARunningServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	add := func(name string, l access.Limits) {
		k := access.PlainKey("key-" + name)
		k.Name, k.Plain, k.Limits = name, "", l
		if err := access.Add(file, k); err != nil {
			t.Fatal(err)
		}
	}
	add("ada", access.Limits{})
	p := start(t, nil, "--api-key-file", file)
	until := func(key string, want int) {
		t.Helper()
		deadline := time.Now().Add(30 * time.Second)
		for {
			got, b := request(t, "GET", p.url+"/v1/models", "", "x-api-key", key)
			if got == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d %s, want %d\n%s", key, got, b, want, p.stderr)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	until("key-ada", 200)
	until("key-bob", 401)
	add("bob", access.Limits{Models: []string{"other"}})
	until("key-bob", 200)
	if _, b := request(t, "GET", p.url+"/v1/models", "", "x-api-key", "key-bob"); strings.Contains(string(b), "demo") {
		t.Errorf("bob is shown %s", b)
	}
	for path, body := range map[string]string{"/v1/messages": hello, "/v1/chat/completions": hello, "/v1/responses": `{"input":"Hi"}`} {
		if code, b := request(t, "POST", p.url+path, body, "x-api-key", "key-bob"); code != http.StatusForbidden || !strings.Contains(string(b), `may use other`) {
			t.Errorf("%s: %d %s", path, code, b)
		}
	}
	if code, b := request(t, "POST", p.url+"/v1/messages", hello, "x-api-key", "key-ada"); code != 200 {
		t.Errorf("ada: %d %s", code, b)
	}
	for _, name := range []string{"ada", "bob"} {
		if err := access.Revoke(file, name); err != nil {
			t.Fatal(err)
		}
		until("key-"+name, 401)
	}
	// A file that is broken, or gone, changes nothing.
	add("eve", access.Limits{})
	until("key-eve", 200)
	if err := os.WriteFile(file, []byte("eve admin x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(p.stderr.String(), "the keys stay as they are"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no word of the broken file:\n%s", p.stderr)
		}
	}
	until("key-eve", 200)
}
