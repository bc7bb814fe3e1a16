package embed

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/budget"
	"hearth/internal/chat"
	"hearth/internal/model"
	"hearth/internal/quant"
)

const longBert = `{"model_type":"bert","hidden_size":64,"num_hidden_layers":2,"intermediate_size":256,"num_attention_heads":2,
"vocab_size":60,"max_position_embeddings":3000,"type_vocab_size":2}`

// counted is a service of longBert with a share of so many bytes beside those of a usual step.
func counted(t *testing.T, beside int64) (*Service, *budget.Machine, *budget.Share, *cpu.Backend) {
	t.Helper()
	be := cpu.New()
	m, err := model.Synthetic{Config: []byte(longBert), Seed: 5, Type: quant.F32}.LoadEncoder(be, backend.Options{Precision: backend.Float32, Threads: 1}, embeds)
	if err != nil {
		t.Fatal(err)
	}
	total := int64(1 << 40)
	machine := budget.New(budget.Readers{Total: func() int64 { return total }}, 0)
	share, err := machine.Ask(t.Context(), budget.Claim{Name: "tiny", Use: budget.Use{Weights: 1000, State: 500, Scratch: 1 << 39}, Pinned: true})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Info: chat.Model{ID: "tiny"}, Model: m, Backend: be, Tokenizer: letters(t), StepRows: StepRows, MaxWaiting: 100}
	if cfg.Memory, err = NewMemory(m, be, share, 3000); err != nil {
		t.Fatal(err)
	}
	if u := share.Use(); u.Weights != 1000 || u.State != 0 || u.Scratch != cfg.Memory.usual || u.Scratch < 1<<20 {
		t.Fatalf("it has %+v", u)
	}
	total = share.Use().Sum() + beside
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), m.Close(), be.Close()); err != nil {
			t.Error(err)
		}
	})
	return s, machine, share, be
}

// tokens are texts of such lengths.
func tokens(lengths ...int) *chat.EmbedRequest {
	r := &chat.EmbedRequest{}
	for _, n := range lengths {
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = int32(3 + i%50)
		}
		r.Inputs = append(r.Inputs, chat.Input{Tokens: ids, Path: "input"})
	}
	return r
}

// TestStepsFit: steps of any texts take no more than they have, long ones more than usual ones, which they give back.
func TestStepsFit(t *testing.T) {
	s, _, share, be := counted(t, 1<<40)
	m, usual := s.cfg.Memory, share.Use()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 30 {
		var lengths []int
		for range 1 + r.IntN(40) {
			lengths = append(lengths, 1+r.IntN(1+r.IntN(500)))
		}
		if i%10 == 9 {
			lengths = []int{1100 + r.IntN(1900)}
		}
		most := m.of(max(usualRows, lengths[0]))
		if _, err := s.Embed(t.Context(), tokens(lengths...)); err != nil {
			t.Fatal(err)
		}
		if took := be.StepBytes(); took > most+most/100 {
			t.Errorf("steps of texts of %v tokens took %d bytes, they have %d", lengths, took, most)
		}
		if u := share.Use(); u != usual {
			t.Errorf("it has %+v, usually %+v", u, usual)
		}
	}
}

// TestLongTextWaits: a text that takes more memory than is free waits for it, and the client may leave meanwhile; one that never
// can have it is told the numbers. Others go on.
func TestLongTextWaits(t *testing.T) {
	s, machine, _, _ := counted(t, 64<<20)
	other, err := machine.Ask(t.Context(), budget.Claim{Name: "other", Use: budget.Use{Weights: 64 << 20}, Unload: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	end, _ := other.Begin()
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error, 1)
	ask := func(ctx context.Context) {
		_, err := s.Embed(ctx, tokens(3000))
		got <- err
	}
	go ask(ctx)
	for s.Stats().Waiting > 0 || s.Stats().Requests == 0 {
		runtime.Gosched()
	}
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	go ask(t.Context())
	for s.Stats().Waiting > 0 || s.Stats().Requests < 2 {
		runtime.Gosched()
	}
	end()
	other.Close()
	if err := <-got; err != nil {
		t.Error(err)
	}
	if _, err := machine.Ask(t.Context(), budget.Claim{Name: "pinned", Use: budget.Use{Weights: 64 << 20}, Pinned: true}); err != nil {
		t.Fatal(err)
	}
	go ask(t.Context())
	e := chat.AsError(<-got)
	if e.Kind != chat.Overloaded || !strings.Contains(e.Msg, "pinned has 64 MiB and stays") {
		t.Errorf("%+v", e)
	}
	if _, err := s.Embed(t.Context(), tokens(5, 500, 900)); err != nil {
		t.Error(err)
	}
}

// TestCloseEndsWaiting: a service that is closed waits for no memory.
func TestCloseEndsWaiting(t *testing.T) {
	s, machine, _, _ := counted(t, 64<<20)
	other, err := machine.Ask(t.Context(), budget.Claim{Name: "other", Use: budget.Use{Weights: 64 << 20}, Unload: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	other.Begin()
	got := make(chan error, 1)
	go func() {
		_, err := s.Embed(t.Context(), tokens(3000))
		got <- err
	}()
	for s.Stats().Waiting > 0 || s.Stats().Requests == 0 {
		runtime.Gosched()
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if e := chat.AsError(<-got); e.Code != "shutting_down" {
		t.Errorf("%+v", e)
	}
}
