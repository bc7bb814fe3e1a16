package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
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
	AddBOS  bool                  `json:"add_bos_token"`
	AddEOS  bool                  `json:"add_eos_token"`
	Added   map[string]addedToken `json:"added_tokens_decoder"`
	Class   string                `json:"tokenizer_class"`
	Pattern string                `json:"pat_str"` // for tiktoken.model
}

// names are the tokens with a role.
type names struct {
	BOS  tokenName `json:"bos_token"`
	EOS  tokenName `json:"eos_token"`
	Unk  tokenName `json:"unk_token"`
	Pad  tokenName `json:"pad_token"`
	Sep  tokenName `json:"sep_token"`
	Cls  tokenName `json:"cls_token"`
	Mask tokenName `json:"mask_token"`
}

// read reads the file, which may be empty.
func (c *config) read(name string, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, c); err != nil {
		return fmt.Errorf("parse %s: %w", name, err)
	}
	return nil
}

// readLegacy reads the two files that older folders have besides
// tokenizer_config.json. As PyPI's transformers does, it heeds them only when that
// file lists no added tokens; the names they give then win.
func (c *config) readLegacy(special, added []byte) error {
	if c.Added != nil {
		return nil
	}
	if len(special) > 0 {
		if err := json.Unmarshal(special, &c.names); err != nil {
			return fmt.Errorf("parse %s: %w", specialMapFile, err)
		}
	}
	if len(added) == 0 {
		return nil
	}
	var ids map[string]int32
	if err := json.Unmarshal(added, &ids); err != nil {
		return fmt.Errorf("parse %s: %w", addedFile, err)
	}
	named := []tokenName{c.BOS, c.EOS, c.Unk, c.Pad, c.Sep, c.Cls, c.Mask}
	c.Added = make(map[string]addedToken, len(ids))
	for text, id := range ids {
		special := slices.Contains(named, tokenName(text))
		c.Added[strconv.Itoa(int(id))] = addedToken{Content: text, Special: special, Normalized: !special}
	}
	return nil
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
func (c *config) apply(added []addedToken, v *vocabulary) ([]addedToken, error) {
	known := make(map[string]int, len(added))
	for i, tok := range added {
		known[tok.Content] = i
	}
	more := make([]addedToken, 0, len(c.Added))
	for key, tok := range c.Added {
		id, err := strconv.Atoi(key)
		if err != nil || id < 0 || id >= maxTokens {
			return nil, fmt.Errorf("added_tokens_decoder: %s is no token id", quoted(key))
		}
		tok.ID = int32(id)
		more = append(more, tok)
	}
	slices.SortFunc(more, func(a, b addedToken) int { return int(a.ID) - int(b.ID) })
	for _, name := range []tokenName{c.BOS, c.EOS, c.Unk, c.Sep, c.Pad, c.Cls, c.Mask} {
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
	return added, nil
}
