package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/regular"
)

// config is an open config.json. A model type reads every key through it, so that New knows which ones nobody read: what
// they mean is not in the numbers.
type config struct {
	typ  string
	top  map[string]json.RawMessage // the whole file
	text map[string]json.RawMessage // the language model's part: text_config where there is one, else top
	at   string                     // path of text: "text_config." or ""
	seen map[string]bool            // paths that were read
	part map[string]bool            // paths of which parts were read
	why  map[string]string          // of keys that are reported although they were read

	err       error // the first failure: counts before what the constructor returns
	only      []refusal
	rotations []Rotation
	notes     []string
}

// fail keeps the first error, so that constructors read on without asking after every key.
func (c *config) fail(err error) { c.err = cmp.Or(c.err, err) }

// note adds a warning about the config as a whole: numbers may not be the authors'.
func (c *config) note(text string) { c.notes = append(c.notes, text) }

// refusal is a key whose value a type does not support.
type refusal struct {
	path, value string
	accepted    []string
}

// openConfig parses config.json; what it says of the language model may be nested.
func openConfig(typ string, b []byte) (*config, error) {
	c := &config{typ: typ, seen: map[string]bool{}, part: map[string]bool{}, why: map[string]string{}}
	if err := json.Unmarshal(b, &c.top); err != nil {
		return nil, tidyJSON(err)
	}
	c.text = c.top
	if raw := c.top["text_config"]; given(raw) {
		c.text, c.at = nil, "text_config."
		if err := json.Unmarshal(raw, &c.text); err != nil {
			return nil, keyed("text_config", err)
		}
	}
	if c.typ = named(calledBy(typ, c.top)); c.text == nil {
		c.text = map[string]json.RawMessage{} // the file is null
	}
	return c, nil
}

// into decodes the language model's keys into the tagged fields of a struct, which holds the defaults. A key that is null keeps
// the default. Of two fields with one tag the less deeply embedded is filled.
func (c *config) into(to any) { c.fail(c.decode(c.text, c.at, to)) }

// read is into for a struct without defaults.
func read[T any](c *config) (t T) {
	c.into(&t)
	return t
}

// beside is into for the keys that a nested config has outside of the language model's part.
func (c *config) beside(to any) { c.fail(c.decode(c.top, "", to)) }

// decode is into for any object of the config; at is its path.
func (c *config) decode(from map[string]json.RawMessage, at string, to any) error {
	fields := tagsOf(reflect.ValueOf(to).Elem())
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		raw, ok := from[key]
		if !ok {
			continue
		}
		f := fields[key]
		c.mark(at+key, f.Type(), raw)
		if err := json.Unmarshal(raw, f.Addr().Interface()); err != nil {
			return keyed(key, err)
		}
	}
	return nil
}

// raw is a key of the language model's part, nil if it is missing or null. It counts as read.
func (c *config) raw(key string) json.RawMessage {
	raw, ok := c.text[key]
	if ok {
		c.seen[c.at+key] = true
	}
	if c.null(key) {
		return nil
	}
	return raw
}

// number is a key of the language model's part that holds a number; nil if it is missing or null.
func (c *config) number(key string) (*float64, error) {
	raw := c.raw(key)
	if raw == nil {
		return nil, nil
	}
	var x float
	if err := json.Unmarshal(raw, &x); err != nil {
		return nil, keyed(key, err)
	}
	return (*float64)(&x), nil
}

// also reads a key under its other names, of which newer folders may have one instead.
func (c *config) also(key string, others ...string) {
	for _, k := range others {
		raw, ok := c.text[k]
		if !ok {
			continue
		}
		own, twice := c.text[key]
		if c.seen[c.at+k] = true; !twice || !given(own) {
			c.text[key] = raw
			c.seen[c.at+key] = true
		} else if given(raw) && compact(raw) != compact(own) {
			c.only = append(c.only, refusal{c.at + k, compact(raw), []string{compact(own) + ", which " + key + " is,"}})
		}
	}
}

// null reports a key that is there, but is null: not what its default is.
func (c *config) null(key string) bool {
	raw, ok := c.text[key]
	return ok && compact(raw) == "null"
}

// is limits a key to these values, given as JSON, which are all that the type supports. New refuses others; null is always fine.
func (c *config) is(key string, values ...string) {
	raw, ok := c.text[key]
	if !ok {
		return
	}
	c.seen[c.at+key] = true
	c.accept(c.at+key, raw, values)
}

func (c *config) accept(path string, raw json.RawMessage, values []string) {
	if v := compact(raw); v != "null" && !slices.Contains(values, v) {
		c.only = append(c.only, refusal{path, v, values})
	}
}

// same marks a key as read if it repeats a number that is in force. Any other number is reported as not understood.
func (c *config) same(key string, number float64) {
	var x float
	if json.Unmarshal(c.text[key], &x) == nil && float64(x) == number {
		c.seen[c.at+key] = true
	}
}

// differs reports a key that mlx-lm and transformers read differently; how ends the sentence about it.
func (c *config) differs(key, how string) {
	delete(c.seen, c.at+key)
	c.why[c.at+key] = how
}

// harmless says that a key, whatever its value, changes no number of this type. The call says why.
func (c *config) harmless(keys ...string) {
	for _, k := range keys {
		c.seen[c.at+k] = true
	}
}

// mark notes that path was read, or what of it a struct has fields for.
func (c *config) mark(path string, t reflect.Type, raw json.RawMessage) {
	for t.Kind() == reflect.Pointer && !t.Implements(unmarshaler) {
		t = t.Elem()
	}
	own := reflect.PointerTo(t).Implements(unmarshaler)
	switch {
	case t.Kind() == reflect.Struct && !own:
		var inner map[string]json.RawMessage
		if json.Unmarshal(raw, &inner) != nil || inner == nil {
			break
		}
		c.part[path] = true
		for key, f := range tagsOf(reflect.New(t).Elem()) {
			if v, ok := inner[key]; ok {
				c.mark(path+"."+key, f.Type(), v)
			}
		}
		return
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && !own:
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			break
		}
		c.part[path] = true
		for i, v := range list {
			c.mark(fmt.Sprintf("%s[%d]", path, i), t.Elem(), v)
		}
		return
	}
	c.seen[path] = true
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// tagsOf are the fields of a struct by their JSON key.
func tagsOf(v reflect.Value) map[string]reflect.Value {
	fields := map[string]reflect.Value{}
	for level := []reflect.Value{v}; len(level) > 0; {
		var next []reflect.Value
		here := map[string]reflect.Value{}
		for _, s := range level {
			for i := range s.NumField() {
				f := s.Type().Field(i)
				key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				switch {
				case f.Anonymous && key == "" && f.Type.Kind() == reflect.Struct:
					next = append(next, s.Field(i))
				case key != "" && key != "-":
					here[key] = s.Field(i)
				}
			}
		}
		for key, f := range here {
			if _, shallower := fields[key]; !shallower {
				fields[key] = f
			}
		}
		level = next
	}
	return fields
}

// keyed words the failure to decode a key.
func keyed(key string, err error) error {
	var t *json.UnmarshalTypeError
	if errors.As(err, &t) {
		if t.Field != "" {
			key += "." + t.Field
		}
		return fmt.Errorf("%s should not be a JSON %s", key, t.Value)
	}
	return fmt.Errorf("%s: %w", key, err)
}

// compact is a JSON value without spaces.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// Reading is what a model type made of its config.json.
type Reading struct {
	Unread    []Unread   // keys that are not understood: what they mean is not in the numbers
	Rotations []Rotation // in force, in the order of first use
	Windows   []Window   // in force, of the layers that attend
	Notes     []string   // what the config as a whole leaves open
}

// Window is how many of the last positions some layers see.
type Window struct {
	Layers    int    `json:"layers"`
	Positions int    `json:"positions"` // 0: all
	Whence    string `json:"from,omitempty"`
}

// windowKeys are where configs say how long windows are.
var windowKeys = []string{"sliding_window", "sliding_window_size", "attention_chunk_size", "window_size"}

// windowsOf lists the windows of a model's states.
func (c *config) windowsOf(states []B.StateSpec) (all []Window) {
	for _, s := range states {
		if s.Kind != B.StateKV && s.Kind != B.StateLatent {
			continue
		}
		i := slices.IndexFunc(all, func(w Window) bool { return w.Positions == s.Window })
		if i < 0 {
			w := Window{Positions: s.Window}
			if s.Window > 0 {
				w.Whence = byDefault
			}
			for _, key := range windowKeys {
				if x, err := c.number(key); s.Window > 0 && err == nil && x != nil && *x == float64(s.Window) {
					w.Whence = c.at + key
					break
				}
			}
			i, all = len(all), append(all, w)
		}
		all[i].Layers++
	}
	return all
}

// Unread is a key of config.json that nobody read, or that the two libraries which write such folders read differently.
type Unread struct {
	Key   string `json:"key"`           // its path: "rope_parameters.factor"
	Value string `json:"value"`         // JSON
	Why   string `json:"why,omitempty"` // how it is read, and how else; "": it is not understood
}

func (u *Unread) warning() string {
	how := "which is not understood: answers may not be the ones that the model's authors had"
	if u.Why != "" {
		how = u.Why
	}
	return fmt.Sprintf("%s: %s is %s, %s", configFile, regular.Clip(u.Key), regular.Clip(u.Value), how)
}

// Warnings says of every key that is not understood what it may mean.
func (r *Reading) Warnings() []string {
	var out []string
	for _, n := range r.Notes {
		out = append(out, configFile+": "+n)
	}
	for _, u := range r.Unread {
		out = append(out, u.warning())
	}
	if n := len(out); n > maxWarnings {
		out = append(out[:maxWarnings], fmt.Sprintf("%s: and %d more keys that are not understood", configFile, n-maxWarnings))
	}
	return out
}

// maxWarnings bounds how many keys are named one by one.
const maxWarnings = 12

// finish looks at what nobody read: an error for what would certainly change numbers, the rest is reported.
func (c *config) finish() (*Reading, error) {
	r := &Reading{Rotations: c.rotations, Notes: c.notes}
	c.unread(c.top, "", &r.Unread)
	slices.SortFunc(r.Unread, func(a, b Unread) int { return strings.Compare(a.Key, b.Key) })
	slices.SortStableFunc(c.only, func(a, b refusal) int { return strings.Compare(a.path, b.path) })
	if len(c.only) > 0 {
		return nil, c.only[0].err(c.typ)
	}
	return r, nil
}

func (r *refusal) err(typ string) error {
	do := regular.Clip(cmp.Or(strings.Join(r.accepted, " or "), "null"))
	return &LoadError{File: configFile, Problem: fmt.Sprintf("%s is %s, which architecture %s does not do here", regular.Clip(r.path), regular.Clip(r.value), regular.Quote(typ)),
		Hint: fmt.Sprintf("%s can be %s; hearth show FOLDER/%s says what is read of the others", regular.Clip(r.path), do, configFile)}
}

// unread walks what a part of the config holds. Keys of the language model and those beside it are judged alike.
func (c *config) unread(keys map[string]json.RawMessage, at string, to *[]Unread) {
	for key, raw := range keys {
		path := at + key
		value := compact(raw)
		if c.seen[path] || value == "null" {
			continue
		}
		if harmless(path) || c.idle(key) || at == "" && c.again(key, value) {
			continue
		}
		if values, ok := expected[strings.TrimPrefix(path, c.at)]; ok {
			c.accept(path, raw, values)
			continue
		}
		if !c.within(path, raw, to) {
			*to = append(*to, Unread{path, value, c.why[path]})
		}
	}
}

// again reports a key beside text_config that is in it too: there it counts.
func (c *config) again(key, value string) bool {
	inner, ok := c.text[key]
	return ok && c.at != "" && (key != "tie_word_embeddings" || compact(inner) == value)
}

// idle reports keys of windows where no layer has one.
func (c *config) idle(key string) bool {
	switch key {
	case "layer_types", "sliding_window", "max_window_layers":
	default:
		return false
	}
	var k struct {
		Types []string `json:"layer_types"`
		Use   *bool    `json:"use_sliding_window"`
	}
	for name, to := range map[string]any{"layer_types": &k.Types, "use_sliding_window": &k.Use} {
		if raw, ok := c.text[name]; ok && json.Unmarshal(raw, to) != nil {
			return false
		}
	}
	some := slices.ContainsFunc(k.Types, func(t string) bool { return t != full })
	if key == "layer_types" {
		return !some
	}
	return !some && (len(k.Types) > 0 || k.Use != nil && !*k.Use)
}

// within reports a value of which parts were read, and adds the parts that were not.
func (c *config) within(path string, raw json.RawMessage, to *[]Unread) bool {
	if !c.part[path] && path != "text_config" {
		return false
	}
	var inner map[string]json.RawMessage
	if json.Unmarshal(raw, &inner) == nil {
		c.unread(inner, path+".", to)
		return true
	}
	var list []map[string]json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		for i, inner := range list {
			c.unread(inner, fmt.Sprintf("%s[%d].", path, i), to)
		}
		return true
	}
	return false
}
