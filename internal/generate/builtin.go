package generate

import (
	_ "embed"
	"io/fs"
)

// The templates of families whose reference renders in code, or some of whose folders ship none.
var (
	//go:embed builtin/deepseek_v32.jinja
	deepseekV32 string
	//go:embed builtin/harmony.jinja
	harmony string

	builtins = map[string]string{"deepseek_v32": deepseekV32, "harmony": harmony}
	// builtinOf is the template of an architecture.
	builtinOf = map[string]string{"deepseek_v32": "deepseek_v32", "gpt_oss": "harmony"}
)

// builtinFor names the built-in template for a folder without one, "" if there is none. The evidence is the
// architecture in config.json, never the model's name.
func builtinFor(fsys fs.FS) string {
	config := (&loader{fsys: fsys}).keys("config.json")
	return builtinOf[tokenText(config["model_type"])]
}
