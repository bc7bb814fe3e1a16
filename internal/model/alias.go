package model

import (
	"maps"
	"slices"
	"strings"
)

// aliases is the only list of mlx-lm's model types that share another's implementation.
var aliases = map[string]string{
	"iquestcoder":     "llama",
	"xverse":          "llama",
	"kimi_k2":         "deepseek_v3",
	"kimi_k25":        "deepseek_v3",
	"kimi_vl":         "deepseek_v3",
	"joyai_llm_flash": "deepseek_v3",
	"telechat3":       "llama",
	"solar_open":      "glm4_moe",
	"qwen3_5_moe":     "qwen3_5",
	"qwen2_5_vl":      "qwen2_vl",
	"lfm2-vl":         "lfm2",
	"falcon_mamba":    "mamba",

	"gemma4_unified": "gemma4",
}

// spellings are names that transformers, or who publishes a model, has for types that go by another of the names here.
var spellings = map[string]string{
	"gemma3n_text":        "gemma3n",
	"gemma4_unified_text": "gemma4_unified",
	"lfm2_vl":             "lfm2-vl",
	"qwen2_vl_text":       "qwen2_vl",
	"qwen2_5_vl_text":     "qwen2_5_vl",
	"qwen3_vl_text":       "qwen3_vl",
	"qwen3_vl_moe_text":   "qwen3_vl_moe",
	"qwen3_5_text":        "qwen3_5",
	"qwen3_5_moe_text":    "qwen3_5_moe",
	"llama4_text":         "llama4",
	"mimo_v2":             "mimo_v2_flash",
	"nemotron_h_puzzle":   "nemotron_h",
	"step3p7":             "step3p5",
}

// named is the name here of a model type: some tools write "-" where others write "_". A type that is not known keeps its name.
func named(modelType string) string {
	alike := func(name string) bool {
		return strings.ReplaceAll(name, "-", "_") == strings.ReplaceAll(modelType, "-", "_")
	}
	for _, all := range [][]string{Types(), NearTypes(), EncoderTypes(), NearEncoderTypes()} {
		if slices.Contains(all, modelType) {
			return modelType
		}
	}
	for _, all := range [][]string{Types(), NearTypes(), EncoderTypes(), NearEncoderTypes()} {
		if i := slices.IndexFunc(all, alike); i >= 0 {
			return all[i]
		}
	}
	return modelType
}

func resolve(modelType string) string {
	modelType = named(modelType)
	if t, ok := spellings[modelType]; ok {
		modelType = t
	}
	if t, ok := aliases[modelType]; ok {
		return t
	}
	return modelType
}

// nearMakers are constructors of names that mlx-lm has not, nearMeans what their models are for the most part.
var (
	nearMakers = map[string]maker{}
	nearMeans  = map[string]string{}
)

func registerNear(name, means string, m maker) { nearMakers[name], nearMeans[name] = m, means }

// makerOf is the constructor of a model type; nil: there is none.
func makerOf(modelType string) maker {
	name := named(modelType)
	if n, ok := nests[name]; ok {
		return n.make
	}
	if m, ok := nearMakers[name]; ok {
		return m
	}
	return registry[resolve(modelType)]
}

// NearTypes lists further values of model_type that New knows, sorted: names that mlx-lm has not.
func NearTypes() []string {
	return slices.Sorted(maps.Keys(near()))
}

// near says what is behind the names of NearTypes.
func near() map[string]string {
	all := maps.Clone(spellings)
	maps.Copy(all, nearMeans)
	for name, n := range nests {
		if _, twice := registry[name]; !twice {
			all[name] = n.what()
		}
	}
	return all
}
