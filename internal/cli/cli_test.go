package cli

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"

	"hearth/internal/demo"
	"hearth/internal/quant"
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
			"floats": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(writeDemo(ts.MkAbs(args[0])))
				rewrite(ts, args[0], func(all []safetensors.Tensor) []safetensors.Tensor { return dequantised(ts, all) })
				file := filepath.Join(ts.MkAbs(args[0]), "config.json")
				var c map[string]any
				b, err := os.ReadFile(file)
				ts.Check(err)
				ts.Check(json.Unmarshal(b, &c))
				delete(c, "quantization")
				delete(c, "quantization_config")
				b, err = json.Marshal(c)
				ts.Check(err)
				ts.Check(os.WriteFile(file, b, 0o644))
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

// dequantised are the tensors of the demo in bfloat16.
func dequantised(ts *testscript.TestScript, all []safetensors.Tensor) (out []safetensors.Tensor) {
	byName := map[string]*quant.Data{}
	for _, x := range all {
		byName[x.Name] = &quant.Data{DType: quant.DType(x.DType), Shape: x.Shape, Bytes: x.Bytes}
	}
	for _, x := range all {
		module := strings.TrimSuffix(x.Name, ".weight")
		switch {
		case strings.HasSuffix(x.Name, ".scales"), strings.HasSuffix(x.Name, ".biases"):
			continue
		case byName[module+".scales"] != nil:
			s := quant.Scheme{Mode: quant.Affine, Bits: 8, Group: 64}
			rows, in := x.Shape[0], x.Shape[1]*4
			m, err := quant.NewMatrix(rows, in, s, byName[x.Name], byName[module+".scales"], byName[module+".biases"])
			ts.Check(err)
			row := make([]float32, in)
			x.DType, x.Shape, x.Bytes = "BF16", []int{rows, in}, make([]byte, 2*rows*in)
			for r := range rows {
				m.Row(row, r)
				quant.PutFloats(x.Bytes[2*r*in:], quant.BF16, row)
			}
		}
		out = append(out, x)
	}
	return out
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

// TestHelpFits: on a terminal no flag's help is wider than it; elsewhere each is a line.
func TestHelpFits(t *testing.T) {
	for _, name := range []string{"serve", "run", "config", "bench"} {
		for _, width := range []int{0, 80} {
			var out bytes.Buffer
			cmd := newRootCmd()
			if width > 0 {
				fitHelp(cmd, width)
			}
			cmd.SetOut(&out)
			cmd.SetArgs([]string{name, "--help"})
			if err := cmd.Execute(); err != nil {
				t.Fatal(err)
			}
			_, flags, _ := strings.Cut(out.String(), "\nFlags:\n")
			widest := 0
			for line := range strings.Lines(flags) {
				widest = max(widest, utf8.RuneCountInString(strings.TrimRight(line, " \n")))
			}
			if !strings.Contains(flags, "--help") || (widest > 80) != (width == 0) {
				t.Errorf("%s at width %d: a line of %d characters", name, width, widest)
			}
		}
	}
}
