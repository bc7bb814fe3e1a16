package generate

import (
	"io/fs"
	"slices"

	"hearth/internal/tokenizer"
)

// Load reads the text side of a model from the root of its folder: tokenizer and chat template. What the folder says
// about ending a turn and sampling comes from the checkpoint, which package model reads. With ErrNoTemplate
// the tokenizer is there all the same.
func Load(fsys fs.FS) (Config, error) {
	tok, err := tokenizer.Load(fsys)
	if err != nil {
		return Config{}, err
	}
	tmpl, err := LoadTemplate(fsys)
	c := Config{Tokenizer: tok, Template: tmpl, Warnings: tok.Warnings()}
	if tmpl != nil {
		c.Warnings = append(slices.Clip(c.Warnings), tmpl.Warnings()...)
	}
	return c, err
}
