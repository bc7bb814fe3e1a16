package model

// aliases is the only list of model types that share another's implementation.
var aliases = map[string]string{
	"mistral": "llama",
}

func resolve(modelType string) string {
	if t, ok := aliases[modelType]; ok {
		return t
	}
	return modelType
}
