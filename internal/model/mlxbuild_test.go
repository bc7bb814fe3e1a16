//go:build darwin || linux

package model_test

import (
	"bufio"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hearth/internal/backend"
	"hearth/internal/backend/mlx"
	"hearth/internal/backend/mlx/testshim"
	"hearth/internal/config"
	"hearth/internal/kv"
	"hearth/internal/model"
	"hearth/internal/quant"
)

// layers of the model whose steps are built. Other sizes hardly matter, so they are tiny.
const layers = 28

const buildConfig = `{"model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 28, "intermediate_size": 64, "num_attention_heads": 4, "head_dim": 32,
	"num_key_value_heads": 2, "rms_norm_eps": 1e-6, "vocab_size": 64, "rope_theta": 10000, "max_position_embeddings": 4096,
	"tie_word_embeddings": true, "quantization": {"group_size": 32, "bits": 4}}`

// builder makes decode steps of one sequence, again from its beginning after so many.
type builder struct {
	be    *mlx.Backend
	m     *model.Loaded
	store backend.Store
	batch *backend.Batch
	n     int
}

const buildPositions = 2000

// newBuilder opens MLX for such activations. Those of a GPU, which are in bfloat16, come with groups of ops that are compiled, as
// there and in mlx-lm.
func newBuilder(t testing.TB, activations backend.DType) *builder {
	t.Helper()
	c := testshim.Config(t, testshim.Newest)
	c.Activations, c.Compile = activations, activations == backend.BF16
	be, err := mlx.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Synthetic{Config: []byte(buildConfig), Seed: 1, Type: quant.BF16}.Load(be, backend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := be.NewStore(m.States(), backend.KVPolicy{})
	if err != nil {
		t.Fatal(err)
	}
	pages := make([]kv.PageID, 64)
	for i := range pages {
		pages[i] = kv.PageID(i + 1)
	}
	table := &kv.Table{Pages: [][]kv.PageID{pages}}
	batch := &backend.Batch{Tokens: []int32{1}, Out: []int32{0}, Spans: []backend.Span{{Len: 1, Table: table}}}
	batch.Pos[0] = []int32{0}
	return &builder{be: be, m: m, store: store, batch: batch}
}

// took is how long something took, and how long of that it ran: on a busy machine those are far apart.
type took struct{ wall, cpu time.Duration }

func now(t testing.TB) took {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return took{time.Duration(time.Now().UnixNano()), time.Duration(u.Utime.Nano() + u.Stime.Nano())}
}

func (t took) since(u took) took { return took{t.wall - u.wall, t.cpu - u.cpu} }

// step is what the host does for a decode step besides waiting for the device: the graph, made on the owner's thread, and taken
// apart again.
func (u *builder) step(t testing.TB) took {
	at := u.n % buildPositions
	u.n++
	u.batch.Spans[0].Start, u.batch.Pos[0][0] = at, int32(at)
	start := now(t)
	sc := u.be.Begin(u.store, u.batch)
	y := u.m.Logits(sc, u.m.Forward(sc, u.batch))
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	building := now(t).since(start)
	if _, err := sc.Floats(y); err != nil {
		t.Fatal(err)
	}
	start = now(t)
	sc.End()
	end := now(t).since(start)
	return took{building.wall + end.wall, building.cpu + end.cpu}
}

func (u *builder) close(t testing.TB) {
	u.m.Close()
	if err := u.be.Close(); err != nil {
		t.Error(err)
	}
}

// figures are µs a layer.
type figures struct{ median, least, cpu float64 }

func perLayer(all []took) figures {
	var wall, cpu []time.Duration
	for _, t := range all {
		wall, cpu = append(wall, t.wall), append(cpu, t.cpu)
	}
	slices.Sort(wall)
	slices.Sort(cpu)
	of := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 / layers }
	return figures{of(wall[len(all)/2]), of(wall[0]), of(cpu[len(all)/2])}
}

// BenchmarkMLXBuild builds steps in float32.
func BenchmarkMLXBuild(b *testing.B) {
	u := newBuilder(b, backend.F32)
	defer u.close(b)
	var all []took
	for b.Loop() {
		all = append(all, u.step(b))
	}
	f := perLayer(all)
	b.ReportMetric(f.least, "least-µs/layer")
	b.ReportMetric(f.median, "µs/layer")
	b.ReportMetric(f.cpu, "cpu-µs/layer")
}

// twin is mlx-lm's Python that builds the same steps.
type twin struct {
	in  *bufio.Writer
	out *bufio.Reader
}

// newTwin starts it, or skips the test unless HEARTH_TEST_MLXLM names a Python that has mlx-lm.
func newTwin(t testing.TB, dtype string) *twin {
	t.Helper()
	python, ok := config.Environ("HEARTH_TEST_MLXLM")
	if !ok {
		t.Skip("HEARTH_TEST_MLXLM is not set to a Python with mlx-lm: see make mlx-overhead")
	}
	cmd := exec.Command(python, filepath.Join("..", "..", "tools", "mlxbuild", "build.py"), buildConfig, dtype)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("mlx-lm: %v\n%s", err, said.String())
		}
	})
	return &twin{bufio.NewWriter(in), bufio.NewReader(out)}
}

func (w *twin) steps(t testing.TB, n int) (all []took) {
	t.Helper()
	if _, err := fmt.Fprintln(w.in, n); err != nil {
		t.Fatal(err)
	}
	if err := w.in.Flush(); err != nil {
		t.Fatal(err)
	}
	line, err := w.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	for f := range slices.Chunk(strings.Fields(line), 2) {
		wall, err := strconv.ParseInt(f[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		cpu, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, took{time.Duration(wall), time.Duration(cpu)})
	}
	return all
}

// BenchmarkMLXOverhead builds steps by turns with mlx-lm, 20 each, so that both see the same machine.
func BenchmarkMLXOverhead(b *testing.B) {
	for _, k := range []struct {
		dtype string
		act   backend.DType
	}{{"float32", backend.F32}, {"bfloat16", backend.BF16}} {
		b.Run(k.dtype, func(b *testing.B) {
			u, w := newBuilder(b, k.act), newTwin(b, k.dtype)
			defer u.close(b)
			const turn = 20
			var ours, theirs []took
			take := func() {
				for range turn {
					ours = append(ours, u.step(b))
				}
				theirs = append(theirs, w.steps(b, turn)...)
			}
			take() // and forget the first
			ours, theirs = nil, nil
			for b.Loop() {
				take()
			}
			f, t := perLayer(ours), perLayer(theirs)
			b.ReportMetric(0, "ns/op")
			for name, of := range map[string][2]float64{"median": {f.median, t.median}, "least": {f.least, t.least}, "cpu": {f.cpu, t.cpu}} {
				b.ReportMetric(of[0]/of[1], name+"-ratio")
				b.ReportMetric(of[0], name+"-µs")
				b.ReportMetric(of[1], name+"-µs-mlx-lm")
			}
		})
	}
}
