package cli

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"hearth/internal/demo"
	"hearth/internal/safetensors"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"hearth": Main})
}

// TestScripts runs testdata/script. Besides the usual commands a script has
//
//	model DIR                      writes the demo model to DIR
//	drop DIR TENSOR, cut DIR       leaves a tensor out, cuts the weight file off
//	reshape DIR TENSOR             gives a tensor one row less
//	header DIR                     claims an absurd header length
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:      filepath.Join("testdata", "script"),
		Deadline: time.Now().Add(time.Minute),
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("XDG_RUNTIME_DIR", filepath.Join(e.WorkDir, "run"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"model": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(writeDemo(ts.MkAbs(args[0])))
			},
			"drop": func(ts *testscript.TestScript, _ bool, args []string) {
				rewrite(ts, args[0], func(all []safetensors.Tensor) []safetensors.Tensor {
					return slices.DeleteFunc(all, func(x safetensors.Tensor) bool { return x.Name == args[1] })
				})
			},
			"reshape": func(ts *testscript.TestScript, _ bool, args []string) {
				rewrite(ts, args[0], func(all []safetensors.Tensor) []safetensors.Tensor {
					for i := range all {
						if x := &all[i]; x.Name == args[1] {
							row := len(x.Bytes) / x.Shape[0]
							x.Shape = slices.Clone(x.Shape)
							x.Shape[0]--
							x.Bytes = x.Bytes[:len(x.Bytes)-row]
						}
					}
					return all
				})
			},
			"cut": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(os.Truncate(weightFile(ts, args[0]), 1<<20))
			},
			"header": func(ts *testscript.TestScript, _ bool, args []string) {
				b := binary.LittleEndian.AppendUint64(nil, 1<<62)
				ts.Check(os.WriteFile(weightFile(ts, args[0]), append(b, "{}"...), 0o644))
			},
		},
	})
}

// writeDemo writes the demo model to dir. Embedded files are read-only; tests change them.
func writeDemo(dir string) error {
	if err := os.CopyFS(dir, demo.FS()); err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o644)
	})
}

func weightFile(ts *testscript.TestScript, dir string) string {
	return filepath.Join(ts.MkAbs(dir), "model.safetensors")
}

// rewrite passes the tensors of a folder through edit.
func rewrite(ts *testscript.TestScript, dir string, edit func([]safetensors.Tensor) []safetensors.Tensor) {
	f, err := safetensors.Open(os.DirFS(ts.MkAbs(dir)), "model.safetensors")
	ts.Check(err)
	var b bytes.Buffer
	ts.Check(safetensors.Write(&b, edit(slices.Clone(f.Tensors)), f.Meta))
	ts.Check(f.Close())
	ts.Check(os.WriteFile(weightFile(ts, dir), b.Bytes(), 0o644))
}
