package model

// aliases is the only list of model types that share another's implementation.
var aliases = map[string]string{
	"mistral":     "llama",
	"iquestcoder": "llama",
	"xverse":      "llama",
	"llava":       "mistral3",
	"minimax_m2":  "minimax",
	"qwen2_5_vl":  "qwen2_vl",
}

func resolve(modelType string) string {
	if t, ok := aliases[modelType]; ok {
		return t
	}
	return modelType
}
