package demo

import (
	"encoding/json"
	"io/fs"
	"testing"
)

func TestFolderIsWhole(t *testing.T) {
	for _, name := range []string{"config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"} {
		st, err := fs.Stat(FS(), name)
		if err != nil {
			t.Fatal(err)
		}
		if st.Size() == 0 {
			t.Errorf("%s is empty", name)
		}
	}
	b, err := fs.ReadFile(FS(), "config.json")
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Type string `json:"model_type"`
	}
	if err := json.Unmarshal(b, &c); err != nil || c.Type == "" {
		t.Errorf("config.json: model_type %q, error %v", c.Type, err)
	}
}

// The program carries these bytes, so growth is a decision.
func TestSize(t *testing.T) {
	var sum int64
	err := fs.WalkDir(FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		st, err := d.Info()
		sum += st.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if sum > 16<<20 {
		t.Errorf("the embedded model has %d bytes, more than 16 MiB", sum)
	}
}
