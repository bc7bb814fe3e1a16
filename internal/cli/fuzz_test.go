package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"hearth/internal/chat"
)

// FuzzLines: a line of debug parse, render or tokenize is answered with JSON or refused; its text means the same however it
// is cut.
func FuzzLines(f *testing.F) {
	for _, s := range []string{
		`{"text":"<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}}</tool_call>","tools":["f"]}`,
		`{"text":"<think>why</think>so","thinking":true,"cut":true,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}},{"name":"g","input_schema":{}}]}`,
		`{"text":"x","tools":[{}]}`, `{"tools":[null,3]}`, `null`, `"text"`, `[1,2]`,
		`{"messages":[{"role":"user","content":"hi"}]}`, `{"system":"s","max_tokens":1,"messages":[{"role":"user","content":[{"type":"image"}]}]}`, `{"input":"hi"}`,
	} {
		f.Add([]byte(s))
	}
	p, err := newOutputParser("hermes", "auto", "", "every")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if len(line) > 1000 { // every cut is tried
			return
		}
		v, err := p.parse(line)
		if err == nil {
			if _, err = json.Marshal(v); err != nil {
				t.Errorf("%q: %v", line, err)
			}
		} else if strings.HasPrefix(err.Error(), "fed ") {
			t.Errorf("%q: %v", line, err)
		}
		var text string
		if err := decodeLine(line, &text, "a string"); err == nil && !json.Valid(line) {
			t.Errorf("%q is %q", line, text)
		}
		if _, err := decoders[apiOf(line)](line); err != nil && err.Kind != chat.Invalid && err.Kind != chat.TooLarge {
			t.Errorf("%q: %v", line, err)
		}
	})
}

// FuzzState: of a file in which a server says that it runs, nothing is taken but one that has the process of its name and a
// URL of this protocol, and a file of a process that is gone is removed.
func FuzzState(f *testing.F) {
	own, err := json.Marshal(state{PID: os.Getpid(), URL: "http://127.0.0.1:8080", Model: "m"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(os.Getpid(), own)
	f.Add(1<<30, []byte(`{"pid":1073741824,"url":"http://[::1]:1"}`))
	f.Add(7, []byte(`{"pid":8,"url":"http://x"}`))
	f.Add(-1, []byte(`{"pid":-1,"url":"http://x","started":"2026-01-01T00:00:00Z"}`))
	f.Add(0, []byte(`{"pid":0,"url":"http://x"}`))
	f.Add(1, []byte(`null`))
	f.Fuzz(func(t *testing.T, pid int, text []byte) {
		base := t.TempDir()
		t.Setenv("XDG_RUNTIME_DIR", base)
		file := filepath.Join(base, "hearth", "serve-"+strconv.Itoa(pid)+".json")
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := announced()
		if err != nil || len(all) > 1 || len(all) == 1 && (all[0].PID != pid || !alive(pid) || !strings.HasPrefix(all[0].URL, "http://")) {
			t.Errorf("%d, %q: %v, %v", pid, text, all, err)
		}
	})
}
