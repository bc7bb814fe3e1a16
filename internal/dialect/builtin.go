package dialect

import (
	"cmp"
	"embed"
	"slices"
	"strings"
)

//go:embed builtin/*.jinja
var builtinFiles embed.FS

// Builtin is a chat template that comes with the program, in builtin/NAME.jinja.
type Builtin struct {
	Name       string
	About      string   // one line: whose form it is
	ModelTypes []string // of config.json, whose folders without a template have this one
}

// Builtins are all built-in templates, sorted by name: those of families whose reference renders in code or whose folders
// may lack a template, and forms in common use, for models without one.
var Builtins = func() []Builtin {
	all := slices.Clone(common)
	for _, f := range families {
		if f.Builtin != noBuiltin {
			all = append(all, *f.Builtin)
		}
	}
	slices.SortFunc(all, func(a, b Builtin) int { return cmp.Compare(a.Name, b.Name) })
	return all
}()

// common are forms of conversations that no family has to itself.
var common = []Builtin{
	{Name: "alpaca", About: "### Instruction: and ### Response:, for models that were tuned on instructions alone"},
	{Name: "chatml", About: "<|im_start|> and <|im_end|>: Qwen, SmolLM, Yi, Hermes and many more"},
	{Name: "gemma", About: "<start_of_turn> and <end_of_turn>: Gemma 1 to 3"},
	{Name: "llama2", About: "[INST] with <<SYS>>: Llama 2, Code Llama"},
	{Name: "llama3", About: "<|start_header_id|> and <|eot_id|>: Llama 3 and later"},
	{Name: "mistral", About: "[INST]: Mistral and Mixtral"},
	{Name: "phi3", About: "<|user|> and <|end|>: Phi 3 and later"},
	{Name: "plain", About: "User: and Assistant:, for models that know no marks at all"},
	{Name: "vicuna", About: "USER: and ASSISTANT: Vicuna, WizardLM and other tunes of Llama 1 and 2"},
	{Name: "zephyr", About: "<|user|> and the token that ends a text: Zephyr, TinyLlama"},
}

// BuiltinNames are the names of Builtins.
func BuiltinNames() []string {
	names := make([]string, len(Builtins))
	for i, b := range Builtins {
		names[i] = b.Name
	}
	return names
}

// BuiltinText is the text of a template, "" if there is none of that name.
func BuiltinText(name string) string {
	text, _ := builtinFiles.ReadFile("builtin/" + name + ".jinja")
	return string(text)
}

// BuiltinNamed is the name of the built-in template that a person means: letters count alike, and so do names with and
// without dashes, as llama-3 and llama3.
func BuiltinNamed(name string) (string, bool) {
	for _, b := range Builtins {
		if bare(b.Name) == bare(name) {
			return b.Name, true
		}
	}
	return "", false
}

func bare(name string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
}

// BuiltinFor names the built-in template for a folder without one, "" if there is none. The evidence is the architecture
// that config.json names, never the model's name.
func BuiltinFor(modelType string) string {
	for _, b := range Builtins {
		if slices.Contains(b.ModelTypes, modelType) {
			return b.Name
		}
	}
	return ""
}
