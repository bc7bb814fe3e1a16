package model

// aliases is the only list of model types that share another's implementation.
var aliases = map[string]string{
	"iquestcoder":     "llama",
	"xverse":          "llama",
	"kimi_k2":         "deepseek_v3",
	"kimi_k25":        "deepseek_v3",
	"kimi_vl":         "deepseek_v3",
	"joyai_llm_flash": "deepseek_v3",
	"telechat3":       "llama",
	"solar_open":      "glm4_moe",
	"minimax_m2":      "minimax",
	"qwen3_5_moe":     "qwen3_5",
	"qwen2_5_vl":      "qwen2_vl",
	"lfm2-vl":         "lfm2",
	"falcon_mamba":    "mamba",

	"gemma4_unified": "gemma4",
}

func resolve(modelType string) string {
	if t, ok := aliases[modelType]; ok {
		return t
	}
	return modelType
}
