package generate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hearth/internal/dialect"
	"hearth/internal/jsonc"
	"hearth/internal/regular"
)

// NoTemplate, in the place of a template that is given, leaves a model without one.
const NoTemplate = "none"

// GivenError says what is wrong with a template that a person gave.
type GivenError struct {
	Problem, Advice string
	Unknown         string // the name, where it leads nowhere
	Err             error  // cause, may be nil
}

func (e *GivenError) Error() string {
	if e.Err != nil {
		return e.Problem + ": " + e.Err.Error()
	}
	return e.Problem
}

// Unwrap gives the cause.
func (e *GivenError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *GivenError) Hint() string { return e.Advice }

// isTemplateText tells the text of a template from the name of one.
func isTemplateText(s string) bool { return strings.Contains(s, "{{") || strings.Contains(s, "{%") }

// given is a template that stands in the place of a folder's own.
type given struct {
	name, text string
	builtin    bool
}

// findGiven is the template that a person gave: its text, the name of a built-in one, a file, or a folder of a model.
func findGiven(s string) (*given, error) {
	if isTemplateText(s) {
		if len(s) > maxTemplateBytes {
			return nil, &GivenError{Problem: fmt.Sprintf("the chat template given as text has %d bytes, more than the %d that it may have", len(s), maxTemplateBytes)}
		}
		return &given{name: "given as text", text: s}, nil
	}
	if name, ok := dialect.BuiltinNamed(s); ok {
		return &given{"built-in " + name, dialect.BuiltinText(name), true}, nil
	}
	st, err := os.Stat(s)
	switch {
	case err != nil:
		return nil, unknownGiven(s, err)
	case st.IsDir():
		return folderGiven(s)
	}
	b, err := regular.ReadStream(s, maxTemplateBytes)
	if err != nil {
		return nil, &GivenError{Problem: "chat template " + regular.Clip(s), Err: regular.Short(err)}
	}
	return fileGiven(s, b)
}

// folderGiven is the template of another model's folder.
func folderGiven(dir string) (*given, error) {
	src, err := (&loader{fsys: regular.Dir(dir)}).find()
	switch {
	case err != nil:
		return nil, &GivenError{Problem: "chat template " + regular.Clip(dir), Err: regular.Short(err)}
	case src.text == "":
		return nil, &GivenError{Problem: "chat template " + regular.Clip(dir) + ": the folder has none",
			Advice: "give a folder with chat_template.jinja, or with chat_template in tokenizer_config.json; " + builtinHint()}
	}
	return &given{name: filepath.Join(dir, src.name), text: src.text}, nil
}

// fileGiven is the template in a file, which may be a tokenizer_config.json or a chat_template.json.
func fileGiven(path string, b []byte) (*given, error) {
	if filepath.Ext(path) != ".json" {
		return &given{name: path, text: string(b)}, nil
	}
	var keys map[string]json.RawMessage
	_, err := jsonc.Unmarshal(b, &keys)
	src := ""
	if err == nil {
		src, _, err = templateField(keys["chat_template"])
	}
	if err == nil && src == "" {
		err = errors.New("it has no chat_template")
	}
	if err != nil {
		return nil, &GivenError{Problem: "chat template " + regular.Clip(path), Err: regular.Short(err)}
	}
	return &given{name: path, text: src}, nil
}

// unknownGiven is the error of a name that leads nowhere.
func unknownGiven(s string, err error) error {
	e := &GivenError{Problem: "chat template " + regular.Quote(s), Advice: builtinHint(), Unknown: s}
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		e.Err = regular.Short(err)
	case strings.ContainsAny(s, `/\.`):
		e.Problem += ": there is no such file"
	default:
		e.Problem += ": there is neither a built-in one of that name nor such a file"
	}
	return e
}

func builtinHint() string {
	return "built in are " + strings.Join(dialect.BuiltinNames(), ", ") + "; a file, a model's folder and text that contains {{ or {% are templates too, and " + NoTemplate + " is for none"
}
