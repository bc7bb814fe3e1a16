package generate

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/jinja"
)

// TestDeepSeekV32 holds the built-in template against mlx-lm's renderer.
func TestDeepSeekV32(t *testing.T) {
	data, err := os.ReadFile("testdata/deepseek_v32.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Cases []struct {
			Vars  json.RawMessage
			Text  *string
			Error string
		}
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	tmpl, err := LoadTemplate(fstest.MapFS{"config.json": file(`{"model_type": "deepseek_v32"}`)}, "")
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range golden.Cases {
		vars, err := jinja.FromJSON(c.Vars)
		if err != nil {
			t.Fatal(err)
		}
		got, err := tmpl.Render(t.Context(), vars.(*jinja.Dict), jinja.Limits{})
		switch {
		case c.Text == nil && err == nil:
			t.Errorf("case %d: no error, the reference has %s: %s", i, c.Error, got)
		case c.Text != nil && err != nil:
			t.Errorf("case %d: %v", i, err)
		case c.Text != nil:
			if diff := cmp.Diff(*c.Text, got); diff != "" {
				t.Errorf("case %d, %s (-want +got):\n%s", i, c.Vars, diff)
			}
		}
	}
}

func file(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

// TestPrecedence: which of several templates in a folder counts, with and without tools.
func TestPrecedence(t *testing.T) {
	const (
		list  = `{"chat_template": [{"name": "default", "template": "list"}, {"name": "tool_use", "template": "list tools"}, {"name": "rag", "template": "r"}]}`
		alone = `{"chat_template": "config"}`
	)
	for _, c := range []struct {
		name        string
		fs          fstest.MapFS
		plain, tool string
	}{
		{"file", fstest.MapFS{"chat_template.jinja": file("file"), "tokenizer_config.json": file(list), "chat_template.json": file(alone)}, "file", "file"},
		{"file and folder", fstest.MapFS{"chat_template.jinja": file("file"), "additional_chat_templates/tool_use.jinja": file("extra"), "tokenizer_config.json": file(list)}, "file", "extra"},
		{"folder alone", fstest.MapFS{"additional_chat_templates/tool_use.jinja": file("extra"), "tokenizer_config.json": file(list)}, "list", "extra"},
		{"named list", fstest.MapFS{"tokenizer_config.json": file(list)}, "list", "list tools"},
		{"string", fstest.MapFS{"tokenizer_config.json": file(alone), "chat_template.json": file(`{"chat_template": "old"}`)}, "config", "config"},
		{"old file", fstest.MapFS{"chat_template.json": file(`{"chat_template": "old"}`)}, "old", "old"},
		{"a template before a built-in one", fstest.MapFS{"chat_template.jinja": file("file"), "config.json": file(`{"model_type": "deepseek_v32"}`)}, "file", "file"},
		{"a named built-in one before a template", fstest.MapFS{"chat_template.jinja": file("file"), "tokenizer_config.json": file(`{"chat_template_type": "deepseek_v32"}`)}, "<｜begin▁of▁sentence｜>", "<｜begin▁of▁sentence｜>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tmpl, err := LoadTemplate(c.fs, "")
			if err != nil {
				t.Fatal(err)
			}
			for tools, want := range map[bool]string{false: c.plain, true: c.tool} {
				vars := object("messages", jinja.NewList())
				if got, err := tmpl.forRequest(tools).Render(t.Context(), vars, jinja.Limits{}); err != nil || got != want {
					t.Errorf("tools %v: got %q, %v, want %q", tools, got, err, want)
				}
			}
		})
	}
	if _, err := LoadTemplate(fstest.MapFS{}, ""); !errors.Is(err, ErrNoTemplate) {
		t.Errorf("got %v, want ErrNoTemplate", err)
	}
	_, err := LoadTemplate(fstest.MapFS{"tokenizer_config.json": file(`{"chat_template_type": "muse"}`)}, "")
	if err == nil || !strings.Contains(err.Error(), `chat_template_type "muse"`) {
		t.Errorf("got %v, want an error that names the type", err)
	}
}

// TestHarmony pins the format of gpt-oss: reasoning stays while a call is open, and only then.
func TestHarmony(t *testing.T) {
	tmpl, err := LoadTemplate(fstest.MapFS{"config.json": file(`{"model_type": "gpt_oss"}`)}, "")
	if err != nil {
		t.Fatal(err)
	}
	tmpl.Now = func() time.Time { return time.Date(2026, 3, 5, 0, 0, 0, 0, time.UTC) }
	vars, err := jinja.FromJSON([]byte(`{"add_generation_prompt": true, "reasoning_effort": "high",
		"tools": [{"type": "function", "function": {"name": "f", "description": "Do.", "parameters": {"type": "object", "required": ["a"],
			"properties": {"a": {"type": "string", "description": "A."}, "b": {"type": "array", "items": {"type": "integer"}}, "c": {"enum": ["x", "y"], "default": "x"}}}}}],
		"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "Q"}, {"role": "assistant", "content": "A", "thinking": "gone"}, {"role": "user", "content": "R"},
			{"role": "assistant", "content": "", "thinking": "kept", "tool_calls": [{"function": {"name": "f", "arguments": {"a": "é"}}}]}, {"role": "tool", "content": "1"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	const want = "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\nCurrent date: 2026-03-05\n\nReasoning: high\n\n" +
		"# Valid channels: analysis, commentary, final. Channel must be included for every message.\nCalls to these tools must go to the commentary channel: 'functions'.<|end|>" +
		"<|start|>developer<|message|># Instructions\n\nS\n\n# Tools\n\n## functions\n\nnamespace functions {\n\n// Do.\ntype f = (_: {\n// A.\na: string,\nb?: number[],\nc?: \"x\" | \"y\", // default: x,\n}) => any;\n\n} // namespace functions<|end|>" +
		"<|start|>user<|message|>Q<|end|><|start|>assistant<|channel|>final<|message|>A<|end|><|start|>user<|message|>R<|end|>" +
		"<|start|>assistant<|channel|>analysis<|message|>kept<|end|><|start|>assistant to=functions.f<|channel|>commentary json<|message|>{\"a\": \"é\"}<|call|>" +
		"<|start|>functions.f to=assistant<|channel|>commentary<|message|>\"1\"<|end|><|start|>assistant"
	got, err := tmpl.Render(t.Context(), vars.(*jinja.Dict), jinja.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
