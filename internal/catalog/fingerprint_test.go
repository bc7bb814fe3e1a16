package catalog

import (
	"bytes"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"
)

func TestFingerprint(t *testing.T) {
	weights := bytes.Repeat([]byte("weights."), wholeFile/8+100)
	files := func() fstest.MapFS {
		return fstest.MapFS{
			"config.json":         {Data: []byte(`{"rope_theta": 10000}`)},
			"tokenizer.json":      {Data: []byte(`{}`)},
			"chat_template.jinja": {Data: []byte(`{{ messages }}`)},
			"model.safetensors":   {Data: weights, ModTime: time.Unix(1, 0)},
			"README.md":           {Data: []byte("one")},
			"images.json/x":       {Data: []byte("a folder")},
		}
	}
	print := func(fsys fs.FS, id string) string {
		t.Helper()
		s, err := (&Source{ID: id, FS: fsys, Where: "here"}).fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	base := print(files(), "m")
	same := files()
	same["README.md"].Data = []byte("two")
	if print(same, "m") != base {
		t.Error("a file that does not matter matters")
	}
	patched := bytes.Clone(weights)
	patched[len(patched)-3]++
	for name, change := range map[string]func(fstest.MapFS){
		"config":    func(m fstest.MapFS) { m["config.json"].Data = []byte(`{"rope_theta": 50000}`) },
		"tokenizer": func(m fstest.MapFS) { m["tokenizer.json"].Data = []byte(`{ }`) },
		"template":  func(m fstest.MapFS) { m["chat_template.jinja"].Data = nil },
		"weights":   func(m fstest.MapFS) { m["model.safetensors"].Data = patched },
		"longer":    func(m fstest.MapFS) { m["model.safetensors"].Data = append(bytes.Clone(weights), 0) },
		"time":      func(m fstest.MapFS) { m["model.safetensors"].ModTime = time.Unix(2, 0) },
		"new file":  func(m fstest.MapFS) { m["adapters.safetensors"] = &fstest.MapFile{Data: []byte("x")} },
		"renamed":   func(m fstest.MapFS) { m["tokens.json"] = m["tokenizer.json"]; delete(m, "tokenizer.json") },
	} {
		m := files()
		change(m)
		if print(m, "m") == base {
			t.Errorf("%s: the same", name)
		}
	}
	if print(files(), "n") == base {
		t.Error("another id: the same")
	}
	gone := &Source{FS: fstest.MapFS{"config.json": {Mode: fs.ModeSymlink, Data: []byte("nowhere")}}}
	if _, err := gone.fingerprint(); err == nil {
		t.Error("a link to nowhere has a fingerprint")
	}
}
