package catalog

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/hub"
	"hearth/internal/model"
)

// counted counts what is opened of a folder.
type counted struct {
	fs.FS
	n *atomic.Int64
}

func (c counted) Open(name string) (fs.File, error) {
	c.n.Add(1)
	return c.FS.Open(name)
}

// Stat opens nothing.
func (c counted) Stat(name string) (fs.FileInfo, error) { return fs.Stat(c.FS, name) }

// A list says of models that were never loaded what it says of them when they are, and reads no folder twice that has not
// changed.
func TestGlance(t *testing.T) {
	disk := copied(t, "talks", "base")
	for _, f := range disk {
		positions(t, f.Path, "8192", "2048") // for which there is memory
	}
	base := disk[1].Path
	for name, text := range map[string]string{"tokenizer_config.json": `{"eos_token": "<|im_end|>"}`, "chat_template.jinja": ""} {
		err := os.Remove(filepath.Join(base, name))
		if text != "" && err == nil {
			err = os.WriteFile(filepath.Join(base, name), []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	disk = append(disk, Found{Source: encoderSource(t, "reads", false), Kind: chat.Embeds}, Found{Source: encoderSource(t, "judges", true), Kind: chat.Ranks})
	var opened atomic.Int64
	for i := range disk {
		disk[i].FS = counted{disk[i].FS, &opened}
	}
	c, forward := demands(t, disk, 4, 0)
	type does struct {
		kind            chat.ModelKind
		context, output int
		tools, thinks   bool
	}
	list := func() map[string]does {
		all := map[string]does{}
		for _, m := range c.List(context.Background()) {
			all[m.ID] = does{m.Kind, m.Context, m.Output, m.Tools, m.Thinking}
		}
		return all
	}
	asleep := list()
	if opened.Load() == 0 || asleep["talks"].context == 0 || !asleep["talks"].tools || asleep["base"].kind != chat.Completes {
		t.Errorf("%d files, %+v", opened.Load(), asleep)
	}
	before := opened.Load()
	list()
	forward(2 * listAge)
	list()
	if n := opened.Load() - before; n != 0 {
		t.Errorf("%d files of folders that have not changed", n)
	}
	for _, f := range disk {
		if err := c.LoadModel(t.Context(), f.ID); err != nil {
			t.Fatal(err)
		}
	}
	for id, awake := range list() {
		if id != c.ID() && awake != asleep[id] {
			t.Errorf("%s: %+v, loaded %+v", id, asleep[id], awake)
		}
	}
	// What is changed while it is not loaded counts.
	for _, f := range disk {
		if err := c.UnloadModel(t.Context(), f.ID); err != nil {
			t.Fatal(err)
		}
		until(t, f.ID+" goes", func() bool { return row(t, c, f.ID).State == "on_disk" })
	}
	positions(t, base, "2048", "1024")
	until(t, "another context is seen", func() bool {
		forward(2 * listAge)
		return list()["base"].context == 1024
	})
	if now := list()["talks"]; now != asleep["talks"] {
		t.Errorf("%+v, before %+v", now, asleep)
	}
}

// positions changes how many positions the model in a folder has.
func positions(t *testing.T, dir, from, to string) {
	t.Helper()
	file := filepath.Join(dir, "config.json")
	text, err := os.ReadFile(file)
	if err == nil {
		const key = `"max_position_embeddings": `
		err = os.WriteFile(file, bytes.Replace(text, []byte(key+from), []byte(key+to), 1), 0o600)
	}
	if err = errors.Join(err, os.Chtimes(file, time.Time{}, time.Now().Add(-time.Hour))); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkGlance looks into folders for the first time.
func BenchmarkGlance(b *testing.B) {
	src, err := Find("", hub.Cache{})
	if err != nil {
		b.Fatal(err)
	}
	e := newEntry(OnDemand, src, config.Default(), model.Generates)
	for b.Loop() {
		var m chat.Model
		if e.describe(&m); m.Context == 0 || !m.Tools {
			b.Fatalf("%+v", m)
		}
	}
}
