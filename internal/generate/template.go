package generate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"hearth/internal/dialect"
	"hearth/internal/jinja"
	"hearth/internal/jsonc"
	"hearth/internal/regular"
	"hearth/internal/tokenizer"
)

// Template is a model's chat template with the variables its tokenizer adds.
type Template struct {
	*jinja.Template
	tools  *jinja.Template // a variant for requests with tools; usually nil
	tokens *jinja.Dict     // bos_token, eos_token …, as the reference passes them

	given   bool // by a person, in the place of the folder's own
	builtin bool // and it is one of ours

	// What is wrong with the files of templates and was read over, a line each with the file first. The tokenizer tells what is
	// wrong with those that name tokens as well.
	warnings []string
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
// tokenizer_config.json names a built-in one and comes first. The order is that of transformers 5.23 and mlx-lm 0.32. A
// broken file counts as absent; where none is left the error is a BrokenError.
//
// What is given comes in the place of the folder's own, unless it is "": the name of a file, of a folder with a template, of one
// of dialect.Builtins, the text of a template, or NoTemplate. What is wrong with it is a GivenError.
func LoadTemplate(fsys fs.FS, given string) (t *Template, err error) {
	l := &loader{fsys: fsys}
	switch given {
	case "":
		t, err = l.own()
	case NoTemplate:
		err = ErrNoTemplate
	default:
		t, err = l.given(given)
	}
	switch {
	case err == nil:
		l.setTokens(t)
		return t, nil
	case errors.As(err, new(*GivenError)): // short already, and what is wrong may have a line of its own
		return nil, err
	case !errors.As(err, new(*BrokenError)):
		err = fmt.Errorf("load chat template: %w", err)
	}
	return nil, regular.Short(err)
}

// BrokenError is ErrNoTemplate for a folder that has one, in a file that cannot be read.
type BrokenError struct {
	Why []string // a line for each such file
}

func (e *BrokenError) Error() string {
	return "load chat template: " + strings.Join(e.Why, "; ") + "; no other file has a template"
}

func (e *BrokenError) Unwrap() error { return ErrNoTemplate }

// loader reads the files that templates come in.
type loader struct {
	fsys     fs.FS
	warnings []string // for people
	why      []string // why a file gives no template; told as warnings by whoever else reads it
	err      error

	config, specials map[string]json.RawMessage // see readTokens
}

// text reads a file that may be absent.
func (l *loader) text(name string) string {
	data, err := regular.ReadFS(l.fsys, name, maxTemplateBytes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.err = cmp.Or(l.err, fmt.Errorf("read %s: %w", name, err))
	}
	return string(data)
}

// keys reads a JSON file that may be absent. One that is no JSON gives none.
func (l *loader) keys(name string) map[string]json.RawMessage {
	data, err := regular.ReadFS(l.fsys, name, maxConfigBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		l.err = cmp.Or(l.err, fmt.Errorf("read %s: %w", name, err))
		return nil
	}
	var keys map[string]json.RawMessage
	fault, err := jsonc.Unmarshal(data, &keys)
	if err != nil {
		l.why = append(l.why, name+": "+jsonc.Mistyped(err).Error())
		return nil
	}
	if fault != "" && name == oldTemplateFile {
		l.warn(name + ": " + jsonc.ReadOver(fault))
	}
	return keys
}

func (l *loader) warn(line string) {
	l.warnings = append(l.warnings, regular.ClipTo(line, 3*regular.Line))
}

// field reads chat_template of a file's keys. One that is no template counts as none.
func (l *loader) field(name string, keys map[string]json.RawMessage) (src, tools string) {
	src, tools, err := templateField(keys["chat_template"])
	if err != nil {
		l.why = append(l.why, name+": "+err.Error())
		l.warn(name + ": " + err.Error() + "; the key is left out")
	}
	return src, tools
}

// Names of files with templates.
const (
	templateFile     = "chat_template.jinja"
	toolTemplateFile = "additional_chat_templates/tool_use.jinja"
	configFile       = "tokenizer_config.json"
	oldTemplateFile  = "chat_template.json"
)

// source is the text of a template, and of its variant for requests with tools, with their files.
type source struct{ name, text, toolName, tools string }

// own is the folder's template.
func (l *loader) own() (*Template, error) {
	src, err := l.find()
	switch {
	case err != nil:
		return nil, err
	case src.text == "" && len(l.why) > 0:
		return nil, &BrokenError{Why: l.why}
	case src.text == "":
		return nil, ErrNoTemplate
	}
	t, err := NewTemplate(src.name, src.text)
	if err != nil {
		return nil, err
	}
	if src.tools != "" {
		name := cmp.Or(src.toolName, src.name+" (tool_use)")
		if t.tools, err = jinja.Parse(name, src.tools); err != nil {
			l.warn(name + ": " + strings.TrimPrefix(err.Error(), "parse template "+name+": ") + "; it is left out: requests with tools use the template for those without")
		}
	}
	t.warnings = l.warnings
	return t, nil
}

// given is a template that a person gave. The folder has only its tokens.
func (l *loader) given(name string) (*Template, error) {
	g, err := findGiven(name)
	if err != nil {
		return nil, err
	}
	t, err := NewTemplate(g.name, g.text)
	if err != nil {
		return nil, &GivenError{Problem: "chat template", Err: regular.Short(err)}
	}
	t.given, t.builtin = true, g.builtin
	l.readTokens()
	return t, l.err
}

// readTokens reads the two files that name tokens. What is wrong with their text is told by package tokenizer, which reads them
// as well.
func (l *loader) readTokens() {
	l.specials = l.keys("special_tokens_map.json")
	l.why = nil // it never has a template
	l.config = l.keys(configFile)
}

func (l *loader) setTokens(t *Template) {
	for _, n := range tokenNames {
		if s := tokenText(l.config[n]); s != "" {
			t.tokens.Set(n, s)
		} else if s := tokenText(l.specials[n]); s != "" {
			t.tokens.Set(n, s)
		}
	}
}

// find looks for the template of the folder; an empty one: there is none.
func (l *loader) find() (source, error) {
	l.readTokens()
	config := l.config
	told := len(l.why)
	old := l.keys(oldTemplateFile)
	for _, w := range l.why[told:] {
		l.warn(w + "; the file is left out: it gives no chat template")
	}
	src := source{name: templateFile, text: l.text(templateFile), tools: l.text(toolTemplateFile)}
	if src.tools != "" {
		src.toolName = toolTemplateFile
	}
	if l.err != nil {
		return src, l.err
	}
	if kind := tokenText(config["chat_template_type"]); kind != "" { // mlx-lm's name for a renderer in code
		b := dialect.BuiltinText(kind)
		if b == "" {
			return src, fmt.Errorf("tokenizer_config.json: chat_template_type %s is not supported", regular.Quote(kind))
		}
		src = source{name: "built-in " + kind, text: b, toolName: src.toolName}
	}
	if src.text == "" {
		extra := src.tools
		src.name = configFile
		if src.text, src.tools = l.field(src.name, config); src.text == "" {
			src.name = oldTemplateFile
			src.text, src.tools = l.field(src.name, old)
		}
		if extra != "" {
			src.tools = extra
		}
	}
	if src.text == "" {
		modelType := tokenText((&loader{fsys: l.fsys}).keys("config.json")["model_type"])
		if kind := dialect.BuiltinFor(modelType); kind != "" {
			src.name, src.text = "built-in "+kind, dialect.BuiltinText(kind)
		}
	}
	return src, nil
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

func isNull(m json.RawMessage) bool { return len(m) == 0 || string(m) == "null" }

// Load reads the text side of a model from the root of its folder: the tokenizer, and the chat template as LoadTemplate does.
// What the folder says about ending a turn and sampling comes from the checkpoint, which package model reads. With
// ErrNoTemplate the tokenizer is there all the same.
func Load(fsys fs.FS, template string) (Config, error) {
	tok, err := tokenizer.Load(fsys)
	if err != nil {
		return Config{}, err
	}
	tmpl, err := LoadTemplate(fsys, template)
	if tmpl != nil && tmpl.builtin {
		tmpl.tokens.Set("bos_token", textPrefix(tok))
	}
	c := Config{Tokenizer: tok, Template: tmpl, Warnings: tok.Warnings()}
	if tmpl != nil {
		c.Warnings = append(slices.Clip(c.Warnings), tmpl.warnings...)
	}
	return c, err
}

// textPrefix is what a tokenizer puts in front of every text. Built-in templates begin with it, and not with the bos_token that
// the folder names: in some folders that begins turns.
func textPrefix(tok *tokenizer.Tokenizer) string {
	ids, _ := tok.Around()
	text := ""
	for _, id := range ids {
		name, _ := tok.Token(id)
		text += name
	}
	return text
}
