package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Summaries say what a request is made of, and nothing of what it says or who sent it; they do not pile up.
func TestSummaries(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "odd [1] name")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	o := options()
	o.RequestDir = dir
	s := New(o)
	body := `{"model":"test-model","max_tokens":5,"system":"SECRET","metadata":{"user_id":"SECRET"},"stop_sequences":["SECRET"],
		"tools":[{"name":"get_weather","description":"SECRET","input_schema":{"type":"object","description":"SECRET"}}],
		"messages":[{"role":"user","content":"SECRET words"},
			{"role":"assistant","content":[{"type":"thinking","thinking":"SECRET"},{"type":"tool_use","id":"t","name":"get_weather","input":{"city":"SECRET"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"SECRET"}]}]}`
	for _, path := range []string{"/v1/messages", "/v1/messages/count_tokens"} {
		do(s, "POST", path, body, "Authorization: Bearer SECRET", "X-Api-Key: SECRET", "User-Agent: tester/1", "Cookie: SECRET")
	}
	files := jsonIn(dir)
	if len(files) != 2 {
		t.Fatalf("summaries: %v", files)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "SECRET") {
		t.Errorf("a summary tells secrets:\n%s", text)
	}
	var got summary
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	parts := ""
	for _, m := range got.Messages {
		parts += fmt.Sprint(m.Role, m.Parts, " ")
	}
	want := "system[text 6] user[text 12] assistant[reasoning 6 call get_weather 17] tool[result: text 6] "
	if parts != want || got.Headers["user-agent"] != "tester/1" || got.Path != "/v1/messages" || got.Max != 5 || got.Stops != 1 || got.Tools[0].Name != "get_weather" || got.Bytes != int64(len(body)) {
		t.Errorf("parts %q, want %q; summary %+v", parts, want, got)
	}
	if st, err := os.Stat(files[0]); err != nil || st.Mode().Perm()&0o077 != 0 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	for i := range maxSummaries + 5 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("20200101T000000-%06d.json", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	do(s, "POST", "/v1/messages", body)
	if files = jsonIn(dir); len(files) != maxSummaries {
		t.Errorf("%d summaries are kept", len(files))
	}
}

// With the level debug the log says what a request asks for, in numbers: nothing of what it says or who sent it.
func TestDebugLog(t *testing.T) {
	for _, level := range []slog.Level{slog.LevelInfo, slog.LevelDebug} {
		var log bytes.Buffer
		o := options()
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level}))
		s := New(o)
		do(s, "POST", "/v1/messages", `{"model":"test-model","max_tokens":2000,"system":"SECRET","stop_sequences":["SECRET"],"temperature":0.5,"top_k":3,
			"thinking":{"type":"enabled","budget_tokens":1024},"tools":[{"name":"SECRET","input_schema":{"type":"object"}}],
			"messages":[{"role":"user","content":"SECRET words"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"SECRET","input":{"a":"SECRET"}}]},
				{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"SECRET"}]}]}`, "X-Api-Key: SECRET", "User-Agent: tester/1")
		do(s, "POST", "/v1/completions", `{"prompt":"SECRET","max_tokens":7,"seed":9,"logprobs":2}`)
		text := log.String()
		if strings.Contains(text, "SECRET") {
			t.Errorf("the log tells secrets:\n%s", text)
		}
		for _, want := range []string{
			`msg=asked id=req_`, ` path=/v1/messages client=tester/1 model=test-model max_tokens=2000 messages=4 message_bytes=44 images=0 tools=1 tool_bytes=23 tool_choice=auto thinking=on ` +
				`thinking_budget=1024 stop_sequences=1 temperature=0.5 top_k=3`,
			` path=/v1/completions client="" model="" max_tokens=7 prompt_bytes=6 prompt_tokens=0 suffix_bytes=0 thinking=default n=1 seed=9 top_logprobs=2`,
		} {
			if strings.Contains(text, want) != (level == slog.LevelDebug) {
				t.Errorf("level %v, want %q:\n%s", level, want, text)
			}
		}
	}
}

// jsonIn are the files in dir that end so.
func jsonIn(dir string) (files []string) {
	des, _ := os.ReadDir(dir)
	for _, de := range des {
		if filepath.Ext(de.Name()) == ".json" {
			files = append(files, filepath.Join(dir, de.Name()))
		}
	}
	return files
}
