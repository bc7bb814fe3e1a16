package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/spf13/pflag"

	"hearth/internal/regular"
)

// modelsKey is the table of the file that holds a table for every model or pattern.
const modelsKey = "models"

// file is a settings file as it was read: whatever it says is known and has a value that can be set.
type file struct {
	path     string
	settings []setting
	foreign  map[string]given // flags of other servers
	sections []section        // in the order of the file
}

// section is what the file says of models whose names match a pattern.
type section struct {
	pattern  string
	settings []setting
}

// setting is one knob's value.
type setting struct {
	knob   *Knob
	values []string // as flags would have them; more than one only of lists
	where  string   // file and line
}

// set gives a knob of c its value; lists grow.
func (s *setting) set(c *Config) error {
	v := s.knob.bind(c)
	for _, text := range s.values {
		if err := v.Set(text); err != nil {
			return err
		}
	}
	return nil
}

// maxFile bounds the files that are read with the settings.
const maxFile = 4 << 20

// readFile reads the settings file that --config or its environment name; nil if there is none.
func (c *Config) readFile(fs *pflag.FlagSet, env Env, warn func(string)) (*file, error) {
	f := fs.Lookup("config")
	if f == nil {
		return nil, nil
	}
	if !f.Changed {
		if err := c.fromEnv(knobNamed("config"), env, warn); err != nil {
			return nil, err
		}
	}
	path := c.ConfigFile
	switch path {
	case "off":
		return nil, nil
	case "":
		if path = defaultFile(env); path == "" {
			return nil, nil
		}
	default:
		path = expand(path, home(env))
	}
	text, err := regular.ReadStream(path, maxFile)
	if errors.Is(err, os.ErrNotExist) && c.ConfigFile == "" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read settings file: %w", err)
	}
	parsed, err := parseFile(path, text)
	return parsed, regular.Short(err)
}

// defaultFile is where a settings file is looked for, "" if there is no home folder.
func defaultFile(env Env) string {
	base, _ := env("XDG_CONFIG_HOME")
	if runtime.GOOS == "windows" && base == "" {
		base, _ = env("APPDATA")
	}
	if !filepath.IsAbs(base) {
		user := home(env)
		if user == "" {
			return ""
		}
		base = filepath.Join(user, ".config")
	}
	return filepath.Join(base, "hearth", "config.toml")
}

// parseFile reads TOML: keys are flags, and the table models has tables of them. Every error names file, line and key.
func parseFile(path string, text []byte) (*file, error) {
	var root map[string]any
	if err := toml.Unmarshal(text, &root); err != nil {
		where := path
		if at := (*toml.DecodeError)(nil); errors.As(err, &at) {
			n, _ := at.Position()
			where += ":" + strconv.Itoa(n)
			if lines := strings.Split(string(text), "\n"); n >= 1 && n <= len(lines) {
				where += ": " + short(unsecret(strings.TrimSpace(lines[n-1])))
			}
		}
		return nil, fmt.Errorf("settings file %s: %s", where, strings.TrimPrefix(err.Error(), "toml: "))
	}
	p := &fileParser{path: path, lines: keyLines(text), foreign: map[string]given{}}
	f := &file{path: path, foreign: p.foreign}
	models, ok := root[modelsKey]
	delete(root, modelsKey)
	var err error
	if f.settings, err = p.settings(root, nil); err != nil || !ok {
		return f, err
	}
	tables, ok := models.(map[string]any)
	if !ok {
		return nil, p.errorf([]string{modelsKey}, "want a table for each model, such as [models.\"org/name\"]")
	}
	for _, pattern := range p.sorted(tables, []string{modelsKey}) {
		at := []string{modelsKey, pattern}
		table, ok := tables[pattern].(map[string]any)
		if !ok {
			return nil, p.errorf(at, "want a table with settings of this model, such as [models.%q]", pattern)
		}
		s := section{pattern: pattern}
		if s.settings, err = p.settings(table, at); err != nil {
			return nil, err
		}
		f.sections = append(f.sections, s)
	}
	return f, nil
}

// fileParser turns tables into settings.
type fileParser struct {
	path  string
	lines map[string]int // by the parts of a key, see lineKey
	// foreign gets the flags of other servers that the top of the file has.
	foreign map[string]given
}

// settings reads the table at the key at; nil is the top of the file, which has every knob, others are a model's.
func (p *fileParser) settings(table map[string]any, at []string) ([]setting, error) {
	var out []setting
	scratch := Default()
	for _, name := range p.sorted(table, at) {
		key := append(slices.Clone(at), name)
		k := knobNamed(name)
		switch {
		case k == nil && at != nil && isTable(table[name]):
			return nil, p.errorf(key, "a model has no tables of its own; a name with a dot stands in quotes: [models.%q]", strings.Join(key[1:], "."))
		case k == nil && at == nil && foreignNamed(name) != nil:
			if err := p.addForeign(foreignNamed(name), key, table[name]); err != nil {
				return nil, err
			}
			continue
		case k == nil && at != nil && foreignNamed(name) != nil:
			return nil, p.errorf(key, "flags of other servers stand at the top of the file, not in a model's table; that has %s", strings.Join(flagNames(true), ", "))
		case k == nil || k.Flag == "config":
			advice := "hearth serve --help lists all"
			if at != nil {
				advice = "a model has " + strings.Join(flagNames(true), ", ")
			}
			if near := Nearest(name, settingNames(at != nil)); near != "" {
				advice = "did you mean " + near + "? " + advice
			}
			return nil, p.errorf(key, "there is no such setting; %s", advice)
		case at != nil && !k.PerModel:
			return nil, p.errorf(key, "this is the server's, not a model's; a model has %s", strings.Join(flagNames(true), ", "))
		}
		if i := slices.IndexFunc(out, func(s setting) bool { return s.knob == k }); i >= 0 {
			return nil, p.errorf(key, "%s is set twice, first at %s", k.Flag, out[i].where)
		}
		values, err := spell(k, table[name])
		s := setting{knob: k, values: values, where: p.path + ":" + strconv.Itoa(p.line(key))}
		if err == nil {
			err = s.set(scratch)
		}
		switch {
		case err != nil && k.Secret:
			return nil, p.errorf(key, "%w", err)
		case err != nil:
			return nil, p.errorf(key, "%s: %w", short(table[name]), err)
		}
		out = append(out, s)
	}
	return out, nil
}

// addForeign records a key that is a flag of other servers.
func (p *fileParser) addForeign(f *Foreign, key []string, v any) error {
	if before, ok := p.foreign[f.Flag]; ok {
		return p.errorf(key, "%s is set twice, first at %s", f.Flag, before.from)
	}
	s, err := scalar(v)
	if err == nil {
		err = f.check(s)
	}
	if err != nil {
		return p.errorf(key, "%s: %w", short(v), err)
	}
	p.foreign[f.Flag] = given{s, p.path + ":" + strconv.Itoa(p.line(key))}
	return nil
}

// unsecret is as much of a line that is no TOML as is certainly no key of the server's.
func unsecret(line string) string {
	name, _, ok := strings.Cut(line, "=")
	name = strings.TrimSpace(name)
	if k := knobNamed(strings.Trim(name, `"'`)); ok && (k == nil || k.Secret) {
		return name + " = …"
	}
	if !ok && strings.ContainsAny(line, `"'`) { // it may go on with one
		return "…"
	}
	return line
}

func isTable(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// short is a value in an error.
func short(v any) string {
	const most = 100
	text := fmt.Sprintf("%v", v)
	if s, ok := v.(string); ok {
		text = strconv.Quote(s)
	}
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// spell is a value of the file in the words of a flag.
func spell(k *Knob, v any) ([]string, error) {
	kind := k.bind(Default()).Type()
	if list, ok := v.([]any); ok && kind == "list" {
		var all []string
		for _, e := range list {
			one, err := spell(k, e)
			if err != nil {
				return nil, err
			}
			all = append(all, one...)
		}
		return all, nil
	}
	if v, ok := v.(map[string]any); ok && kind == "json" {
		text, err := json.Marshal(v)
		return []string{string(text)}, err
	}
	one, err := scalar(v)
	if err != nil {
		return nil, err
	}
	return []string{one}, nil
}

// scalar is one value of the file as a flag would have it.
func scalar(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	}
	return "", fmt.Errorf("want one value: a text, a number, true or false")
}

// sorted are the keys of a table in the order of the file.
func (p *fileParser) sorted(table map[string]any, at []string) []string {
	return slices.SortedFunc(maps.Keys(table), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.line(append(slices.Clone(at), a)), p.line(append(slices.Clone(at), b))), strings.Compare(a, b))
	})
}

// line is where a key stands, or what it is part of.
func (p *fileParser) line(key []string) int {
	for ; len(key) > 0; key = key[:len(key)-1] {
		if n, ok := p.lines[lineKey(key)]; ok {
			return n
		}
	}
	return 1
}

func (p *fileParser) errorf(key []string, format string, args ...any) error {
	var shown []string
	for _, part := range key {
		if strings.Trim(part, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" || part == "" {
			part = strconv.Quote(part)
		}
		shown = append(shown, part)
	}
	return fmt.Errorf("settings file %s:%d: %s: %w", p.path, p.line(key), strings.Join(shown, "."), fmt.Errorf(format, args...))
}

func lineKey(parts []string) string { return strings.Join(parts, "\x00") }

// keyLines finds the line on which each key first stands in text, which is TOML.
func keyLines(text []byte) map[string]int {
	lines := map[string]int{}
	var p unstable.Parser
	p.Reset(text)
	note := func(at []string, key unstable.Iterator) []string {
		at = slices.Clone(at)
		for key.Next() {
			n := key.Node()
			at = append(at, string(n.Data))
			if _, ok := lines[lineKey(at)]; !ok {
				lines[lineKey(at)] = p.Shape(n.Raw).Start.Line
			}
		}
		return at
	}
	var value func(at []string, pair *unstable.Node)
	value = func(at []string, pair *unstable.Node) {
		at = note(at, pair.Key())
		if v := pair.Value(); v.Kind == unstable.InlineTable {
			for it := v.Children(); it.Next(); {
				value(at, it.Node())
			}
		}
	}
	var table []string
	for p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = note(nil, e.Key())
		case unstable.KeyValue:
			value(table, e)
		}
	}
	return lines
}

// knobNamed finds a knob by its flag, or what the flag is called elsewhere, with dashes or underscores; nil: there is none.
func knobNamed(name string) *Knob {
	name = strings.ReplaceAll(name, "_", "-")
	i := slices.IndexFunc(Knobs, func(k Knob) bool { return k.Flag == name || slices.Contains(k.Also, name) })
	if i < 0 {
		return nil
	}
	return &Knobs[i]
}

// flagNames are the settings that the file may have, or a model's section of it.
func flagNames(perModel bool) []string {
	var names []string
	for i := range Knobs {
		if k := &Knobs[i]; k.Flag != "config" && (!perModel || k.PerModel) {
			names = append(names, k.Flag)
		}
	}
	return names
}

// For is the configuration of one model: c with what the file's sections say of any of its names. They come before flags
// and environment, a section with a whole name before those with a pattern, and of those the later one.
func (c *Config) For(names ...string) *Config {
	own := *c
	own.origin, own.ofModel = maps.Clone(c.origin), map[string]bool{}
	maps.Copy(own.ofModel, c.ofModel)
	own.sections = nil // they are in
	own.matched, own.overruled = slices.Clip(c.matched), slices.Clip(c.overruled)
	var matching []section
	for _, s := range c.sections {
		if slices.ContainsFunc(names, func(n string) bool { return matches(s.pattern, n) }) {
			matching = append(matching, s)
		}
	}
	whole := func(s section) int {
		if strings.Contains(s.pattern, "*") {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(matching, func(a, b section) int { return whole(a) - whole(b) })
	for _, s := range matching {
		own.matched = append(own.matched, modelsKey+"."+strconv.Quote(s.pattern))
		for _, v := range s.settings {
			if l, ok := v.knob.bind(&own).(*value[[]string]); ok {
				*l.p = nil // in place of what there was
			}
			if err := v.set(&own); err != nil {
				panic("config: " + v.where + ": " + err.Error()) // it was tried when the file was read
			}
			if from := c.origin[v.knob.Flag]; from != "" && !strings.HasPrefix(from, c.file+":") {
				own.overruled = append(own.overruled, fmt.Sprintf("%s: %s of this model comes before %s", v.where, v.knob.Flag, from))
			}
			own.origin[v.knob.Flag], own.ofModel[v.where] = v.where, true
		}
	}
	own.expandPaths()
	return &own
}

// matches compares a name with a pattern in which a * stands for any text; letters count alike, small or capital.
func matches(pattern, name string) bool {
	parts := strings.Split(strings.ToLower(pattern), "*")
	name = strings.ToLower(name)
	name, ok := strings.CutPrefix(name, parts[0])
	if len(parts) == 1 {
		return ok && name == ""
	}
	for _, part := range parts[1 : len(parts)-1] {
		var found bool
		if _, name, found = strings.Cut(name, part); !found {
			return false
		}
	}
	return ok && strings.HasSuffix(name, parts[len(parts)-1])
}
