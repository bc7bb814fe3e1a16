package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"hearth/internal/regular"
)

// Key is a credential that requests may show.
type Key struct {
	Name     string // for the log; "": it has none
	Operator bool   // whoever shows it may see and clear what is everybody's
	Plain    string // "": only its sum is known
	Sum      [sha256.Size]byte
}

// PlainKey is a key without a name.
func PlainKey(plain string) Key { return Key{Plain: plain, Sum: sha256.Sum256([]byte(plain))} }

// Keys are all that are accepted, each once; none: nothing is checked. A single one is the operator's.
func (c *Config) Keys() []Key {
	var all []Key
	add := func(k Key) {
		i := slices.IndexFunc(all, func(x Key) bool { return x.Sum == k.Sum })
		if i < 0 {
			all = append(all, k)
			return
		}
		x := &all[i]
		x.Operator = x.Operator || k.Operator
		if x.Name == "" {
			x.Name = k.Name
		}
		if x.Plain == "" {
			x.Plain = k.Plain
		}
	}
	for _, plain := range c.APIKeys {
		if plain != "" {
			add(PlainKey(plain))
		}
	}
	for _, k := range c.FileKeys {
		add(k)
	}
	if c.OperatorKey != "" {
		k := PlainKey(c.OperatorKey)
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
func (c *Config) AgentKey() Key {
	var first Key
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

// hashed begins a key of which a file has only the sum.
const hashed = "sha256:"

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

// readKeyFile reads a file of keys, a line each. Errors name lines and never what is in them.
func readKeyFile(name string) ([]Key, error) {
	b, err := regular.ReadStream(name, maxFile)
	if err != nil {
		return nil, err
	}
	var all []Key
	for i, line := range strings.Split(string(b), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		k := PlainKey(line)
		if fields := strings.Fields(line); len(fields) > 1 || isSum(line) {
			if k, err = namedKey(fields); err != nil {
				return nil, fmt.Errorf("%s, line %d: %w", name, i+1, err)
			}
		}
		all = append(all, k)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no lines", name)
	}
	return all, nil
}

// isSum reports what can only be meant as a hash, though it could be a key.
func isSum(key string) bool {
	digits, ok := strings.CutPrefix(key, hashed)
	b, err := hex.DecodeString(digits)
	return ok && err == nil && len(b) == sha256.Size
}

// namedKey reads the fields name, role, and key or hash.
func namedKey(fields []string) (Key, error) {
	if len(fields) != 3 {
		return Key{}, fmt.Errorf("want a key, or a name, operator or user, and a key or sha256: and its hash, with blanks between them; there are %d words", len(fields))
	}
	name, role, key := fields[0], fields[1], fields[2]
	odd := func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("-_.@", r)
	}
	if len(name) > 64 || strings.ContainsFunc(name, odd) {
		return Key{}, fmt.Errorf("want a name of at most 64 letters, digits and -_.@")
	}
	if role != "operator" && role != "user" {
		return Key{}, fmt.Errorf("want operator or user after the name")
	}
	k := PlainKey(key)
	if digits, ok := strings.CutPrefix(key, hashed); ok {
		if !isSum(key) {
			return Key{}, fmt.Errorf("want %d hexadecimal digits after %s", 2*sha256.Size, hashed)
		}
		k.Plain = ""
		_, _ = hex.Decode(k.Sum[:], []byte(digits)) // isSum has
	}
	k.Name, k.Operator = name, role == "operator"
	return k, nil
}
