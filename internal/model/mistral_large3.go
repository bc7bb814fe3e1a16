package model

import "encoding/json"

func init() { registerNear("mistral_large3", "mistral4", newMistralLarge3) }

// newMistralLarge3 is mistral4 in conversions from params.json, which leave out how rotations are scaled and queries
// grow. Experts are picked by softmax, whatever the config takes for granted, and the bias of the choice is made of
// zeros.
func newMistralLarge3(cfg *config, b *Build) (Generator, error) {
	cfg.harmless("scoring_func", "topk_method", "rope_interleave")
	if !given(cfg.text["norm_topk_prob"]) {
		cfg.text["norm_topk_prob"] = json.RawMessage("true")
	}
	turns := map[string]json.RawMessage{}
	if raw := cfg.text["rope_parameters"]; given(raw) {
		if err := json.Unmarshal(raw, &turns); err != nil {
			return nil, keyed("rope_parameters", err)
		}
	} else if !given(cfg.text["rope_scaling"]) {
		cfg.note("this config of mistral_large3 has no rope_parameters: the params.json that the model was published with says how rotations are scaled (yarn) and queries " +
			"grow (llama_4_scaling). Answers to long texts are not the model's until text_config has it as rope_parameters")
	}
	for key, value := range map[string]string{"rope_type": `"default"`, "llama_4_scaling_beta": "0", "original_max_position_embeddings": "8192"} {
		if _, ok := turns[key]; !ok && (key != "rope_type" || !given(cfg.text["rope_scaling"])) {
			turns[key] = json.RawMessage(value)
		}
	}
	raw, err := json.Marshal(turns)
	if err != nil {
		return nil, err
	}
	cfg.text["rope_parameters"] = raw
	g, err := newMistral4(cfg, b)
	if err != nil {
		return nil, err
	}
	m := g.(*decoder)
	m.within()
	m.drop = append(m.drop, ".e_score_correction_bias")
	return m, nil
}
