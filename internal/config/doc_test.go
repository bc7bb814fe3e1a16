package config

import (
	"fmt"
	"io"
	"strings"
)

// exampleFile is the settings file of the documentation.
const exampleFile = `port = 8081
allowed_origins = ["https://chat.example.com"]
temperature = 0.8                 # as --temperature

[models."mlx-community/Qwen3-*"]  # * stands for any text; small and capital letters are alike
temperature = 0.6
top_p = 0.95
top_k = 20
enable_thinking = false

[models."Qwen3-0.6B-4bit"]        # a whole name wins over patterns, of those the later one wins
max_tokens = 4096
served_model_name = ["qwen", "small"]
chat_template_kwargs = { preserve_thinking = true }
`

// writeDoc prints docs/config.md.
func writeDoc(w io.Writer) error {
	var b strings.Builder
	b.WriteString(`# Settings

A flag wins over the environment, the environment over the settings file, that over the default; what the file says of a
single model wins over all of them. An empty variable counts as not set. Where several environment names are listed, the first
that is set wins. Underscores in flags are read as dashes.
HEARTH_ may stand before a flag's other names too. A value that does not fit ends the start; under a name without HEARTH_, which
other programs may have set, it is ignored with one line on stderr, as is a HOST that cannot be listened on. A variable that begins
with HEARTH_ or MLX_ and is neither a setting nor MLX's own gets a line with the nearest name. A leading ~ of a path is the home
folder, also where no shell replaces it. ` + "`hearth config`" + ` takes the flags of serve and prints every setting, its value and where
it comes from.
This file is printed from the knob table in internal/config.

## The settings file

` + "`--config FILE`" + `, else hearth/config.toml in XDG_CONFIG_HOME or ~/.config (APPDATA on Windows), if there is one. It is TOML: keys
are the flags below without their dashes in front, in any of their spellings, those of other servers too, and a table below models has settings of one
model, or of all whose names match a pattern:

` + "```toml\n" + exampleFile + "```" + `

The names of a model are its id, the part of it after the slash, its folder, and what --served-model-name calls it. For sampling
that makes the order: request, the model's table, flags, environment, the top of the file, generation_config.json, 0.7 and 0.95;
the same for every API. The models of --small-model, --embedding-model and --rerank-model have tables of their own.
`)
	fmt.Fprintf(&b, "A model's table may have: `%s`.\n\n", strings.Join(flagNames(true), "`, `"))
	b.WriteString(`A key that is not known, a value that does not fit and TOML that is none end the start, with file, line, key and what there is.
`)
	def := Default()
	for _, g := range Groups {
		fmt.Fprintf(&b, "\n## %s\n\n| Flag | Environment | Default | Meaning |\n|---|---|---|---|\n", g)
		for i := range Knobs {
			if k := &Knobs[i]; k.Group == g {
				k.row(&b, def)
			}
		}
	}
	writeForeign(&b)
	b.WriteString("\n## Limits\n\nFixed, named in internal/config/limits.go.\n\n| Limit | Value |\n|---|---|\n")
	for _, l := range limits {
		fmt.Fprintf(&b, "| %s | %s |\n", l.what, l.value)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeForeign prints the table of other servers' flags.
func writeForeign(b *strings.Builder) {
	b.WriteString(`
## Flags of other servers

Command lines of mlx-lm's server and of vllm-mlx start, and most of Rapid-MLX's. Many of their flags are names of settings above; the
others are these, also as keys of the settings file and, in capitals after HEARTH_, as variables. *Sets* is what a flag gives a value to,
where the setting's own name does not give it one. *Note* is a line at the start, of what is so anyway or bears on nothing here.
*Warning* is a line that says what is not there; what would have protected the machine or its users stands in the [config] line too, as
unprotected.

| Flag | Answer | Meaning |
|---|---|---|
`)
	for i := range Foreigners {
		f := &Foreigners[i]
		flag := "`--" + f.Flag
		if f.Kind != Switch {
			flag += " " + string(f.Kind)
		}
		flag += "`"
		for _, env := range f.Env {
			flag += ", `" + env + "`"
		}
		answer := [...]string{Note: "note", Warning: "warning", Unprotected: "warning, unprotected", Refusal: "warning; an error without MODEL"}[f.Answer]
		if f.Sets != "" {
			answer = "sets `" + f.Sets + "`"
		}
		if f.Same != "" {
			answer += fmt.Sprintf("; %s: nothing", f.Same)
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", flag, answer, f.Doc)
	}
}

func (k *Knob) row(b *strings.Builder, def *Config) {
	v := k.bind(def)
	d := v.String()
	if k.Unset != "" {
		d = k.Unset
	} else {
		d = "`" + d + "`"
	}
	flag := "`--" + k.Flag + "`"
	if t := v.Type(); t != "bool" {
		flag = "`--" + k.Flag + " " + strings.ReplaceAll(t, "|", "\\|") + "`"
	}
	if len(k.Also) > 0 {
		flag += ", also `--" + strings.Join(k.Also, "`, `--") + "`"
	}
	fmt.Fprintf(b, "| %s | `%s` | %s | %s |\n", flag, strings.Join(k.Envs(), "`, `"), d, strings.ReplaceAll(k.Doc, "`", ""))
}

var limits = []struct{ what, value string }{
	{"request body", fmt.Sprintf("%d MiB", MaxBodyBytes>>20)},
	{"rows of one engine step", fmt.Sprint(MaxBatchTokens)},
	{"line of a debug command", fmt.Sprintf("%d MiB", MaxLineBytes>>20)},
}
