// Package demo owns the small model that is part of the program, so that everything runs end to end with no download.
// Package catalog opens it like any other folder. It only holds the files; it never reads them.
package demo

import (
	"embed"
	"io/fs"
)

// Name is what the embedded model is called on every API and on the command line.
const Name = "demo"

// Created is when the weights were made, in Unix seconds.
const Created = 1_795_530_570

//go:embed model
var files embed.FS

// FS is the model folder: config.json, model.safetensors, tokenizer.json, chat_template.jinja and their companions.
func FS() fs.FS {
	f, err := fs.Sub(files, "model")
	if err != nil {
		panic(err) // the path is a constant
	}
	return f
}
