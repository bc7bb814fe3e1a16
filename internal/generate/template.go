package generate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"hearth/internal/jinja"
	"hearth/internal/regular"
)

// Template is a model's chat template with the variables its tokenizer adds.
type Template struct {
	*jinja.Template
	tools  *jinja.Template // a variant for requests with tools; usually nil
	tokens *jinja.Dict     // bos_token, eos_token …, as the reference passes them
}

// Bounds on what is read of a folder: the longest known templates have some 50 kB, and a tokenizer_config.json that lists
// every token some 30 MB.
const (
	maxTemplateBytes = 4 << 20
	maxConfigBytes   = 64 << 20
)

// tokenNames are the special tokens that templates know by name, in the reference's order.
var tokenNames = []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}

// ErrNoTemplate reports a model without a chat template: a base model, or one whose template lives in code.
var ErrNoTemplate = errors.New("the model has no chat template (chat_template.jinja, or chat_template in tokenizer_config.json)")

// LoadTemplate finds the chat template in a model's folder: chat_template.jinja, else chat_template in
// tokenizer_config.json (a string, or a list of named ones), else chat_template.json, else a built-in one that the
// folder gives evidence for. additional_chat_templates/tool_use.jinja serves requests with tools. A chat_template_type in
// tokenizer_config.json names a built-in one and comes first. The order is that of transformers 5.23 and mlx-lm 0.32.
func LoadTemplate(fsys fs.FS) (*Template, error) {
	t, err := loadTemplate(fsys)
	return t, regular.Short(err)
}

func loadTemplate(fsys fs.FS) (*Template, error) {
	var config, old, specials map[string]json.RawMessage
	for name, v := range map[string]*map[string]json.RawMessage{
		"tokenizer_config.json": &config, "chat_template.json": &old, "special_tokens_map.json": &specials,
	} {
		if err := readJSON(fsys, name, v); err != nil {
			return nil, fmt.Errorf("load chat template: %w", err)
		}
	}
	name := "chat_template.jinja"
	src, err := readText(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("load chat template: %w", err)
	}
	tools, err := readText(fsys, "additional_chat_templates/tool_use.jinja")
	if err != nil {
		return nil, fmt.Errorf("load chat template: %w", err)
	}
	if kind := tokenText(config["chat_template_type"]); kind != "" { // mlx-lm's name for a renderer in code
		b, ok := builtins[kind]
		if !ok {
			return nil, fmt.Errorf("load chat template: tokenizer_config.json: chat_template_type %s is not supported", regular.Quote(kind))
		}
		name, src, tools = "built-in "+kind, b, ""
	}
	if src == "" {
		extra := tools
		name = "tokenizer_config.json"
		if src, tools, err = templateField(config["chat_template"]); err == nil && src == "" {
			name = "chat_template.json"
			src, tools, err = templateField(old["chat_template"])
		}
		if err != nil {
			return nil, fmt.Errorf("load chat template: %s: %w", name, err)
		}
		if extra != "" {
			tools = extra
		}
	}
	if src == "" {
		if kind := builtinFor(fsys); kind != "" {
			name, src = "built-in "+kind, builtins[kind]
		}
	}
	if src == "" {
		return nil, fmt.Errorf("load chat template: %w", ErrNoTemplate)
	}
	t, err := NewTemplate(name, src)
	if err != nil {
		return nil, fmt.Errorf("load chat template: %w", err)
	}
	if tools != "" {
		if t.tools, err = jinja.Parse(name+" (tool_use)", tools); err != nil {
			return nil, fmt.Errorf("load chat template: %w", err)
		}
	}
	for _, n := range tokenNames {
		if s := tokenText(config[n]); s != "" {
			t.tokens.Set(n, s)
		} else if s := tokenText(specials[n]); s != "" {
			t.tokens.Set(n, s)
		}
	}
	return t, nil
}

// NewTemplate makes a Template without special tokens from a template's text.
func NewTemplate(name, src string) (*Template, error) {
	t, err := jinja.Parse(name, src)
	if err != nil {
		return nil, err
	}
	return &Template{Template: t, tokens: jinja.NewDict()}, nil
}

// templateField reads the two forms of chat_template: a text, or a list of texts of which "default" is the template
// and "tool_use" the one for requests with tools.
func templateField(m json.RawMessage) (src, tools string, err error) {
	if isNull(m) {
		return "", "", nil
	}
	if json.Unmarshal(m, &src) == nil {
		return src, "", nil
	}
	var list []struct{ Name, Template string }
	if err := json.Unmarshal(m, &list); err != nil {
		return "", "", errors.New("chat_template is neither a string nor a list of named templates")
	}
	for _, v := range list {
		switch v.Name {
		case "default":
			src = v.Template
		case "tool_use":
			tools = v.Template
		}
	}
	if src == "" && len(list) > 0 {
		src = list[0].Template
	}
	return src, tools, nil
}

// tokenText reads a special token written as a string or as an object with its content.
func tokenText(m json.RawMessage) string {
	var s string
	if isNull(m) || json.Unmarshal(m, &s) == nil {
		return s
	}
	var o struct{ Content string }
	if json.Unmarshal(m, &o) != nil {
		return ""
	}
	return o.Content
}

// mentions tells whether the template's text has a word.
func (t *Template) mentions(word string) bool { return strings.Contains(t.Source(), word) }

// forRequest is the variant to use.
func (t *Template) forRequest(hasTools bool) *jinja.Template {
	if hasTools && t.tools != nil {
		return t.tools
	}
	return t.Template
}

// wantsList finds out by trial whether message content must be a list of parts: some templates of models that also see
// images print nothing for a plain string. A template that fails on the trial is believed to want strings; one that
// prints the text in neither form is broken.
func (t *Template) wantsList(limits jinja.Limits) (bool, error) {
	const probe = "hearth-probe-text"
	part := jinja.NewDict()
	part.Set("type", "text")
	part.Set("text", probe)
	prints := func(content jinja.Value) (bool, error) {
		m := jinja.NewDict()
		m.Set("role", "user")
		m.Set("content", content)
		vars := t.tokens.Clone()
		vars.Set("messages", jinja.NewList(m))
		vars.Set("tools", nil)
		vars.Set("documents", nil)
		vars.Set("add_generation_prompt", true)
		out, err := t.Template.Render(context.Background(), vars, limits)
		return strings.Contains(out, probe), err
	}
	asString, errString := prints(probe)
	if asString {
		return false, nil
	}
	asList, errList := prints(jinja.NewList(part))
	if asList {
		return true, nil
	}
	if errString == nil && errList == nil {
		return false, fmt.Errorf("chat template %s leaves out what the user says", t.Name())
	}
	return false, nil
}

func isNull(m json.RawMessage) bool { return len(m) == 0 || string(m) == "null" }

// readText reads a file that may be absent.
func readText(fsys fs.FS, name string) (string, error) {
	data, err := regular.ReadFS(fsys, name, maxTemplateBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return string(data), nil
}

// readJSON reads a file that may be absent into v.
func readJSON(fsys fs.FS, name string, v any) error {
	data, err := regular.ReadFS(fsys, name, maxConfigBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}
