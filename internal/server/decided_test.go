package server

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"hearth/internal/chat"
	"hearth/internal/wire/wiretest"
)

// records are the lines of a JSON log.
func records(t *testing.T, b []byte) (all []map[string]any) {
	t.Helper()
	for line := range bytes.Lines(b) {
		var r map[string]any
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, r)
	}
	return all
}

// record is the record with a message, nil if there is none.
func record(all []map[string]any, msg string) map[string]any {
	for _, r := range all {
		if r["msg"] == msg {
			return r
		}
	}
	return nil
}

// TestDecided: with the level debug a request asks to be explained, and its prompt is logged where that is allowed alone.
func TestDecided(t *testing.T) {
	for _, level := range []slog.Level{slog.LevelInfo, slog.LevelDebug} {
		for _, prompts := range []bool{false, true} {
			var log bytes.Buffer
			asked := chat.ExplainNothing
			m := wiretest.New()
			m.Script = func(r *chat.Request) ([]wiretest.Step, error) {
				asked = r.Explain
				u := &chat.Usage{Prompt: 3}
				if r.Explain != chat.ExplainNothing {
					u.Decisions = []chat.Decision{{What: "parser", Value: "hermes", Origin: "the template's text"}, {What: "top_p", Value: "0.5", Origin: chat.OfSettings}}
				}
				if r.Explain == chat.ExplainText {
					u.Text = "the prompt" + strings.Repeat("x", longestPrompt)
				}
				return append([]wiretest.Step{{Event: chat.Event{Kind: chat.EventStart, Usage: u}}}, wiretest.Hello(1)[1:]...), nil
			}
			o := options()
			o.Models, o.LogPrompts = m, prompts
			o.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: level}))
			o.Origin = func(model, flag string) string { return model + " --" + flag }
			do(New(o), "POST", "/v1/messages", messages)
			all := records(t, log.Bytes())
			decided, prompt := record(all, "decided"), record(all, "prompt")
			if level == slog.LevelInfo {
				if asked != chat.ExplainNothing || decided != nil || prompt != nil {
					t.Errorf("info: asked %v, %v, %v", asked, decided, prompt)
				}
				continue
			}
			if decided["parser"] != "hermes (the template's text)" || decided["top_p"] != "0.5 (test-model --top-p)" || decided["id"] == "" {
				t.Errorf("decided %v", decided)
			}
			text, _ := prompt["text"].(string)
			if (prompt != nil) != prompts || prompts && (!strings.HasPrefix(text, "the promptx") || len(text) < longestPrompt || len(text) > longestPrompt+len("…")) {
				t.Errorf("prompts %v: %d bytes", prompts, len(text))
			}
		}
	}
}

// TestWaited: who waited for long has a line that says for what.
func TestWaited(t *testing.T) {
	for _, tc := range []struct {
		queued time.Duration
		waited string
		want   any
	}{
		{longWait - 1, "slot", nil},
		{longWait, "slot", "slot"},
		{time.Minute, "memory", "memory"},
		{time.Minute, "", "step"},
	} {
		var log bytes.Buffer
		u := &chat.Usage{Prompt: 3, Output: 1, Hit: "miss", Queued: tc.queued, Waited: tc.waited}
		o := options()
		o.Models = wiretest.New(wiretest.Step{Event: chat.Event{Kind: chat.EventStart, Usage: u}}, wiretest.Step{Event: chat.Event{Kind: chat.EventFinish, Finish: chat.FinishStop, Usage: u}})
		o.Log = slog.New(slog.NewJSONHandler(&log, nil))
		do(New(o), "POST", "/v1/messages", messages)
		if got := record(records(t, log.Bytes()), "waited"); got["for"] != tc.want || tc.want != nil && got["ms"] != float64(tc.queued.Milliseconds()) {
			t.Errorf("%v for %q: %v", tc.queued, tc.waited, got)
		}
	}
}

// TestPerfLog: in the log both lines are records with the same figures.
func TestPerfLog(t *testing.T) {
	var log bytes.Buffer
	u := &chat.Usage{Prompt: 10, Cached: 4, Output: 1, Hit: "prefix", Around: [2]string{"secret", "words"}}
	o := options()
	o.Models = wiretest.New(wiretest.Step{Event: chat.Event{Kind: chat.EventStart, Usage: u}}, wiretest.Step{Event: chat.Event{Kind: chat.EventFinish, Finish: chat.FinishStop, Usage: u}})
	o.PerfLog, o.Log = true, slog.New(slog.NewJSONHandler(&log, nil))
	do(New(o), "POST", "/v1/messages", messages)
	all := records(t, log.Bytes())
	cache, line := record(all, "cache"), record(all, "perf")
	if cache["reason"] != "prefix" || cache["cached_tokens"] != 4.0 || cache["request"] != record(all, "request")["id"] {
		t.Errorf("cache %v", cache)
	}
	if p, ok := line["perf"].(map[string]any); !ok || p["input_tokens"] != 10.0 || p["prompt_cache"] != "prefix" {
		t.Errorf("perf %v", line)
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("text of a prompt: %s", log.String())
	}
}
