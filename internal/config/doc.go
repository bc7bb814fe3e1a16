package config

import (
	"fmt"
	"io"
	"strings"
)

// WriteDoc prints docs/config.md.
func WriteDoc(w io.Writer) error {
	var b strings.Builder
	b.WriteString(`# Settings

A flag wins over the environment, the environment over the default. An empty variable counts as not set. Where several
environment names are listed, the first that is set wins. Underscores in flags are read as dashes.
A HOST or PORT that other programs left in the environment and that cannot be listened on is ignored, with one line on stderr.
This file is printed from the knob table in internal/config.
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
	b.WriteString("\n## Limits\n\nFixed, named in internal/config/limits.go.\n\n| Limit | Value |\n|---|---|\n")
	for _, l := range limits {
		fmt.Fprintf(&b, "| %s | %s |\n", l.what, l.value)
	}
	_, err := io.WriteString(w, b.String())
	return err
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
	{"requests waiting for the engine", fmt.Sprint(MaxQueue)},
	{"rows of one engine step", fmt.Sprint(MaxBatchTokens)},
	{"line of a debug command", fmt.Sprintf("%d MiB", MaxLineBytes>>20)},
}
