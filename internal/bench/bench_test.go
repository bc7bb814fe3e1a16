package bench

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
)

// bench runs the command and gives its output and its progress.
func runBench(t *testing.T, args ...string) (out, progress string) {
	t.Helper()
	var o, e bytes.Buffer
	cmd := NewCmd("dev", "unknown")
	cmd.SetArgs(args)
	cmd.SetOut(&o)
	cmd.SetErr(&e)
	if err := cmd.Execute(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return o.String(), e.String()
}

func TestBench(t *testing.T) {
	for _, args := range [][]string{
		{"--shape", "tiny", "--bits", "16", "--precision", "exact"},
		{"--shape", "tiny-experts", "--mode", "mxfp4"},
		{"--shape", "tiny-hybrid"},
	} {
		out, progress := runBench(t, append(args, "-p", "70", "-n", "2", "-d", "0,66", "-b", "1,3", "--threads", "2,1", "--reps", "1", "--probe-size", "2MiB", "--json")...)
		var r speedResult
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		want := speedFlags{prompts: []int{70}, tokens: []int{2}, depths: []int{0, 66}, batches: []int{1, 3}, workers: []int{2, 1}}
		tests := want.tests()
		if len(r.Results) != len(tests) || len(tests) != 12 {
			t.Fatalf("%v: %d results, want %d", args, len(r.Results), len(tests))
		}
		for i, got := range r.Results {
			if w := tests[i]; got.Test != w.Test || got.Depth != w.Depth || got.Batch != w.Batch || got.Threads != w.Threads {
				t.Errorf("%v: result %d is %s depth %d batch %d threads %d", args, i, got.Test, got.Depth, got.Batch, got.Threads)
			}
			if got.TPS <= 0 || got.Min > got.TPS || got.Max < got.TPS || got.Share < 0 {
				t.Errorf("%v: %+v", args, got)
			}
		}
		if r.Version == "" || r.Commit == "" || r.CPU == "" || r.Kernel == "" || r.Machine.Read <= 0 || r.Model.Bytes <= 0 || r.Model.Bits == 0 || r.Model.Shape != args[1] {
			t.Errorf("%v: %+v", args, r)
		}
		if !strings.Contains(progress, "repetition 1 of 1: pp70 depth 0") || !strings.Contains(progress, "before and") {
			t.Errorf("progress: %s", progress)
		}
	}
}

func TestBenchJSONKeys(t *testing.T) {
	out, _ := runBench(t, "--shape", "tiny", "-p", "0", "-n", "1", "--reps", "1", "--probe-size", "2MiB", "--json")
	var r map[string]any
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{
		"":        "commit cpu kernel machine model results version",
		"machine": "bf16_gflops int8_gops read_gbps",
		"model":   "attention bits bytes precision shape",
		"results": "batch depth limit_pct step_ms test threads tps tps_limit tps_max tps_min",
	} {
		of := r
		switch v := r[at].(type) {
		case map[string]any:
			of = v
		case []any:
			of = v[0].(map[string]any)
		}
		var keys []string
		for k := range of {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		if got := strings.Join(keys, " "); got != want {
			t.Errorf("%q has keys %s, want %s", at, got, want)
		}
	}
}

// TestBenchPrecision: what is measured is what serve would run, unless something else is asked for.
func TestBenchPrecision(t *testing.T) {
	large := []string{"--shape", "qwen3-0.6b", "--layers", "1"} // 90 MB with its table
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--shape", "tiny"}, "float32"}, {[]string{"--shape", "tiny", "--precision", "fast"}, "fast"}, {large, "outliers"},
		{append([]string{"embed", "--bits", "4"}, large...), "exact"}, {[]string{"embed", "--shape", "tiny", "--bits", "4"}, "float32"},
	} {
		args := append(tt.args, "-p", "1", "-n", "0", "--reps", "1", "--probe-size", "2MiB")
		if tt.args[0] == "embed" {
			args = append(tt.args, "--texts", "1", "--longest", "8", "--repeats", "1")
		}
		if out, _ := runBench(t, args...); !strings.Contains(strings.SplitN(out, "\n", 2)[0], ", "+tt.want) {
			t.Errorf("%v: %s", args, out)
		}
	}
}

func TestBenchFolder(t *testing.T) {
	dir := t.TempDir()
	runBench(t, "folder", dir, "--shape", "tiny")
	out, progress := runBench(t, dir, "-p", "5", "-n", "1", "--reps", "1", "--threads", "1", "--probe-size", "2MiB")
	if !strings.Contains(out, "float32") || !strings.Contains(out, "pp5 ") || !strings.Contains(out, "tg1 ") || !strings.Contains(out, "of limit") {
		t.Errorf("table: %s", out)
	}
	if !strings.Contains(progress, "loaded qwen3") {
		t.Errorf("progress: %s", progress)
	}
}

func TestBenchFlags(t *testing.T) {
	for _, args := range [][]string{
		{"--shape", "giant"}, {"--bits", "7"}, {"--group", "48"}, {"--mode", "best"}, {"--precision", "best"}, {"-p", "-1"}, {"-n", "x"}, {"-d", "-4"},
		{"-b", "0"}, {"--threads", "0"}, {"--reps", "0"}, {"--probe-size", "1"}, {"-p", "0", "-n", "0"}, {"--kv-type", "q2"}, {"no/such/folder"}, {"a", "b"},
	} {
		cmd := NewCmd("dev", "unknown")
		cmd.SetArgs(args)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.Execute(); err == nil {
			t.Errorf("%v ran", args)
		}
	}
}

// TestAttentionLimit: attention is held to what kernels could do with its keys, whether they do or not.
func TestAttentionLimit(t *testing.T) {
	all := limits{Read: 1, Int8: 4, Float: 1, Half: 2}
	bf16 := backend.KVPolicy{DType: backend.BF16}
	for _, tt := range []struct {
		policy    backend.KVPolicy
		precision string
		machine   limits
		want      multiplications
	}{
		{bf16, "fast", all, inHalf}, {bf16, "outliers", all, inHalf}, {bf16, "exact", all, inFloat}, {bf16, "fast", limits{Int8: 4, Float: 1}, inFloat},
		{bf16, "fast", limits{Int8: 4, Float: 2, Half: 1}, inFloat},
		{backend.KVPolicy{DType: backend.I16}, "fast", limits{Int8: 4, Float: 1}, inInt16}, {backend.KVPolicy{Bits: 8}, "outliers", all, inInt8}, {backend.KVPolicy{Bits: 8}, "float32", all, inFloat},
		{backend.KVPolicy{DType: backend.F16}, "fast", all, inFloat}, {backend.KVPolicy{DType: backend.F32}, "fast", all, inFloat},
	} {
		if got := attending(tt.policy, tt.precision, tt.machine); got != tt.want {
			t.Errorf("%v, %s on %+v: %s, want %s", tt.policy, tt.precision, tt.machine, got, tt.want)
		}
	}
	w := cpu.Work{Attend: 8}
	more := limits{Read: 1, Int8: 16, Float: 1, Half: 2}
	if f, h, n, i := all.seconds(w, 0, inFloat), all.seconds(w, 0, inHalf), more.seconds(w, 0, inInt16), all.seconds(w, 0, inInt8); f != 8 || h != 4 || n != 1 || i != 2 {
		t.Errorf("eight operations take %g, %g, %g and %g seconds", f, h, n, i)
	}
}
