package convert

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"hearth/internal/quant"
	"hearth/internal/regular"
	"hearth/internal/safetensors"
)

// mostShard is how large a file of weights gets, unless one module is larger. A variable for tests.
var mostShard int64 = 5 << 30

// folder is one that is being written beside the name it is to have.
type folder struct {
	name, temp string
	done       bool
}

// create makes a folder beside dst, which must be free to take.
func create(dst string) (*folder, error) {
	dst, err := filepath.Abs(dst)
	if err != nil {
		return nil, err
	}
	switch entries, err := os.ReadDir(dst); {
	case err == nil && len(entries) > 0:
		return nil, fmt.Errorf("the folder %s is not empty: choose another one or remove it first", dst)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	temp, err := os.MkdirTemp(filepath.Dir(dst), "."+filepath.Base(dst)+".partial-")
	if err != nil {
		return nil, err
	}
	return &folder{name: dst, temp: temp}, nil
}

// abandon removes what was written unless it was committed.
func (f *folder) abandon() {
	if !f.done {
		_ = os.RemoveAll(f.temp) // what remains has a name that says so
	}
}

// commit gives the folder its name once it is on the disk.
func (f *folder) commit() error {
	if err := os.Chmod(f.temp, 0o755); err != nil {
		return err
	}
	if err := syncFolder(f.temp); err != nil {
		return err
	}
	// An empty folder of that name goes; one that got files in the meantime stays.
	if err := os.Remove(f.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(f.temp, f.name); err != nil {
		return err
	}
	f.done = true
	return syncFolder(filepath.Dir(f.name))
}

// syncFolder makes the names in a folder last, where the system can do that.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// file writes one file of the folder, onto the disk.
func (f *folder) file(name string, write func(w io.Writer) error) error {
	o, err := f.open(name)
	if err != nil {
		return err
	}
	return o.close(write(o))
}

// output is a file that is being written.
type output struct {
	*bufio.Writer
	file *os.File
}

// open starts a file of the folder.
func (f *folder) open(name string) (*output, error) {
	to := filepath.Join(f.temp, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return nil, err
	}
	h, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return &output{bufio.NewWriterSize(h, 1<<20), h}, nil
}

// close ends the file, on the disk unless writing it failed with err.
func (o *output) close(err error) error {
	if err == nil {
		err = o.Flush()
	}
	if err == nil {
		err = o.file.Sync()
	}
	return errors.Join(err, o.file.Close())
}

// shardName is what file i of n is called.
func shardName(i, n int) string {
	if n == 1 {
		return "model.safetensors"
	}
	return fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, n)
}

// index is model.safetensors.index.json: which file has which tensor.
type index struct {
	Meta struct {
		Bytes      int64 `json:"total_size"`
		Parameters int64 `json:"total_parameters"`
	} `json:"metadata"`
	Files map[string]string `json:"weight_map"`
}

// write fills the folder: weights, their index, the config, and what else the source has.
func (p *conversion) write(ctx context.Context, to *folder, src fs.FS, progress func(done, total int64)) error {
	var done, total int64
	for i := range p.units {
		total += p.units[i].size()
	}
	tell := func(n int) {
		done += int64(n)
		if progress != nil {
			progress(done, total)
		}
	}
	shards := p.shards()
	ix := index{Files: map[string]string{}}
	ix.Meta.Bytes, ix.Meta.Parameters = p.report.Bytes, p.report.Parameters
	for i, units := range shards {
		name := shardName(i, len(shards))
		var tensors []safetensors.Tensor
		for _, u := range units {
			tensors = append(tensors, u.tensors...)
		}
		for _, t := range tensors {
			ix.Files[t.Name] = name
		}
		err := to.file(name, func(w io.Writer) error {
			f, err := safetensors.NewWriter(w, tensors, map[string]string{"format": "mlx"})
			if err != nil {
				return err
			}
			for i := range units {
				if err := units[i].write(ctx, f, tell); err != nil {
					return err
				}
				for _, t := range units[i].stored {
					p.release(t.Name)
				}
			}
			return f.Close()
		})
		if err != nil {
			return err
		}
	}
	if err := to.json(map[string]any{"model.safetensors.index.json": ix, "config.json": p.newConfig()}); err != nil {
		return err
	}
	return copyRest(ctx, to, src)
}

// shards cuts the units into files.
func (p *conversion) shards() [][]unit {
	var shards [][]unit
	var size int64
	for _, u := range p.units {
		var n int64
		for i := range u.tensors {
			k, _ := u.tensors[i].Size() // the writer says what is wrong with it
			n += int64(k)
		}
		if len(shards) == 0 || size+n > mostShard {
			shards, size = append(shards, nil), 0
		}
		shards[len(shards)-1] = append(shards[len(shards)-1], u)
		size += n
		p.report.Bytes += n
	}
	return shards
}

// json writes files by their names. Keys are in order, for people who read them.
func (f *folder) json(files map[string]any) error {
	for name, v := range files {
		err := f.file(name, func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetEscapeHTML(false)
			e.SetIndent("", "    ")
			return e.Encode(v)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// schemeJSON is an entry of config.json.
type schemeJSON struct {
	Group int        `json:"group_size"`
	Bits  int        `json:"bits"`
	Mode  quant.Mode `json:"mode,omitempty"`
}

// newConfig is the source's with what was done, said twice, as mlx-lm does it for Hugging Face's sake, and with both names of
// keys that have two.
func (p *conversion) newConfig() map[string]any {
	s := p.options.Scheme
	q := map[string]any{"group_size": s.Group, "bits": s.Bits, "mode": s.Mode}
	for module, r := range p.rules {
		e := schemeJSON{Group: r.scheme.Group, Bits: r.scheme.Bits}
		if p.options.Recipe != "" {
			e.Mode = r.scheme.Mode
		}
		q[module] = e
	}
	c := map[string]any{}
	for k, v := range p.spelled {
		c[k] = v
	}
	c["model_type"] = p.modelType // mlx-lm knows one spelling
	delete(c, "_name_or_path")
	delete(c, "vision_config") // the language model alone is written
	c["quantization"], c["quantization_config"] = q, q
	return c
}

// weightNames are the ends of names of files that hold weights, in whatever form.
var weightNames = []string{".safetensors", ".safetensors.index.json", ".bin", ".bin.index.json", ".pth", ".pt", ".gguf", ".h5", ".msgpack", ".onnx", ".npz"}

// maxRest bounds a file that is copied: what is larger is no tokenizer and no config.
const maxRest = 16 << 30

// copyRest copies what is beside the weights: tokenizer, template, generation config and the like.
func copyRest(ctx context.Context, to *folder, src fs.FS) error {
	return fs.WalkDir(src, ".", func(name string, e fs.DirEntry, err error) error {
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		base := path.Base(name)
		switch {
		case name == ".":
			return nil
		case strings.HasPrefix(base, "."):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case e.IsDir() || linked(src, name) || name == "config.json" || slices.ContainsFunc(weightNames, func(end string) bool { return strings.HasSuffix(strings.ToLower(base), end) }):
			return nil
		}
		f, size, err := regular.OpenFS(src, name, maxRest)
		if err != nil {
			return err
		}
		defer f.Close()
		return to.file(name, func(w io.Writer) error {
			_, err := io.CopyN(w, f, size)
			return err
		})
	})
}

// linked reports a link to a folder, which is not followed.
func linked(src fs.FS, name string) bool {
	st, err := fs.Stat(src, name)
	return err == nil && st.IsDir()
}
