// Package demo owns the small model that is part of the program, so that everything runs end to end with no download.
// Package catalog opens it like any other folder. It only holds the files; it never reads them.
package demo

import (
	"embed"
	"fmt"
	"io/fs"
)

// Name is what the embedded model is called on every API and on the command line.
const Name = "demo"

// Real is what to type for a model worth talking to.
const Real = "hearth pull mlx-community/Qwen3-0.6B-4bit && hearth serve mlx-community/Qwen3-0.6B-4bit"

// forAgents is what to type for one that also has room for an agent's instructions and tools, and for work.
const forAgents = "hearth pull mlx-community/Qwen3-4B-Instruct-2507-4bit && hearth serve mlx-community/Qwen3-4B-Instruct-2507-4bit"

// Readable is how many tokens of a prompt with tools the model makes sense of. Of longer ones it has seen too few.
const Readable = 4096

// Advice is the sentence for whoever sends a prompt that is too long for the model. It has none of the words by which clients
// know a full context.
func Advice(tokens, context int) string {
	return fmt.Sprintf("This is hearth's demo, a tiny model with a context of %d tokens: it is too small for this prompt of %d; for a real model: %s",
		context, tokens, forAgents)
}

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
