//go:build darwin || linux

package mlx_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	B "hearth/internal/backend"
	"hearth/internal/backend/mlx"
	"hearth/internal/backend/mlx/testshim"
	"hearth/internal/config"
	"hearth/internal/golden"
	"hearth/internal/model"
	"hearth/internal/quant"
)

// wide is a config whose heads and widths divide by two, with quantised matrices.
const wide = `{"model_type":"qwen3","hidden_size":64,"num_hidden_layers":2,"intermediate_size":128,"num_attention_heads":4,
"num_key_value_heads":2,"head_dim":32,"rms_norm_eps":1e-6,"vocab_size":97,"rope_theta":10000,"max_position_embeddings":4096,
"tie_word_embeddings":true%s}`

func shared() map[string]string {
	return map[string]string{
		"float": fmt.Sprintf(wide, ""),
		"4 bit": fmt.Sprintf(wide, `,"quantization":{"group_size":32,"bits":4}`),
	}
}

// answer is the logits of a prompt and of tokens after it.
func answer(t *testing.T, be B.Backend, config string) (all []float32) {
	t.Helper()
	m, err := model.Synthetic{Config: []byte(config), Seed: 5, Type: quant.F32}.Load(be, B.Options{Precision: B.Float32})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := golden.NewSequence(t, be, m, 40)
	all = append(all, s.Step([]int32{1, 2, 3, 4, 5, 6, 7}, 5, 6)...)
	for i := range int32(5) {
		all = append(all, s.Step([]int32{i * 11}, 0)...)
	}
	return all
}

// TestRank is what every rank runs, in a process of its own.
func TestRank(t *testing.T) {
	out, ok := config.Environ("HEARTH_TEST_RANKS")
	if !ok {
		t.Skip("a part of TestRing")
	}
	var job struct {
		Library, Out string
		Rank, World  int
	}
	if err := json.Unmarshal([]byte(out), &job); err != nil {
		t.Fatal(err)
	}
	be, err := mlx.Open(mlx.Config{Path: job.Library, Device: "cpu", Link: testshim.Link, Rank: job.Rank, World: job.World})
	if err != nil {
		t.Fatal(err)
	}
	if c := be.Caps(); c.World != job.World || c.Rank != job.Rank {
		t.Errorf("%+v", c)
	}
	got := map[string][]float32{}
	for _, name := range []string{"float", "4 bit"} { // in the same order everywhere
		got[name] = answer(t, be, shared()[name])
	}
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(job.Out, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := be.Close(); err != nil {
		t.Error(err)
	}
}

// TestRing: two processes with half of a model's heads and widths each give what one gives with all of them.
func TestRing(t *testing.T) {
	library := testshim.Library(t, testshim.Newest)
	const world = 2
	var hosts [][]string
	for range world {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, []string{l.Addr().String()})
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	list, err := json.Marshal(hosts)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "hosts.json")
	if err := os.WriteFile(file, list, 0o600); err != nil {
		t.Fatal(err)
	}
	out := func(rank int) string { return filepath.Join(dir, fmt.Sprintf("rank%d.json", rank)) }
	failed := make(chan error, world)
	for rank := range world {
		job, err := json.Marshal(map[string]any{"Library": library, "Out": out(rank), "Rank": rank, "World": world})
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestRank$")
		cmd.Env = append(os.Environ(), "HEARTH_TEST_RANKS="+string(job), "MLX_HOSTFILE="+file, fmt.Sprintf("MLX_RANK=%d", rank))
		go func() {
			text, err := cmd.CombinedOutput()
			if err != nil {
				err = fmt.Errorf("rank %d: %w\n%s", rank, err, text)
			}
			failed <- err
		}()
	}
	for range world {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range shared() {
		want := answer(t, testshim.Open(t), c)
		for rank := range world {
			b, err := os.ReadFile(out(rank))
			if err != nil {
				t.Fatal(err)
			}
			var all map[string][]float32
			if err := json.Unmarshal(b, &all); err != nil {
				t.Fatal(err)
			}
			worst, top := 0.0, 0.0
			got := all[name]
			if len(got) != len(want) {
				t.Fatalf("%s, rank %d: %d numbers, want %d", name, rank, len(got), len(want))
			}
			for i := range want {
				worst, top = max(worst, math.Abs(float64(got[i]-want[i]))), max(top, math.Abs(float64(want[i])))
			}
			t.Logf("%s, rank %d of %d: largest difference %.1e of %.1f", name, rank, world, worst, top)
			if !(worst <= 1e-5*top) {
				t.Errorf("%s, rank %d: logits differ by %g", name, rank, worst)
			}
		}
	}
}
