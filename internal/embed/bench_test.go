package embed

import (
	"math"
	"math/rand/v2"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/chat"
	"hearth/internal/model"
	"hearth/internal/quant"
)

// BenchmarkTexts is a batch of 64 texts of mixed length through a model of all-MiniLM's size.
func BenchmarkTexts(b *testing.B) {
	be := cpu.New()
	defer be.Close()
	cfg := `{"model_type":"bert","hidden_size":384,"num_hidden_layers":6,"intermediate_size":1536,"num_attention_heads":12,"vocab_size":30522,"max_position_embeddings":512}`
	m, err := model.Synthetic{Config: []byte(cfg), Seed: 1, Type: quant.F32}.LoadEncoder(be, backend.Options{Precision: backend.Float32}, model.Pooling{Kind: model.Embeds, Normalize: true})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	s, err := New(Config{Model: m, Backend: be, Tokenizer: letters(b), StepRows: 2048})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	r := rand.New(rand.NewPCG(1, 2))
	req, tokens := &chat.EmbedRequest{}, 0
	for range 64 {
		ids := make([]int32, int(8*math.Pow(64, r.Float64())))
		for i := range ids {
			ids[i] = r.Int32N(30522)
		}
		tokens += len(ids)
		req.Inputs = append(req.Inputs, chat.Input{Tokens: ids})
	}
	for b.Loop() {
		if _, err := s.Embed(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(tokens*b.N)/b.Elapsed().Seconds(), "tok/s")
}
