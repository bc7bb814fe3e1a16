package catalog

import (
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/backend/ref"
	"hearth/internal/budget"
	"hearth/internal/chat"
	"hearth/internal/config"
)

// onGPU is a backend whose device has room for so many bytes of weights and state.
type onGPU struct {
	*ref.Backend
	limit int64
	rows  int
}

func (g *onGPU) Memory() backend.Memory { return backend.Memory{Limit: g.limit} }
func (g *onGPU) Idle()                  {}
func (g *onGPU) Room(weights int64, rows int) (int64, error) {
	if g.rows = rows; weights >= g.limit {
		return 0, &backend.MemoryError{What: "the weights", Need: weights, Limit: g.limit, Hint: "choose a smaller model"}
	}
	return g.limit - weights, nil
}

// TestOnDevice: the budget is what the device has room for, a larger one that was asked for is refused, and so are weights.
func TestOnDevice(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		weights, budget, want int64
		mb                    int
		err                   string
	}{
		{weights: 5 * gib, budget: 4 * gib, want: 4 * gib},
		{weights: 5 * gib, budget: 9 * gib, want: 7 * gib},
		{weights: 5 * gib, budget: 9 * gib, mb: 9 << 10, err: "the GPU has 7.0 GiB for keys and values beside the weights, and --cache-memory-mb asks for 9.0 GiB: lower it"},
		{weights: 12 * gib, budget: gib, err: "not enough memory on the GPU: the weights need 12.0 GiB of 12.0; choose a smaller model"},
	} {
		g := &onGPU{ref.New(), 12 * gib, 0}
		cfg := config.Default()
		cfg.CacheMemoryMB = c.mb
		got, err := onDevice(g, cfg, c.weights, c.budget)
		if err != nil && (c.err == "" || !strings.Contains(err.Error(), c.err)) || err == nil && (c.err != "" || got != c.want) {
			t.Errorf("weights %d, budget %d: %d, %v", c.weights, c.budget, got, err)
		}
		if g.rows != cfg.PrefillStepSize {
			t.Errorf("steps of %d rows", g.rows)
		}
	}
	cfg := config.Default()
	if got, err := onDevice(ref.New(), cfg, 5*gib, 9*gib); err != nil || got != 9*gib {
		t.Errorf("without a device: %d, %v", got, err)
	}
}

// bounded is a backend with a device that may use some of the machine's memory: enough for the main model and one on demand.
type bounded struct{ *cpu.Backend }

const boundedBytes = 200 << 20

func (bounded) Name() string                   { return "bounded" }
func (bounded) Memory() backend.Memory         { return backend.Memory{Limit: boundedBytes} }
func (bounded) Idle()                          {}
func (bounded) Room(int64, int) (int64, error) { return boundedBytes, nil }

func openBounded(*config.Config) (backend.Backend, error) { return bounded{cpu.New()}, nil }

// TestDeviceShared: models on a device never have more together than that may use, however much the machine has, be it known
// before they are loaded or told by their processes: one goes for another.
func TestDeviceShared(t *testing.T) {
	known := map[string]func() int64{"bounded": func() int64 { return boundedBytes }}
	here, apart, told := backends(), aparts("bounded"), aparts("bounded")
	here.Limits, apart.Limits = known, known
	told.Limits = map[string]func() int64{"bounded": func() int64 { return 0 }}
	for name, bs := range map[string]Backends{"here": here, "apart": apart, "told": told} {
		t.Run(name, func(t *testing.T) {
			bs.Open["bounded"], bs.Auto = openBounded, []string{"bounded"}
			c, _ := demandsOn(t, bs, copied(t, "a", "b"), 4, 0)
			if free := c.bs.Memory.Free("bounded"); free <= 0 || free >= boundedBytes || c.bs.Memory.Free("") < 2*free {
				t.Fatalf("%d bytes are free on the device, %d on the machine", free, c.bs.Memory.Free(""))
			}
			for _, name := range []string{"a", "b", "a"} {
				if got, err := say(t, c, name, nil); err != nil || got != name {
					t.Fatalf("%s: %q, %v", name, got, err)
				}
				until(t, "nobody uses it", func() bool { return row(t, c, name).Users == 0 })
				if a, b := row(t, c, "a"), row(t, c, "b"); (a.State == "loaded") != (name == "a") || (b.State == "loaded") != (name == "b") {
					t.Errorf("a is %s, b is %s", a.State, b.State)
				}
			}
			end, err := c.bs.Memory.Ask(t.Context(), budget.Claim{Name: "large", Device: "bounded", Pinned: true, Use: budget.Use{Weights: 100 << 20}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = say(t, c, "b", nil)
			if e := chat.AsError(err); e.Code != "model_does_not_fit" || !strings.Contains(e.Msg, "of 200 MiB are free on the GPU: large has 100 MiB and stays") {
				t.Errorf("%#v", e)
			}
			end.Close()
		})
	}
}
