package generate

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
)

//go:embed builtin/*.jinja
var builtinFiles embed.FS

// Builtin is a chat template that comes with the program.
type Builtin struct {
	Name  string
	About string // one line: whose form it is
}

// Builtins are those that there are: of families whose reference renders in code, or some of whose folders ship none, and
// forms that are in common use, for models without one.
var Builtins = []Builtin{
	{"alpaca", "### Instruction: and ### Response:, for models that were tuned on instructions alone"},
	{"chatml", "<|im_start|> and <|im_end|>: Qwen, SmolLM, Yi, Hermes and many more"},
	{"deepseek_v32", "DeepSeek V3.2, with tools and thinking"},
	{"gemma", "<start_of_turn> and <end_of_turn>: Gemma 1 to 3"},
	{"harmony", "gpt-oss, with tools and channels"},
	{"llama2", "[INST] with <<SYS>>: Llama 2, Code Llama"},
	{"llama3", "<|start_header_id|> and <|eot_id|>: Llama 3 and later"},
	{"mistral", "[INST]: Mistral and Mixtral"},
	{"phi3", "<|user|> and <|end|>: Phi 3 and later"},
	{"plain", "User: and Assistant:, for models that know no marks at all"},
	{"vicuna", "USER: and ASSISTANT: Vicuna, WizardLM and other tunes of Llama 1 and 2"},
	{"zephyr", "<|user|> and the token that ends a text: Zephyr, TinyLlama"},
}

// BuiltinNames are the names of Builtins.
func BuiltinNames() []string {
	names := make([]string, len(Builtins))
	for i, b := range Builtins {
		names[i] = b.Name
	}
	return names
}

// builtinOf is the template of an architecture.
var builtinOf = map[string]string{"deepseek_v32": "deepseek_v32", "gpt_oss": "harmony"}

// builtinText is the text of a template, "" if there is none of that name.
func builtinText(name string) string {
	if !slices.ContainsFunc(Builtins, func(b Builtin) bool { return b.Name == name }) {
		return ""
	}
	text, err := builtinFiles.ReadFile("builtin/" + name + ".jinja")
	if err != nil {
		panic(err) // a test reads them all
	}
	return string(text)
}

// builtinNamed is the name of the built-in template that a person means: letters count alike, and so do names with and without
// dashes, as llama-3 and llama3.
func builtinNamed(name string) (string, bool) {
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

// builtinFor names the built-in template for a folder without one, "" if there is none. The evidence is the
// architecture in config.json, never the model's name.
func builtinFor(fsys fs.FS) string {
	config := (&loader{fsys: fsys}).keys("config.json")
	return builtinOf[tokenText(config["model_type"])]
}
