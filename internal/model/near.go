package model

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// named is the name here of a model type: some tools write "-" where others write "_". A type that is not known keeps its name.
func named(modelType string) string {
	if alike, ok := spelled()[underscored(modelType)]; ok && !slices.Contains(alike, modelType) {
		return alike[0]
	}
	return modelType
}

func underscored(name string) string { return strings.ReplaceAll(name, "-", "_") }

// spelled has the names of all types by how they are spelled with "_".
var spelled = sync.OnceValue(func() map[string][]string {
	all := map[string][]string{}
	for _, name := range slices.Concat(Types(), NearTypes(), EncoderTypes(), NearEncoderTypes()) {
		all[underscored(name)] = append(all[underscored(name)], name)
	}
	return all
})

// nearMakers are the constructors of model types that mlx-lm lacks; nearMeans names the type that each of them mostly is.
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

// near describes the models of NearTypes in a few words each.
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

// stranger is a model type that is near to one here, and something else all the same.
type stranger struct{ what, do string }

// strangers are such types by name, spelled with "_".
var strangers = map[string]stranger{
	"deci":            {"its layers have heads of several numbers under keys of its own", "its nearest relative here is nemotron-nas, as NVIDIA publishes its successors: hearth serve nvidia/Llama-3_3-Nemotron-Super-49B-v1"},
	"paligemma":       {"its rows see those of the prompt in both directions", "its nearest relative here is gemma3: hearth serve google/gemma-3-4b-it"},
	"internvl_chat":   {"its config and tensors are not those of transformers", "use the conversion whose name ends in -HF, of model_type internvl: hearth serve OpenGVLab/InternVL3_5-8B-HF"},
	"phi4mm":          {"its language model works with adapters that are in the folder", "use its text model, of model_type phi3: hearth serve microsoft/Phi-4-mini-instruct"},
	"qwen2_5_omni":    {"its language model is one part of a talker and a thinker", "use a model of text and images, of model_type qwen2_5_vl: hearth serve Qwen/Qwen2.5-VL-7B-Instruct"},
	"qwen3_omni_moe":  {"its language model is one part of a talker and a thinker", "use a model of text and images, of model_type qwen3_vl_moe: hearth serve Qwen/Qwen3-VL-30B-A3B-Instruct"},
	"ernie4_5_vl_moe": {"its experts for text and images are of two sizes", "use its relative for text, of model_type ernie4_5_moe: hearth serve baidu/ERNIE-4.5-21B-A3B-PT"},
	"mllama":          {"some of its layers see the image alone", "use its text model, of model_type llama: hearth serve meta-llama/Llama-3.1-8B-Instruct"},
	"deepseek_v32":    {"its attention picks the rows that it sees", "its nearest relative here is deepseek_v3: hearth serve deepseek-ai/DeepSeek-V3.1"},
	"glm_moe_dsa":     {"its attention picks the rows that it sees", "its nearest relative here is glm4_moe: hearth serve zai-org/GLM-4.7"},
	"minicpmv":        {"its language model has a prefix and a config of its own", "its nearest relative here is qwen2_5_vl: hearth serve Qwen/Qwen2.5-VL-7B-Instruct"},
}
