package tokenizer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"hearth/internal/jsonc"
	"hearth/internal/regular"
)

const (
	specialMapFile = "special_tokens_map.json"
	addedFile      = "added_tokens.json"
)

// config is what tokenizer_config.json says about tokens; the rest of it, such as
// the chat template, belongs to others.
//
// Its add_bos_token and add_eos_token count only where there is no tokenizer.json:
// PyPI's transformers drops them when there is one, whose post-processor decides.
type config struct {
	names
	AddBOS  bool
	AddEOS  bool
	Added   map[string]addedToken // added_tokens_decoder, by id
	Class   string                // tokenizer_class
	Pattern string                // pat_str, for tiktoken.model
	model   modelConfig

	warnings []string // a line each, the file first
}

// names are the tokens with a role.
type names struct {
	BOS, EOS, Unk, Pad, Sep, Cls, Mask tokenName
}

// byKey are the names by their keys, in the reference's order.
func (n *names) byKey() []namedToken {
	return []namedToken{{"bos_token", &n.BOS}, {"eos_token", &n.EOS}, {"unk_token", &n.Unk}, {"sep_token", &n.Sep},
		{"pad_token", &n.Pad}, {"cls_token", &n.Cls}, {"mask_token", &n.Mask}}
}

type namedToken struct {
	key  string
	name *tokenName
}

func (c *config) warn(file, format string, args ...any) {
	c.warnings = append(c.warnings, file+": "+regular.ClipTo(fmt.Sprintf(format, args...), 3*regular.Line))
}

// decode reads one of the JSON files that a tokenizer can do without; false: it is left out, and a warning says why and what that
// means.
func (c *config) decode(file string, data []byte, to any, without string) bool {
	fault, err := jsonc.Unmarshal(data, to)
	if err != nil {
		c.warn(file, "%v; the file is left out: %s", jsonc.Mistyped(err), without)
		return false
	}
	if fault != "" {
		c.warn(file, "%s", jsonc.ReadOver(fault))
	}
	return true
}

// read reads tokenizer_config.json. A value that cannot be used is a warning, and the others count.
func (c *config) read(data []byte) (ok bool) {
	var keys map[string]json.RawMessage
	if !c.decode(configFile, data, &keys, "no token that it names has a role, and it gives no chat template") {
		return false
	}
	c.readNames(configFile, keys)
	for _, k := range []struct {
		key string
		to  any
	}{{"add_bos_token", &c.AddBOS}, {"add_eos_token", &c.AddEOS}, {"tokenizer_class", &c.Class}, {"pat_str", &c.Pattern}} {
		c.readKey(configFile, k.key, keys[k.key], k.to)
	}
	var added map[string]json.RawMessage
	c.readKey(configFile, "added_tokens_decoder", keys["added_tokens_decoder"], &added)
	if added != nil {
		c.Added = make(map[string]addedToken, len(added))
	}
	bad := 0
	for _, key := range slices.Sorted(maps.Keys(added)) {
		var tok addedToken
		id, err := strconv.Atoi(key)
		if err != nil || id < 0 || id >= maxTokens {
			err = fmt.Errorf("%s is no token id", quoted(key))
		} else {
			err = jsonc.Mistyped(json.Unmarshal(added[key], &tok))
		}
		if err == nil {
			c.Added[key] = tok
		} else if bad++; bad == 1 { // one of a kind is enough
			c.warn(configFile, "added_tokens_decoder: %s: %v; the entry is left out", regular.Clip(key), err)
		}
	}
	return true
}

// readKey reads the value of a key, if there is one.
func (c *config) readKey(file, key string, raw json.RawMessage, to any) {
	if len(raw) == 0 {
		return
	}
	if err := json.Unmarshal(raw, to); err != nil {
		c.warn(file, "%s: %v; the key is left out", key, jsonc.Mistyped(err))
	}
}

func (c *config) readNames(file string, keys map[string]json.RawMessage) {
	for _, k := range c.byKey() {
		if raw, ok := keys[k.key]; ok && json.Unmarshal(raw, k.name) != nil {
			c.warn(file, "%s: %s is no token; the key is left out", k.key, regular.Clip(string(raw)))
		}
	}
}

// readLegacy reads the two files that older folders have besides
// tokenizer_config.json, nil where there is none. As PyPI's transformers does, it heeds them only when that
// file lists no added tokens; the names they give then win.
func (c *config) readLegacy(special, added []byte) {
	var keys map[string]json.RawMessage
	if special != nil && c.decode(specialMapFile, special, &keys, "no token that it names has a role") && c.Added == nil {
		c.readNames(specialMapFile, keys)
	}
	if c.Added != nil || added == nil {
		return
	}
	var ids map[string]json.RawMessage
	if !c.decode(addedFile, added, &ids, "texts with tokens that it lists become other ids") {
		return
	}
	var named []tokenName
	for _, k := range c.names.byKey() {
		named = append(named, *k.name)
	}
	c.Added = make(map[string]addedToken, len(ids))
	bad := 0
	for _, text := range slices.Sorted(maps.Keys(ids)) {
		var id int32
		if err := json.Unmarshal(ids[text], &id); err != nil || id < 0 || id >= maxTokens {
			if bad++; bad == 1 {
				c.warn(addedFile, "%s: %s is no token id; the entry is left out", regular.Clip(text), regular.Clip(string(ids[text])))
			}
			continue
		}
		special := slices.Contains(named, tokenName(text))
		c.Added[strconv.Itoa(int(id))] = addedToken{Content: text, Special: special, Normalized: !special}
	}
}

// tokenName is a token given as a string, as an object with its content, or null.
type tokenName string

// UnmarshalJSON accepts the three forms.
func (n *tokenName) UnmarshalJSON(data []byte) error {
	var s string
	if len(data) > 0 && data[0] == '{' {
		var tok addedToken
		if err := json.Unmarshal(data, &tok); err != nil {
			return err
		}
		s = tok.Content
	} else if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	*n = tokenName(s)
	return nil
}

// apply merges the configuration into the added tokens of tokenizer.json, as
// PyPI's transformers does when it loads both: entries of added_tokens_decoder
// replace the flags of a token or add it, and a named token that is only in the
// model's vocabulary becomes a special one.
func (c *config) apply(added []addedToken, v *vocabulary) []addedToken {
	known := make(map[string]int, len(added))
	for i, tok := range added {
		known[tok.Content] = i
	}
	more := make([]addedToken, 0, len(c.Added))
	for key, tok := range c.Added {
		id, _ := strconv.Atoi(key) // read has looked at it
		tok.ID = int32(id)
		more = append(more, tok)
	}
	slices.SortFunc(more, func(a, b addedToken) int { return int(a.ID) - int(b.ID) })
	for _, k := range c.names.byKey() {
		name := *k.name
		if _, ok := known[string(name)]; ok {
			continue
		}
		if id, ok := v.index.find(string(name)); ok && !slices.ContainsFunc(more, func(t addedToken) bool { return t.Content == string(name) }) {
			more = append(more, addedToken{ID: id, Content: string(name), Special: true})
		}
	}
	for _, tok := range more {
		i, ok := known[tok.Content]
		if !ok {
			known[tok.Content] = len(added)
			added = append(added, tok)
			continue
		}
		tok.ID = added[i].ID
		added[i] = tok
	}
	return added
}
