//go:build linux

package hostile

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ran is what a command came to.
type ran struct {
	code   int
	cut    string // why it was ended; "": by itself
	cpu    time.Duration
	peak   int64
	stderr string
}

const (
	ready     = "ready"
	runLimit  = 30 * time.Second
	runMemory = 2 << 30
)

// run has a command go on until it ends, takes too long or too much memory, or is a server that is ready.
func run(cmd *exec.Cmd) (out ran) {
	said, log := &tail{}, &tail{}
	cmd.Stdout, cmd.Stderr = said, log
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return ran{code: -1, cut: err.Error()}
	}
	ended := make(chan struct{})
	var cut string
	end := func(why string, sig os.Signal) {
		if cut == "" {
			cut = why
			_ = cmd.Process.Signal(sig)
		}
	}
	s := server{cmd: cmd}
	var peak int64 // getrusage's is that of this process, where it is larger
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for tick, began := time.NewTicker(5*time.Millisecond), time.Now(); ; { // a clock, since what waits uses no processor time
			select {
			case <-ended:
				return
			case <-tick.C:
			}
			peak = max(peak, s.memory("VmHWM"))
			switch {
			case strings.Contains(said.String(), "\nready in "):
				end(ready, syscall.SIGTERM)
			case time.Since(began) > min(runLimit, *limit):
				end(fmt.Sprintf("still running after %v", min(runLimit, *limit)), os.Kill)
			case peak > runMemory:
				end(fmt.Sprintf("takes more than %d MB", runMemory>>20), os.Kill)
			}
		}
	}()
	_ = cmd.Wait() // the code says it
	close(ended)
	<-watched
	return ran{code: cmd.ProcessState.ExitCode(), cut: cut, cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), peak: peak, stderr: log.String()}
}

// longestError is what an error of a command may take at most, in bytes: a line of what it complains about, and where that is.
const longestError = 1500

// refuses tells what is wrong with a command that should have ended with an error that names the file. One that need not be read
// may also be passed over.
func (r *ran) refuses(file string, need bool) error {
	switch fine := r.code == 0 || r.cut == ready; {
	case r.cut != "" && r.cut != ready:
		return errors.New(r.cut)
	case fine && need:
		return fmt.Errorf("%s was taken", file)
	case fine:
		return nil
	case !strings.Contains(r.stderr, filepath.Base(file)):
		return fmt.Errorf("the error does not name %s: %.300q", file, r.stderr)
	case len(r.stderr) > longestError:
		return fmt.Errorf("an error of %d bytes: %.300q", len(r.stderr), r.stderr)
	}
	return nil
}

// odd puts something that is no regular file at path.
var odd = []struct {
	name string
	put  func(path string) error
}{
	{"a link to an endless file", func(p string) error { return os.Symlink("/dev/zero", p) }},
	{"a FIFO", func(p string) error { return syscall.Mkfifo(p, 0o600) }},
	{"a link to a FIFO", func(p string) error {
		if err := syscall.Mkfifo(p+".fifo", 0o600); err != nil {
			return err
		}
		return os.Symlink(filepath.Base(p)+".fifo", p)
	}},
	{"a folder", func(p string) error { return os.Mkdir(p, 0o700) }},
	{"a link to itself", func(p string) error { return os.Symlink(filepath.Base(p), p) }},
	{"a file of 1 TB without content", func(p string) error {
		f, err := os.Create(p)
		if err == nil {
			err = errors.Join(f.Truncate(1<<40), f.Close())
		}
		return err
	}},
}

// TestFiles: whatever stands in a file's place, the program ends with an error that names it.
func TestFiles(t *testing.T) {
	skipUnlessAsked(t)
	record("\n| in place of a file | seen | |\n|---|---|---|")
	type place struct {
		file    string
		without []string // files that would be read in its place
		need    bool
	}
	places := []place{
		{file: "config.json", need: true}, {file: "tokenizer.json", need: true}, {file: weightsFile, need: true}, {file: "chat_template.jinja", need: true},
		{file: "tokenizer_config.json", need: true}, {file: "generation_config.json", need: true},
		{file: "chat_template.json", without: []string{"chat_template.jinja"}, need: true},
		{file: "tokenizer.model", without: []string{"tokenizer.json"}, need: true}, {file: "tiktoken.model", without: []string{"tokenizer.json"}, need: true},
		{file: "model.safetensors.index.json", without: []string{weightsFile}, need: true},
		{file: "special_tokens_map.json"}, {file: "added_tokens.json"}, {file: "hf_quant_config.json"}, {file: "model-00001-of-00002.safetensors"},
		{file: "vocab.json", without: []string{"tokenizer.json"}}, {file: "merges.txt"}, {file: "modules.json"}, {file: "sentence_bert_config.json"}, {file: "notes.txt"},
	}
	for _, p := range places {
		for _, o := range odd {
			t.Run(p.file+"/"+o.name, func(t *testing.T) {
				folder := copyDemo(t)
				for _, name := range append(p.without, p.file) {
					_ = os.Remove(filepath.Join(folder, name)) // it may be missing
				}
				if err := o.put(filepath.Join(folder, p.file)); err != nil {
					t.Fatal(err)
				}
				var seen []string
				var faults []error
				for _, args := range [][]string{{"show", folder}, {"serve", "--port", "0", "--prefix-cache-dir", "off", folder}} {
					r := run(command(t.TempDir(), args...))
					if err := r.refuses(p.file, p.need); err != nil {
						faults = append(faults, fmt.Errorf("%s: %w", args[0], err))
					}
					seen = append(seen, fmt.Sprintf("%s: %s, %s, %d MB", args[0], r.ending(), show(r.cpu), r.peak>>20))
				}
				outcome(t, p.file+": "+o.name, strings.Join(seen, "; "), faults...)
			})
		}
	}
	for _, flag := range []string{"--config", "--api-key-file", "--mcp-config", "--script", "--adapter-path"} {
		for _, o := range odd {
			t.Run(flag+"/"+o.name, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "given")
				if err := o.put(path); err != nil {
					t.Fatal(err)
				}
				r := run(command(t.TempDir(), "serve", "--port", "0", "--prefix-cache-dir", "off", flag, path))
				outcome(t, flag+": "+o.name, fmt.Sprintf("%s, %s, %d MB", r.ending(), show(r.cpu), r.peak>>20), r.refuses(path, true))
			})
		}
	}
	for _, file := range []string{"adapter_config.json", "adapters.safetensors", "refs/main"} {
		for _, o := range odd {
			t.Run(file+"/"+o.name, func(t *testing.T) {
				dir := t.TempDir()
				args := []string{"serve", "--port", "0", "--prefix-cache-dir", "off", "--adapter-path", dir}
				path := filepath.Join(dir, file)
				if file == "refs/main" {
					path = filepath.Join(dir, "models--a--b", file)
					args = []string{"serve", "--port", "0", "--prefix-cache-dir", "off", "--hf-hub-cache", dir, "a/b"}
				}
				err := os.MkdirAll(filepath.Dir(path), 0o700)
				if err == nil && file == "adapters.safetensors" {
					err = os.WriteFile(filepath.Join(dir, "adapter_config.json"), []byte(`{"fine_tune_type": "lora", "num_layers": 1, "lora_parameters": {"rank": 8, "scale": 1.0, "dropout": 0.0}}`), 0o600)
				}
				if err == nil {
					err = o.put(path)
				}
				if err != nil {
					t.Fatal(err)
				}
				r := run(command(t.TempDir(), args...))
				name := file
				if file == "refs/main" && !strings.Contains(r.stderr, "main") { // a model that is not there is named by its id
					name = "a/b"
				}
				outcome(t, file+": "+o.name, fmt.Sprintf("%s, %s, %d MB", r.ending(), show(r.cpu), r.peak>>20), r.refuses(name, true))
			})
		}
	}
}

func (r *ran) ending() string {
	switch {
	case r.cut != "":
		return r.cut
	case r.code == 0:
		return "accepted"
	}
	return "an error"
}

// TestCosts: what is read from a folder takes time and memory in proportion to its size.
func TestCosts(t *testing.T) {
	skipUnlessAsked(t)
	record("\n| folder | n | CPU at n | at 2n | growth | memory at n | at 2n | seen | |\n|---|---|---|---|---|---|---|---|---|")
	tokenize := func(edit func(f map[string]any, n int), text func(n int) string) func(t *testing.T, n int) *exec.Cmd {
		return func(t *testing.T, n int) *exec.Cmd {
			f := readJSON(t, filepath.Join(demoFolder, "tokenizer.json"))
			edit(f, n)
			file := filepath.Join(t.TempDir(), "tokenizer.json")
			writeJSON(t, file, f)
			cmd := command(t.TempDir(), "debug", "tokenize", "--tokenizer", file)
			cmd.Stdin = strings.NewReader(quote(text(n)) + "\n")
			return cmd
		}
	}
	hi := func(int) string { return "Hello" }
	added := func(prefix string) func(f map[string]any, n int) {
		return func(f map[string]any, n int) {
			list := f["added_tokens"].([]any)
			for i := range n {
				list = append(list, map[string]any{"id": 6000 + i, "content": fmt.Sprintf("%s%d>", prefix, i), "single_word": false, "lstrip": false, "rstrip": false, "normalized": i%2 == 0, "special": true})
			}
			f["added_tokens"] = list
		}
	}
	file := func(name string, content func(n int) string) func(t *testing.T, n int) *exec.Cmd {
		return func(t *testing.T, n int) *exec.Cmd {
			folder := copyDemo(t)
			if err := os.WriteFile(filepath.Join(folder, name), []byte(content(n)), 0o600); err != nil {
				t.Fatal(err)
			}
			return command(t.TempDir(), "show", folder)
		}
	}
	config := func(field func(n int) string) func(t *testing.T, n int) *exec.Cmd {
		raw, err := os.ReadFile(filepath.Join(demoFolder, "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		return file("config.json", func(n int) string { return strings.Replace(string(raw), "{", "{"+field(n)+",", 1) })
	}
	weights := func(header func(n int) string) func(t *testing.T, n int) *exec.Cmd {
		return func(t *testing.T, n int) *exec.Cmd {
			folder := copyDemo(t)
			text := header(n)
			raw := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
			if err := errors.Join(os.Remove(filepath.Join(folder, weightsFile)), os.WriteFile(filepath.Join(folder, weightsFile), raw, 0o600)); err != nil {
				t.Fatal(err)
			}
			return command(t.TempDir(), "show", folder)
		}
	}
	for _, c := range []struct {
		name string
		n    int
		cmd  func(t *testing.T, n int) *exec.Cmd
	}{
		{"added tokens", 80_000, tokenize(added("<added"), hi)},
		{"added tokens with long beginnings in common", 20_000, tokenize(added("<"+strings.Repeat("a", 300)), hi)},
		{"added tokens, and a text of them", 40_000, tokenize(added("<added"), func(n int) string { return strings.Repeat("<added7><added", 20_000) })},
		{"added tokens that nearly occur at every byte", 500, tokenize(func(f map[string]any, n int) { added(strings.Repeat("a", 4000))(f, 10) }, func(n int) string { return strings.Repeat("a", 10*n) })},
		{"added tokens in a model's folder", 80_000, func(t *testing.T, n int) *exec.Cmd {
			folder := copyDemo(t)
			f := readJSON(t, filepath.Join(folder, "tokenizer.json"))
			added("<added")(f, n)
			writeJSON(t, filepath.Join(folder, "tokenizer.json"), f)
			return command(t.TempDir(), "show", folder)
		}},
		{"added tokens of a model that is served", 80_000, func(t *testing.T, n int) *exec.Cmd {
			folder := copyDemo(t)
			f := readJSON(t, filepath.Join(folder, "tokenizer.json"))
			added("<added")(f, n)
			writeJSON(t, filepath.Join(folder, "tokenizer.json"), f)
			return command(t.TempDir(), "serve", "--port", "0", "--prefix-cache-dir", "off", "--script", script(t, map[string]any{"raw": "Hi"})[1], folder)
		}},
		{"added tokens in tokenizer_config.json", 80_000, file("tokenizer_config.json", func(n int) string {
			return `{"added_tokens_decoder": {` + strings.ReplaceAll(repeat(n, `"1%d": {"content": "<added%d>", "special": true}`), `"10"`, `"100"`) + `}}`
		})},
		{"added tokens in added_tokens.json", 80_000, file("added_tokens.json", func(n int) string { return `{` + repeat(n, `"<added%d>": 1%d`) + `}` })},
		{"vocabulary", 400_000, tokenize(func(f map[string]any, n int) {
			v := f["model"].(map[string]any)["vocab"].(map[string]any)
			for i := range n {
				v[fmt.Sprintf("word%d", i)] = 10_000 + i
			}
		}, hi)},
		{"merges", 200_000, tokenize(func(f map[string]any, n int) {
			m := f["model"].(map[string]any)
			v, list := m["vocab"].(map[string]any), m["merges"].([]any)
			for i := range n {
				v[fmt.Sprintf("h%d", i)] = 10_000 + i
				list = append(list, []any{"h", fmt.Sprintf("h%d", i)})
			}
			m["merges"] = list
		}, hi)},
		{"normalizers", 20_000, tokenize(func(f map[string]any, n int) {
			f["normalizer"] = map[string]any{"type": "Sequence", "normalizers": slices.Repeat([]any{map[string]any{"type": "Lowercase"}}, n)}
		}, hi)},
		{"normalizers that make it longer", 10, tokenize(func(f map[string]any, n int) {
			f["normalizer"] = map[string]any{"type": "Sequence", "normalizers": slices.Repeat([]any{map[string]any{"type": "Replace", "pattern": map[string]any{"String": "a"}, "content": "aaaaaaaa"}}, n)}
		}, func(int) string { return "a" })},
		{"pre-tokenizer with a pattern that tries all ways", 1000, tokenize(func(f map[string]any, n int) {
			f["pre_tokenizer"] = map[string]any{"type": "Split", "pattern": map[string]any{"Regex": "(a+)+(?=b)(?!c)"}, "behavior": "Isolated", "invert": false}
		}, func(n int) string { return strings.Repeat("a", n) })},
		{"pre-tokenizers in each other", 20_000, func(t *testing.T, n int) *exec.Cmd {
			file := filepath.Join(t.TempDir(), "tokenizer.json")
			text := `{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "pre_tokenizer": ` + strings.Repeat(`{"type": "Sequence", "pretokenizers": [`, n) + `{"type": "Digits"}` + strings.Repeat("]}", n) + "}"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := command(t.TempDir(), "debug", "tokenize", "--tokenizer", file)
			cmd.Stdin = strings.NewReader("\"a\"\n")
			return cmd
		}},
		{"index of shards", 100_000, func(t *testing.T, n int) *exec.Cmd {
			cmd := file("model.safetensors.index.json", func(n int) string { return `{"weight_map": {` + repeat(n, `"w%d": "model-%d.safetensors"`) + `}}` })(t, n)
			if err := os.Remove(filepath.Join(cmd.Args[len(cmd.Args)-1], weightsFile)); err != nil {
				t.Fatal(err)
			}
			return cmd
		}},
		{"index of tensors in one shard", 200_000, file("model.safetensors.index.json", func(n int) string {
			return `{"weight_map": {` + repeat(n, `"w%d": "model.safetensors"`) + `}}`
		})},
		{"tensors in a file", 100_000, weights(func(n int) string {
			return `{` + repeat(n, `"w%d": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}`) + `}`
		})},
		{"dimensions of a tensor", 500_000, weights(func(n int) string {
			return `{"w": {"dtype": "F32", "shape": ` + list(n, "1") + `, "data_offsets": [0, 4]}}`
		})},
		{"nested lists in config.json", 100_000, config(func(n int) string { return `"a": ` + strings.Repeat("[", n) + strings.Repeat("]", n) })},
		{"a long text in config.json", 4 << 20, config(func(n int) string {
			return `"model_type": "` + strings.Repeat("a", n) + `", "x": "` + strings.Repeat("b", n) + `"`
		})},
		{"many fields in config.json", 200_000, config(func(n int) string { return repeat(n, `"a%d": 1`) })},
		{"many patterns of quantisation", 50_000, config(func(n int) string {
			return `"quantization": {"group_size": 64, "bits": 8, ` + repeat(n, `"model.layers.%d.x": {"group_size": 64, "bits": 4}`) + `}`
		})},
		{"generation_config.json with many ends", 200_000, file("generation_config.json", func(n int) string { return `{"eos_token_id": ` + list(n, "%d") + `}` })},
		{"tokenizer_config.json with a long wrong value", 4 << 20, file("tokenizer_config.json", func(n int) string { return `{"added_tokens_decoder": {"` + strings.Repeat("x", n) + `": {}}}` })},
		{"chat template of text", 4 << 20, file("chat_template.jinja", func(n int) string { return strings.Repeat("a", n) + "{{ messages[0].content }}" })},
		{"chat template of one long line with a fault", 1 << 20, file("chat_template.jinja", func(n int) string { return "{{ " + strings.Repeat("a", n) + " b c }}" })},
		{"chat template of brackets", 100_000, file("chat_template.jinja", func(n int) string { return "{{ " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n) + " }}" })},
		{"chat template of conditions in each other", 20_000, file("chat_template.jinja", func(n int) string {
			return strings.Repeat("{% if 1 %}", n) + "{{ messages[0].content }}" + strings.Repeat("{% endif %}", n)
		})},
		{"chat template of many conditions", 100_000, file("chat_template.jinja", func(n int) string { return strings.Repeat("{% if a %}{% endif %}", n) + "{{ messages[0].content }}" })},
		{"chat template that runs on", 1, file("chat_template.jinja", func(n int) string {
			return "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}{{ messages[0].content }}"
		})},
		{"chat template that is never done with its trial", 100, file("chat_template.jinja", func(n int) string {
			return "{% set ns = namespace(s='a') %}{% for a in range(" + fmt.Sprint(n) + ") %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ messages[0].content }}"
		})},
	} {
		t.Run(c.name, func(t *testing.T) {
			at, twice := run(c.cmd(t, c.n)), run(c.cmd(t, 2*c.n))
			var faults []error
			for _, r := range []ran{at, twice} {
				if r.cut != "" && r.cut != ready {
					faults = append(faults, errors.New(r.cut))
				}
				if r.code > 0 && (r.stderr == "" || len(r.stderr) > longestError) {
					faults = append(faults, fmt.Errorf("an error of %d bytes: %.300q", len(r.stderr), r.stderr))
				}
				if strings.Contains(r.stderr, "goroutine ") {
					faults = append(faults, fmt.Errorf("a crash: %.300q", r.stderr))
				}
			}
			if most := time.Duration(2*growth*float64(at.cpu)) + 2*floorCPU; twice.cpu > most {
				faults = append(faults, fmt.Errorf("%v of processor time at twice the size, %v before", twice.cpu, at.cpu))
			}
			// What has ended before it was looked at has no peak: it counts as one that takes next to nothing.
			if most := int64(2*growth*float64(max(at.peak, floorPeak/2))) + floorPeak; twice.peak > most {
				faults = append(faults, fmt.Errorf("%d MB at twice the size, %d before", twice.peak>>20, at.peak>>20))
			}
			verdict := "ok"
			if err := errors.Join(faults...); err != nil {
				verdict = "**failed**: " + strings.NewReplacer("|", "¦", "\n", "; ").Replace(err.Error())
				t.Error(err)
			}
			if twice.stderr != "" {
				t.Logf("%.300q", twice.stderr)
			}
			record("| %s | %d | %s | %s | %.1f | %d MB | %d MB | %s / %s | %s |", c.name, c.n, show(at.cpu), show(twice.cpu), float64(twice.cpu)/float64(at.cpu),
				at.peak>>20, twice.peak>>20, at.ending(), twice.ending(), verdict)
		})
	}
}

func readJSON(t *testing.T, file string) (v map[string]any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func writeJSON(t *testing.T, file string, v any) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(file, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestCacheFiles: what others put among the files of the prompt cache neither holds up a start nor a request.
func TestCacheFiles(t *testing.T) {
	skipUnlessAsked(t)
	record("\n| in place of a file of the prompt cache | seen | |\n|---|---|---|")
	long := openai.say(strings.Repeat("Tell me more of it. ", 300), "")
	for _, o := range odd {
		t.Run(o.name, func(t *testing.T) {
			dir := t.TempDir()
			round := func() error {
				s, err := serve(t.TempDir(), nil, "--prefix-cache-dir", dir)
				if err != nil {
					return err
				}
				if p := long.send(t.Context(), s.url); p.err != nil || p.code != 200 {
					err = fmt.Errorf("status %d, %w", p.code, p.err)
				}
				return errors.Join(err, s.stop(syscall.SIGTERM))
			}
			if err := round(); err != nil {
				t.Fatal(err)
			}
			files := 0
			err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() {
					return err
				}
				files++
				return errors.Join(os.Remove(path), o.put(path))
			})
			if err != nil || files == 0 {
				t.Fatalf("%d files, %v", files, err)
			}
			done := make(chan error, 1)
			go func() { done <- round() }()
			select {
			case err = <-done:
			case <-time.After(2 * startLimit):
				err = errors.New("no answer")
			}
			outcome(t, o.name, fmt.Sprintf("%d files", files), err)
		})
	}
}
