package cli

import (
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/model"
)

// TestStateOf: of a hybrid, layers that attend take memory for every token, the others once.
func TestStateOf(t *testing.T) {
	f := benchFlags{shape: "qwen3.5-0.8b", layers: 8, bits: 4, group: 64}
	m, _, err := model.New("qwen3_5", f.config(), 1)
	if err != nil {
		t.Fatal(err)
	}
	st, err := cpu.New().NewStore(m.States(), backend.KVPolicy{DType: backend.BF16})
	if err != nil {
		t.Fatal(err)
	}
	s := stateOf(st.Geometry())
	if want := (shownState{Token: 2 * 2 * 2 * 256 * 2, Sequence: 6 * 4 * (16*128*128 + 3*(2*16*128+16*128))}); s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
}
