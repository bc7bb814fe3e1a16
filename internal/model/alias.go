package model

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
	"llama4_text":     "llama4",

	"gemma4_unified": "gemma4",
}

// spellings maps further names that transformers and publishers give to types to the names used here.
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
	"nemotron_h_puzzle":   "nemotron_h",
	"step3p7":             "step3p5",
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
