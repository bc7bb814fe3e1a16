package generate

import (
	"io/fs"
	"slices"

	"hearth/internal/tokenizer"
)

// Load reads the text side of a model from the root of its folder: tokenizer and chat template. What the folder says
// about ending a turn and sampling comes from the checkpoint, which package model reads. With ErrNoTemplate
// the tokenizer is there all the same.
func Load(fsys fs.FS) (Config, error) { return LoadAs(fsys, "") }

// LoadAs is Load with a template in the place of the folder's own, as LoadTemplateAs takes it.
func LoadAs(fsys fs.FS, template string) (Config, error) {
	tok, err := tokenizer.Load(fsys)
	if err != nil {
		return Config{}, err
	}
	tmpl, err := LoadTemplateAs(fsys, template)
	if tmpl != nil && tmpl.builtin {
		tmpl.tokens.Set("bos_token", textPrefix(tok))
	}
	c := Config{Tokenizer: tok, Template: tmpl, Warnings: tok.Warnings()}
	if tmpl != nil {
		c.Warnings = append(slices.Clip(c.Warnings), tmpl.Warnings()...)
	}
	return c, err
}

// textPrefix is what a tokenizer puts in front of every text: what our own templates begin with, whatever the folder calls the token
// that begins a text. Some call one so that begins turns.
func textPrefix(tok *tokenizer.Tokenizer) string {
	ids, _ := tok.Around()
	text := ""
	for _, id := range ids {
		name, _ := tok.Token(id)
		text += name
	}
	return text
}
