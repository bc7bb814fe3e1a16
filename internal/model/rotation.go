package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	B "hearth/internal/backend"
	"hearth/internal/nn"
	"hearth/internal/regular"
)

// rotation is how a family turns its heads, and under which keys its folders say so. rope_parameters, flat or by the type of a
// layer, counts before the keys that older folders have beside it, and those before what is here: as in transformers.
type rotation struct {
	Head     int      // columns of a head
	Kind     string   // layers with this word in layer_types; "": all
	Base     float64  // rope_theta where the config has none
	BaseKey  string   // the key of older folders; "": rope_theta
	Share    float64  // partial_rotary_factor where the config has none; 0: whole heads, whatever it says
	ShareKey string   // the key of older folders; "": partial_rotary_factor
	Pairs    bool     // partners are neighbours, unless rope_traditional says otherwise, a key of mlx-lm
	Fixed    bool     // it does not: mlx-lm has no such key for the family
	Plain    bool     // rope_scaling of older folders is not for layers of this kind
	New      bool     // no folder has other keys than rope_parameters
	Apart    bool     // rope_parameters are by layer type: flat ones are nobody's
	Own      bool     // base and share are as they are here: the family has keys of its own for them
	Turns    int      // columns that turn, whatever the share; 0: by the share
	Type     string   // rope_type where the config has none
	Orig     float64  // original_max_position_embeddings, from a key beside the parameters; 0: theirs
	Types    []string // the types that the family does; nil: all
	Axes     axes     // positions of images differ on three axes
	Yarn     string   // the type that the family's folders call yarn; "": that one
}

// axes is how a family turns pairs by three axes of positions: frame, row and column of an image. Text has one position on all.
type axes struct {
	sections []int // where the config has none; empty: one axis there; nil: whatever it says
	inTurn   bool
}

// Rotation is a rotation in force, for people.
type Rotation struct {
	Kind    string  `json:"layers,omitempty"` // of layers with this word in layer_types; "": of all
	Base    float64 `json:"base"`
	Whence  string  `json:"base_from"` // key of the base, or that it is the architecture's default
	Columns int     `json:"columns"`   // of a head, that turn
	Type    string  `json:"type"`      // rope_type: "default" if nothing is scaled
	Factor  float64 `json:"factor,omitempty"`
	Orig    float64 `json:"original_context,omitempty"` // where the type looks at it
	From    string  `json:"type_from"`                  // key of the type
	// Divisors is the list that longrope divides by, whatever the length of a text.
	Divisors string `json:"divisors,omitempty"`
}

// byDefault is where what the config does not say comes from.
const byDefault = "the architecture's default"

// ropeJSON are the parameters of a rotation: rope_scaling, or rope_parameters, which holds the base as well.
type ropeJSON struct {
	Type      string  `json:"type"`
	RopeType  string  `json:"rope_type"`
	Theta     *float  `json:"rope_theta"`
	Factor    float   `json:"factor"`
	Partial   float   `json:"partial_rotary_factor"`
	LowFreq   float   `json:"low_freq_factor"`
	HighFreq  float   `json:"high_freq_factor"`
	BetaFast  float   `json:"beta_fast"`
	BetaSlow  float   `json:"beta_slow"`
	MScale    *float  `json:"mscale"`
	MScaleAll *float  `json:"mscale_all_dim"`
	Attention *float  `json:"attention_factor"`
	Orig      float   `json:"original_max_position_embeddings"`
	Long      []float `json:"long_factor"`
	Short     []float `json:"short_factor"` // for texts of no more than Orig: counts where there are no others
	Truncate  *bool   `json:"truncate"`
	Beta      float   `json:"llama_4_scaling_beta"` // how fast queries grow with their position
	Alpha     float   `json:"alpha"`                // hunyuan's
	Section   []int   `json:"mrope_section"`
}

// of is r for heads of that many columns.
func (r rotation) of(head int) rotation {
	r.Head = head
	return r
}

func (r *ropeJSON) kind() string {
	k := cmp.Or(r.RopeType, r.Type)
	if k == "telechat3-yarn" {
		return "yarn"
	}
	return k
}

// ropes reads the parameters of layers of a kind in both spellings; nil: there are none. at is the path of the newer one.
func (c *config) ropes(kind string, apart bool) (older, newer *ropeJSON, at string, err error) {
	if older, err = c.ropeOf("rope_scaling", c.raw("rope_scaling")); err != nil {
		return nil, nil, "", err
	}
	at = "rope_parameters"
	raw := c.raw(at)
	if raw == nil {
		return older, nil, at, nil
	}
	var kinds map[string]json.RawMessage
	if err := json.Unmarshal(raw, &kinds); err != nil {
		return nil, nil, "", keyed(at, err)
	}
	if byKind(kinds) {
		raw, at = kinds[kind], at+"."+kind
		c.leave("rope_parameters", kinds)
	} else if apart && len(kinds) > 0 {
		delete(c.seen, c.at+at)
		return older, nil, at, nil
	}
	if !given(raw) {
		return older, nil, at, nil
	}
	newer, err = c.ropeOf(at, raw)
	if newer != nil && at != "rope_parameters" {
		newer.Truncate = nil // transformers does not look for it there
	}
	return older, newer, at, err
}

// leave marks rope_parameters by layer type as read in part, so that types which no layer has are reported.
func (c *config) leave(key string, kinds map[string]json.RawMessage) {
	delete(c.seen, c.at+key)
	c.part[c.at+key] = true
	for k, v := range kinds {
		if !given(v) {
			c.seen[c.at+key+"."+k] = true
		}
	}
}

// byKind: the parameters of a rotation are numbers, words and lists, those by layer type are objects.
func byKind(m map[string]json.RawMessage) bool {
	for _, v := range m {
		if len(v) > 0 && v[0] == '{' {
			if json.Unmarshal(v, new(float)) != nil {
				return true
			}
		}
	}
	return false
}

// ropeOf decodes parameters and notes which of them are understood.
func (c *config) ropeOf(path string, raw json.RawMessage) (*ropeJSON, error) {
	if raw == nil {
		return nil, nil
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return nil, keyed(path, err)
	}
	if len(keys) == 0 {
		return nil, nil
	}
	delete(c.seen, c.at+path)
	c.part[c.at+path] = true
	r := &ropeJSON{}
	err := c.decode(keys, c.at+path+".", r)
	if raw, ok := keys["truncate"]; ok && !given(raw) {
		r.Truncate = new(bool) // null is false there, not the default
	}
	return r, err
}

// ropeless gives a config that says nothing of rotations the family's parameters.
func (c *config) ropeless(parameters string) {
	if !given(c.text["rope_parameters"]) && !given(c.text["rope_scaling"]) {
		c.text["rope_parameters"] = json.RawMessage(parameters)
	}
}

// rope is the rotation that the config asks for; one without frequencies after a failure.
func (c *config) rope(r rotation) *B.Rope {
	rope, err := c.newRope(r)
	if err != nil {
		c.fail(err)
		return &B.Rope{Head: r.Head}
	}
	return rope
}

func (c *config) newRope(r rotation) (*B.Rope, error) {
	a, err := c.ropeArgs(r)
	if err != nil {
		return nil, err
	}
	return nn.NewRope(r.Head, a)
}

// ropeArgs merges what the config says, in all its spellings, over the family's defaults, and notes what is in force.
func (c *config) ropeArgs(r rotation) (nn.RopeArgs, error) {
	older, newer, at, err := c.ropes(r.Kind, r.Apart)
	if err != nil {
		return nn.RopeArgs{}, err
	}
	if r.Plain {
		older = nil
	}
	if err := agree(older, newer, at); err != nil {
		return nn.RopeArgs{}, fmt.Errorf("%s%w", c.at, err)
	}
	var flat struct {
		Max   int   `json:"max_position_embeddings"`
		Pairs *bool `json:"rope_traditional"`
	}
	if err := c.decode(c.text, c.at, &flat); err != nil {
		return nn.RopeArgs{}, err
	}
	baseKey, shareKey := cmp.Or(r.BaseKey, "rope_theta"), cmp.Or(r.ShareKey, "partial_rotary_factor")
	var base, share *float64
	if !r.Own && !r.New {
		if base, err = c.number(baseKey); err != nil {
			return nn.RopeArgs{}, err
		}
		if share, err = c.number(shareKey); err != nil {
			return nn.RopeArgs{}, err
		}
	}
	a := nn.RopeArgs{Type: r.Type, Theta: r.Base, Partial: cmp.Or(r.Share, 1), Traditional: r.Pairs, BetaFast: 32, BetaSlow: 1, LowFreq: 1, HighFreq: 4, Sections: r.Axes.sections, InTurn: r.Axes.inTurn,
		Max: float64(flat.Max)}
	if r.Fixed {
		delete(c.seen, c.at+"rope_traditional")
	} else if flat.Pairs != nil {
		a.Traditional = *flat.Pairs
	}
	note := Rotation{Kind: r.Kind, Whence: byDefault, From: byDefault}
	if base != nil {
		a.Theta, note.Whence = *base, c.at+baseKey
	}
	if share != nil {
		a.Partial = *share
	}
	for _, p := range []struct {
		*ropeJSON
		at string
	}{{newer, at}, {older, "rope_scaling"}} {
		if p.ropeJSON == nil {
			continue
		}
		if p.Theta != nil && (p.ropeJSON == newer || newer == nil || newer.Theta == nil) {
			a.Theta, note.Whence = float64(*p.Theta), c.at+p.at+".rope_theta"
		}
		if k := p.kind(); k != "" {
			a.Type, note.From = k, c.at+p.at
		}
		p.over(&a)
		if p.Section != nil && r.Axes.sections != nil {
			a.Sections = p.Section
		}
	}
	if a.Type != "" && r.Types != nil && !slices.Contains(r.Types, a.Type) {
		return a, fmt.Errorf("rope_type %s is not supported in %s: %s are", regular.Quote(a.Type), regular.Quote(c.typ), list(r.Types, len(r.Types)))
	}
	if a.Type == "yarn" && r.Yarn != "" {
		a.Type = r.Yarn
	}
	if r.Share == 0 && (a.Type == "" || a.Type == "default" || a.Type == "dynamic" || a.Type == "mrope") {
		a.Partial = 1
	}
	if r.Type != "" && a.Type != r.Type && (newer == nil || newer.Partial == 0) {
		a.Partial = 1 // the family's share is that of its own type
	}
	if note.Whence == c.at+baseKey && !(a.Theta > 1 && !math.IsInf(a.Theta, 0)) {
		return a, fmt.Errorf("%s %g is out of range", note.Whence, a.Theta)
	}
	if share != nil && a.Partial == *share && !(*share > 0 && *share <= 1) {
		return a, fmt.Errorf("%s%s %g is out of range", c.at, shareKey, *share)
	}
	a.Orig = cmp.Or(r.Orig, a.Orig, a.Max, map[string]float64{"llama3": 8192}[a.Type], 4096)
	if r.Own {
		a.Theta, a.Partial = r.Base, cmp.Or(r.Share, 1)
	}
	if r.Turns > 0 {
		a.Partial = min((float64(r.Turns)+0.5)/float64(r.Head), 1)
	}
	if a.Type == "longrope" || a.Type == "su" {
		note.Divisors = "long_factor"
		if len(a.Short) > 0 && a.Max > 0 && a.Max <= a.Orig { // no text is so long that the other counts
			a.Long, note.Divisors = a.Short, "short_factor"
		}
		if a.Factor == 0 && a.Orig > 0 {
			a.Factor = a.Max / a.Orig
		}
	}
	note.Base, note.Type, note.Columns = a.Theta, cmp.Or(a.Type, "default"), int(float64(r.Head)*a.Partial)
	switch note.Type {
	case "default", "mrope":
	case "linear", "proportional", "dynamic":
		note.Factor = a.Factor
	default:
		note.Factor, note.Orig = a.Factor, a.Orig
	}
	if !slices.Contains(c.rotations, note) {
		c.rotations = append(c.rotations, note)
	}
	return a, nil
}

// over puts what is given over a.
func (r *ropeJSON) over(a *nn.RopeArgs) {
	for _, f := range []struct {
		to   *float64
		from float
	}{
		{&a.Partial, r.Partial}, {&a.Factor, r.Factor}, {&a.Orig, r.Orig}, {&a.LowFreq, r.LowFreq}, {&a.HighFreq, r.HighFreq},
		{&a.BetaFast, r.BetaFast}, {&a.BetaSlow, r.BetaSlow}, {&a.Alpha, r.Alpha},
	} {
		if f.from != 0 {
			*f.to = float64(f.from)
		}
	}
	if r.MScale != nil {
		a.MScale = float64(*r.MScale)
	}
	if r.MScaleAll != nil {
		a.MScaleAllDim = float64(*r.MScaleAll)
	}
	if r.Attention != nil {
		a.Amp = float64(*r.Attention)
	}
	if r.Truncate != nil {
		a.Whole = !*r.Truncate
	}
	if len(r.Long) > 0 {
		a.Long = nil // said twice, it counts once
	}
	for _, f := range r.Long {
		a.Long = append(a.Long, float64(f))
	}
	if len(r.Short) > 0 {
		a.Short = nil
	}
	for _, f := range r.Short {
		a.Short = append(a.Short, float64(f))
	}
}

// agree compares the two spellings where a config has both.
func agree(older, newer *ropeJSON, at string) error {
	if older == nil || newer == nil {
		return nil
	}
	if x, y := older.kind(), newer.kind(); x != "" && y != "" && x != y {
		return fmt.Errorf("rope_scaling says %s, %s says %s", regular.Quote(x), at, regular.Quote(y))
	}
	if older.Factor != 0 && newer.Factor != 0 && older.Factor != newer.Factor {
		return fmt.Errorf("rope_scaling has the factor %g, %s has %g", float64(older.Factor), at, float64(newer.Factor))
	}
	return nil
}

// unused marks the parameters of layer types that no layer has as harmless.
func (c *config) unused(types []string) {
	for _, kind := range []string{full, slides} {
		if !slices.Contains(types, kind) {
			c.harmless("rope_parameters." + kind)
		}
	}
}

// ropesOf makes the rotations of the kinds of layers that a model has, after a failure as rope does.
func (c *config) ropesOf(types []string, r rotation) map[string]*B.Rope {
	out := map[string]*B.Rope{}
	c.unused(types)
	for _, kind := range slices.Compact(slices.Sorted(slices.Values(types))) {
		r.Kind = kind
		rope, err := c.newRope(r)
		if err != nil {
			c.fail(fmt.Errorf("rotation of %s: %w", kind, err))
			rope = &B.Rope{Head: r.Head}
		}
		out[kind] = rope
	}
	return out
}
