// Package golden helps tests that compare with numbers made by a reference implementation: it loads a golden, compares
// within a stated bound, remakes goldens, and steps a model on a backend. Only tests import it. It never decides what
// bound is good enough.
package golden

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"testing"
)

var (
	update = flag.Bool("update", false, "remake the goldens with the pinned reference implementation")
	python = flag.String("python", "python3", "interpreter for -update; the scripts refuse other versions than the pinned ones")
)

// Made is the header of every golden: which script and which versions made it.
type Made struct {
	Script string `json:"script"`
	MLX    string `json:"mlx"`
	MLXLM  string `json:"mlx-lm"`

	Transformers string `json:"transformers"` // of goldens that transformers made
	Torch        string `json:"torch"`
}

// Pinned are the versions the goldens of this tree are made with (tools/golden/pins.py).
var Pinned = Made{MLX: "0.32.4", MLXLM: "0.32.2"}

// Saved are the versions of the goldens of folders that transformers itself saved.
var Saved = Made{Transformers: "5.24.0", Torch: "2.15.0"}

// Load reads a golden into v and checks that the pinned versions made it.
func Load(t testing.TB, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var head struct {
		Made Made `json:"made"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	made := head.Made
	made.Script = ""
	if made != Saved && (made.MLX != Pinned.MLX || made.MLXLM != Pinned.MLXLM) {
		t.Fatalf("%s: made by mlx %q and mlx-lm %q, pinned are %s and %s: remake it", path, head.Made.MLX, head.Made.MLXLM, Pinned.MLX, Pinned.MLXLM)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// Update runs script with args when the test was started with -update. The script exits with an error, and the goldens
// stay, unless the pinned versions are installed.
func Update(t testing.TB, script string, args ...string) {
	t.Helper()
	if !*update {
		return
	}
	out, err := exec.Command(*python, append([]string{script}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", *python, script, err, out)
	}
	t.Logf("%s", out)
}

// Floats is float32 numbers as little-endian base64: exact and short.
type Floats []float32

// UnmarshalJSON implements json.Unmarshaler.
func (f *Floats) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return fmt.Errorf("decode float32 numbers: %w", err)
	}
	if len(raw)%4 != 0 {
		return fmt.Errorf("decode float32 numbers: %d bytes are no multiple of 4", len(raw))
	}
	*f = make(Floats, len(raw)/4)
	for i := range *f {
		(*f)[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return nil
}

// Diff is the largest |got-want| as a share of the range (largest less smallest) of scale. Different lengths and numbers
// that are not finite give +Inf.
func Diff(got, want, scale []float32) float64 {
	if len(got) != len(want) || len(scale) == 0 {
		return math.Inf(1)
	}
	lo, hi, worst := math.Inf(1), math.Inf(-1), 0.0
	for _, x := range scale {
		lo, hi = min(lo, float64(x)), max(hi, float64(x))
	}
	for i, x := range got {
		d := math.Abs(float64(x) - float64(want[i]))
		if math.IsNaN(d) {
			return math.Inf(1)
		}
		worst = max(worst, d)
	}
	return worst / (hi - lo)
}
