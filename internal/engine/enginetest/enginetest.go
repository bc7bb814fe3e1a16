// Package enginetest has an engine for tests of what is above engines.
package enginetest

import (
	"errors"
	"fmt"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/engine"
	"hearth/internal/model"
	"hearth/internal/quant"
)

// Random runs a tiny model of random weights until the test ends. What it makes of a vocabulary is nothing to be foreseen.
func Random(t testing.TB, vocab, context int) *engine.Engine {
	t.Helper()
	return Start(t, fmt.Sprintf(`{"model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 48, "num_attention_heads": 2,
		"num_key_value_heads": 1, "head_dim": 16, "rms_norm_eps": 1e-6, "vocab_size": %d, "rope_theta": 10000, "max_position_embeddings": %d,
		"tie_word_embeddings": false}`, vocab, context), func(c *engine.Config) { c.Budget, c.MaxContext = 1<<26, context })
}

// Start runs a model of random weights of such a config until the test ends. change says how.
func Start(t testing.TB, config string, change func(*engine.Config)) *engine.Engine {
	t.Helper()
	be := cpu.New()
	m, err := model.Synthetic{Config: []byte(config), Seed: 3, Type: quant.F32}.Load(be, backend.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	cfg := engine.Config{Model: m.Generator, Vocab: m.Vocab, Backend: be, MaxSequences: 16, MaxQueue: 64}
	change(&cfg)
	e, err := engine.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(e.Close(), m.Close(), be.Close()); err != nil {
			t.Error(err)
		}
	})
	return e
}
