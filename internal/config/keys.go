package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"hearth/internal/access"
)

// Keys are all that are accepted, each once; none: nothing is checked. A single one is the operator's.
func (c *Config) Keys() []access.Key { return c.keysWith(c.FileKeys) }

// KeyFile is the file of keys, "" if there is none.
func (c *Config) KeyFile() string { return c.keyFile }

// Reread is Keys with what KeyFile has now. One that was emptied has none: who was in it is no longer let in.
func (c *Config) Reread() ([]access.Key, error) {
	if c.keyFile == "" {
		return c.Keys(), nil
	}
	list, err := access.ReadFile(c.keyFile)
	if err != nil && !errors.Is(err, access.ErrNoLines) {
		return nil, err
	}
	return c.keysWith(list), nil
}

// keysWith is Keys with those of a file.
func (c *Config) keysWith(file []access.Key) []access.Key {
	var all []access.Key
	add := func(k access.Key) {
		i := slices.IndexFunc(all, func(x access.Key) bool { return x.Sum == k.Sum })
		if i < 0 {
			all = append(all, k)
			return
		}
		x := &all[i]
		x.Operator = x.Operator || k.Operator
		if x.Name == "" {
			x.Name, x.Limits = k.Name, k.Limits
		}
		if x.Plain == "" {
			x.Plain = k.Plain
		}
	}
	for _, plain := range c.APIKeys {
		if plain != "" {
			add(access.PlainKey(plain))
		}
	}
	for _, k := range slices.Concat(c.LineKeys, file) {
		add(k)
	}
	if c.OperatorKey != "" {
		k := access.PlainKey(c.OperatorKey)
		k.Operator = true
		add(k)
	}
	if len(all) == 1 {
		all[0].Operator = true
	}
	return all
}

// APIKey is the Plain of AgentKey.
func (c *Config) APIKey() string { return c.AgentKey().Plain }

// AgentKey is one of the accepted keys, the operator's only if there is no other; the zero Key if there are none, or none but
// sums is known.
func (c *Config) AgentKey() access.Key {
	var first access.Key
	for _, k := range c.Keys() {
		if k.Plain != "" && !k.Operator {
			return k
		}
		if first.Plain == "" && k.Plain != "" {
			first = k
		}
	}
	return first
}

// findKeyFile is the file that --api-key-file means: without it, keys beside the settings file, if that is there.
func (c *Config) findKeyFile(env Env) string {
	switch c.APIKeyFile {
	case "off":
		return ""
	case "":
	default:
		return c.APIKeyFile
	}
	file := defaultFile(env)
	if file == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(file), "keys")
}

// readKeys reads the file of keys, which only servers have a use for, once it is known which one that is.
func (c *Config) readKeys(env Env) (err error) {
	from := c.origin["api-key-file"]
	c.keyFile = c.findKeyFile(env)
	if c.keyFile == "" || c.KeyFileUnread {
		return nil
	}
	switch c.FileKeys, err = access.ReadFile(c.keyFile); {
	case err == nil:
		return nil
	case from == "" && errors.Is(err, fs.ErrNotExist):
		c.keyFile = ""
		return nil
	case errors.Is(err, access.ErrNoLines):
		err = fmt.Errorf("%w: hearth keys add NAME makes a key, --api-key-file off asks for none", err)
	}
	switch c.source(from) {
	case FromDefault:
		return fmt.Errorf("read keys: %w", err)
	case FromEnvironment:
		from = "environment variable " + from
	case FromFile:
		from = "settings file " + from + ": api-key-file"
	}
	return fmt.Errorf("%s: %w", from, err)
}

// keyText is the text of a file of keys, with semicolons or ends of lines.
func keyText(p *[]access.Key) *value[[]access.Key] {
	parse := func(s string) ([]access.Key, error) {
		all, err := access.Parse(strings.ReplaceAll(s, ";", "\n"))
		if errors.Is(err, access.ErrNoLines) {
			err = errNoKey
		}
		return all, err
	}
	return &value[[]access.Key]{p, "lines", parse, func(all []access.Key) string {
		if len(all) == 0 {
			return ""
		}
		return counted(len(all))
	}}
}

// counted is what is shown of keys.
func counted(n int) string {
	if n == 1 {
		return "(1 key)"
	}
	return fmt.Sprintf("(%d keys)", n)
}

// errNoKey is about a setting that was made, as by a flag with a variable that is empty, and asks for no key: it must not open
// the server.
var errNoKey = errors.New("there is no key in it; a server that asks for none is started without it")

// keyList is a list of at least one key.
func keyList(p *[]string) *value[[]string] {
	v := list(p)
	plain := v.parse
	v.parse = func(s string) ([]string, error) {
		all, err := plain(s)
		if err == nil && len(all) == len(*p) {
			err = errNoKey
		}
		return all, err
	}
	return v
}

func oneKey(p *string) *value[string] {
	v := text(p)
	v.parse = func(s string) (string, error) {
		if strings.TrimSpace(s) == "" {
			return "", errNoKey
		}
		return s, nil
	}
	return v
}
