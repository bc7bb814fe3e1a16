package convert

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"hearth/internal/model"
)

// Transformers 5 renamed keys of config.json that mlx-lm 0.32.2 reads by their older names, and other readers the other way
// round. What is written has both, with the same values, so that the folder means the same to all of them. What is there is not
// changed, but for values that have one spelling only.

// ropeNames are the older names of what rope_parameters holds.
type ropeNames struct {
	theta, scaling, partial string
	// sliding is the base of layers with a window: rope_parameters is then a dictionary for each kind of layer. Where it is the
	// same name as theta, mlx-lm has one base for both, and scales that of full attention alone.
	sliding string
	dims    string // columns that turn, which partial is a share of
}

// ropes are those of a model_type; the one without a name is everybody else's. A family whose rope_parameters mlx-lm reads itself
// by kind of layer has no older names.
var ropes = map[string]ropeNames{
	"":              {theta: "rope_theta", scaling: "rope_scaling", partial: "partial_rotary_factor"},
	"gpt_neox":      {theta: "rotary_emb_base", partial: "rotary_pct"},
	"gemma3":        {theta: "rope_theta", scaling: "rope_scaling", sliding: "rope_local_base_freq"},
	"gemma3_text":   {theta: "rope_theta", scaling: "rope_scaling", sliding: "rope_local_base_freq"},
	"gemma3n":       {theta: "rope_theta", scaling: "rope_scaling", sliding: "rope_local_base_freq"},
	"gemma3n_text":  {theta: "rope_theta", scaling: "rope_scaling", sliding: "rope_local_base_freq"},
	"mimo_v2_flash": {theta: "rope_theta", partial: "partial_rotary_factor", sliding: "swa_rope_theta"},
	"olmo3":         {theta: "rope_theta", scaling: "rope_scaling", sliding: "rope_theta"},
	"minimax":       {theta: "rope_theta", dims: "rotary_dim"},
	"minimax_m2":    {theta: "rope_theta", dims: "rotary_dim"},
	"kimi_linear":   {}, // has no positions
	"gemma4":        {}, "gemma4_text": {}, "gemma4_unified": {}, "mellum": {}, "laguna": {}, "step3p5": {},
}

// sameKeys are keys that mean the same: the newer name, then the one that mlx-lm reads.
var sameKeys = map[string][][2]string{
	"":             {{"dtype", "torch_dtype"}},
	"qwen3_moe":    {{"num_local_experts", "num_experts"}},
	"qwen3_vl_moe": {{"num_local_experts", "num_experts"}}, "qwen3_vl_moe_text": {{"num_local_experts", "num_experts"}},
	"mellum":  {{"num_local_experts", "num_experts"}},
	"exaone":  {{"num_hidden_layers", "num_layers"}, {"rms_norm_eps", "layer_norm_epsilon"}, {"hidden_act", "activation_function"}},
	"step3p5": {{"n_routed_experts", "moe_num_experts"}, {"num_experts_per_tok", "moe_top_k"}, {"num_key_value_heads", "num_attention_groups"}},
}

// sameValues are values of layer_types that were renamed, the newer one first. A list has one spelling: the older, which all
// read.
var sameValues = map[string][][2]string{
	"granitemoehybrid": {{"linear_attention", "mamba"}, {"full_attention", "attention"}},
}

type keys = map[string]json.RawMessage

// spellBoth adds the other names to a config, and to the text_config in it; hasHead says that the folder has a head of its own.
func spellBoth(c keys, modelType string, hasHead bool) {
	spell(c, modelType)
	text := object(c["text_config"])
	if text == nil {
		if hasHead && !given(c, "tie_word_embeddings") { // mlx-lm would take the head for the embedding in most families
			c["tie_word_embeddings"] = json.RawMessage("false")
		}
		return
	}
	typ := innerType(c)
	if inner[modelType] != nil {
		fill(text, cmp.Or(typ, inner[modelType][0]))
	}
	spell(text, cmp.Or(typ, modelType))
	text["tie_word_embeddings"] = marshal(!hasHead) // mlx-lm looks there alone, transformers also beside it
	c["text_config"] = marshal(text)
}

// innerType is the type that text_config says it is, "" if it says none.
func innerType(c keys) (typ string) {
	if json.Unmarshal(object(c["text_config"])["model_type"], &typ) != nil {
		return ""
	}
	return typ
}

// fill writes what a text_config of that type leaves out: mlx-lm must have most of it, and its other defaults are a llama's.
func fill(text keys, typ string) {
	for key, value := range model.TextDefaults(typ) {
		if !given(text, key) {
			text[key] = json.RawMessage(value)
		}
	}
}

// spell is spellBoth for one dictionary.
func spell(c keys, modelType string) {
	spellRope(c, modelType)
	derive(c, modelType)
}

func spellRope(c keys, modelType string) {
	for _, pair := range slices.Concat(sameKeys[""], sameKeys[modelType]) {
		copyKey(c, pair[0], c, pair[1])
		copyKey(c, pair[1], c, pair[0])
	}
	for _, pair := range sameValues[modelType] {
		if v, ok := c["layer_types"]; ok {
			c["layer_types"] = bytes.ReplaceAll(v, []byte(`"`+pair[0]+`"`), []byte(`"`+pair[1]+`"`))
		}
	}
	names, ok := ropes[modelType]
	if !ok {
		names = ropes[""]
	}
	if names.theta == "" {
		return
	}
	if given(c, "rope_parameters") {
		names.older(c)
		return
	}
	names.newer(c)
}

// older writes the older names from rope_parameters.
func (n ropeNames) older(c keys) {
	full := object(c["rope_parameters"])
	if nested := object(full["full_attention"]); nested != nil {
		sliding := object(full["sliding_attention"])
		if n.sliding == "" || n.sliding == n.theta && sliding != nil && !bytes.Equal(sliding["rope_theta"], nested["rope_theta"]) {
			return // mlx-lm has no names for it
		}
		if n.sliding != n.theta {
			copyKey(sliding, "rope_theta", c, n.sliding)
		}
		full = nested
	}
	copyKey(full, "rope_theta", c, n.theta)
	copyKey(full, "partial_rotary_factor", c, n.partial)
	n.turned(c, full)
	if n.scaling == "" || given(c, n.scaling) {
		return
	}
	n.unscaled(c)
	if scaled(full) {
		s := maps.Clone(full)
		delete(s, "rope_theta")
		bothTypes(s)
		c[n.scaling] = marshal(s)
	}
}

// unscaled says that positions are not stretched: mlx-lm must have the key in some families.
func (n ropeNames) unscaled(c keys) {
	if n.scaling != "" && !given(c, n.scaling) {
		c[n.scaling] = json.RawMessage("null")
	}
}

// turned writes the number of columns that turn.
func (n ropeNames) turned(c, full keys) {
	if dim := number(c, "head_dim"); n.dims != "" && !given(c, n.dims) && dim > 0 && given(full, "partial_rotary_factor") {
		if turned := whole(dim * number(full, "partial_rotary_factor")); turned != nil {
			c[n.dims] = marshal(turned)
		}
	}
}

// newer writes rope_parameters from the older names.
func (n ropeNames) newer(c keys) {
	if !given(c, n.theta) {
		return
	}
	full := keys{"rope_type": json.RawMessage(`"default"`)}
	if s := object(c[n.scaling]); s != nil {
		bothTypes(s)
		maps.Copy(full, s)
	}
	n.unscaled(c)
	copyKey(c, n.theta, full, "rope_theta")
	copyKey(c, n.partial, full, "partial_rotary_factor")
	if dim := number(c, "head_dim"); n.dims != "" && given(c, n.dims) && dim > 0 {
		if part := number(c, n.dims) / dim; !math.IsInf(part, 0) {
			full["partial_rotary_factor"] = marshal(part)
		}
	}
	if n.sliding == "" {
		c["rope_parameters"] = marshal(full)
		return
	}
	if !given(c, n.sliding) {
		return // which base it has is the reader's default
	}
	sliding := keys{"rope_type": json.RawMessage(`"default"`), "rope_theta": c[n.sliding]}
	copyKey(full, "partial_rotary_factor", sliding, "partial_rotary_factor")
	c["rope_parameters"] = marshal(map[string]keys{"full_attention": full, "sliding_attention": sliding})
}

// scaled reports positions that are stretched.
func scaled(rope keys) bool {
	for _, k := range []string{"rope_type", "type"} {
		var t string
		if json.Unmarshal(rope[k], &t) == nil && t != "" && t != "default" {
			return true
		}
	}
	return false
}

// bothTypes gives the kind of stretching both its names.
func bothTypes(rope keys) {
	copyKey(rope, "rope_type", rope, "type")
	copyKey(rope, "type", rope, "rope_type")
}

// copyKey copies a value that is given to where none is.
func copyKey(from keys, a string, to keys, b string) {
	if a != "" && b != "" && given(from, a) && !given(to, b) {
		to[b] = from[a]
	}
}

func given(c keys, key string) bool {
	v := strings.TrimSpace(string(c[key]))
	return v != "" && v != "null"
}

// object is a dictionary, nil for anything else.
func object(raw json.RawMessage) keys {
	var m keys
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

// marshal is for what was read from JSON before.
func marshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("convert: " + err.Error())
	}
	return b
}
