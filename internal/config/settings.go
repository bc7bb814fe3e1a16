package config

import (
	"strings"

	"hearth/internal/access"
)

// Source is what a setting's value comes from.
type Source string

const (
	FromDefault     Source = "default"
	FromFlag        Source = "flag"
	FromArgument    Source = "argument"
	FromEnvironment Source = "environment"
	FromFile        Source = "file"
	FromModel       Source = "model" // a model's table of the file
)

// Setting is a knob with its value.
type Setting struct {
	Flag  string `json:"flag"`
	Group Group  `json:"group"`
	// Value is in the words of a flag; nil where nothing is set and Unset says what that means. Keys are counted, not shown.
	Value  *string `json:"value"`
	Source Source  `json:"source"`
	// Origin is the flag, the variable, or the file and its line; "" for a default.
	Origin string `json:"origin,omitempty"`
	Unset  string `json:"unset,omitempty"`
}

// Settings are all knobs, in the table's order.
func (c *Config) Settings() []Setting {
	out := make([]Setting, 0, len(Knobs))
	for i := range Knobs {
		k := &Knobs[i]
		s := Setting{Flag: k.Flag, Group: k.Group, Origin: c.origin[k.Flag], Source: c.source(c.origin[k.Flag])}
		value := c.shown(k)
		switch {
		case s.Origin != "":
			s.Value = &value
		case k.Unset != "" && (value == "" || zero(value)):
			s.Unset = k.Unset
		default:
			s.Value = &value
		}
		out = append(out, s)
	}
	return out
}

// Differs lists the flags of knobs that have another value in other.
func (c *Config) Differs(other *Config) []string {
	var flags []string
	for i := range Knobs {
		if k := &Knobs[i]; k.bind(c).String() != k.bind(other).String() {
			flags = append(flags, k.Flag)
		}
	}
	return flags
}

// shown is a knob's value as anybody may see it.
func (c *Config) shown(k *Knob) string {
	v := k.bind(c)
	switch l := v.(type) {
	case *value[[]string]:
		if k.Secret && len(*l.p) > 1 {
			return counted(len(*l.p))
		}
	case *value[[]access.Key]:
		return v.String()
	}
	if k.Secret && v.String() != "" {
		return counted(1)
	}
	return v.String()
}

// From is the kind of Origin.
func (c *Config) From(flag string) Source { return c.source(c.origin[flag]) }

// source sorts out what Origin says.
func (c *Config) source(origin string) Source {
	switch {
	case origin == "":
		return FromDefault
	case origin == string(FromArgument):
		return FromArgument
	case strings.HasPrefix(origin, "--"):
		return FromFlag
	case c.file != "" && strings.HasPrefix(origin, c.file+":"):
		if c.ofModel[origin] {
			return FromModel
		}
		return FromFile
	}
	return FromEnvironment
}
