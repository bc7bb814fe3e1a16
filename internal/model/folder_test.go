package model_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"hearth/internal/backend"
	"hearth/internal/backend/ref"
	"hearth/internal/backend/stub"
	"hearth/internal/golden"
	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/safetensors"
)

// recorder keeps the tensors that a model asks for.
type recorder struct {
	*stub.Backend
	tensors []safetensors.Tensor
}

type recordLoader struct {
	backend.Loader
	r *recorder
}

func (r *recorder) NewLoader(o backend.Options) backend.Loader {
	return recordLoader{r.Backend.NewLoader(o), r}
}

func (l recordLoader) Load(s backend.WeightSpec) (backend.Weight, error) {
	for _, p := range s.Parts {
		for _, t := range []*backend.Tensor{p.Weight, p.Scales, p.Biases, p.Bias} {
			if t != nil {
				l.r.tensors = append(l.r.tensors, safetensors.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Bytes: t.Bytes})
			}
		}
	}
	return l.Loader.Load(s)
}

// tensorsOf are the tensors of a formula model, as a checkpoint stores them.
func tensorsOf(t testing.TB, s model.Synthetic) []safetensors.Tensor {
	t.Helper()
	r := &recorder{Backend: stub.New(1)}
	if _, err := s.Load(r, backend.Options{}); err != nil {
		t.Fatal(err)
	}
	return r.tensors
}

func pack(t testing.TB, tensors []safetensors.Tensor) *fstest.MapFile {
	t.Helper()
	var b bytes.Buffer
	if err := safetensors.Write(&b, tensors, map[string]string{"format": "mlx"}); err != nil {
		t.Fatal(err)
	}
	return &fstest.MapFile{Data: b.Bytes()}
}

func text(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

const tiny = `{"model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 128, "num_attention_heads": 2,
	"num_key_value_heads": 1, "head_dim": 32, "rms_norm_eps": 1e-6, "vocab_size": 32, "max_position_embeddings": 64, "rope_theta": 1e6,
	"tie_word_embeddings": false, "eos_token_id": 7, "quantization": {"group_size": 32, "bits": 4, "model.layers.1.mlp.down_proj": false}}`

// tinyModel is a formula model and the folder that stores it.
func tinyModel(t testing.TB) (model.Synthetic, fstest.MapFS) {
	s := model.Synthetic{Config: []byte(tiny), Seed: 3, Type: quant.BF16}
	return s, fstest.MapFS{
		"config.json":       text(tiny),
		"tokenizer.json":    text(`{}`),
		"model.safetensors": pack(t, tensorsOf(t, s)),
	}
}

// TestFolderEqualsFormula: what is written to files and read back gives the same bits, however the files are cut.
func TestFolderEqualsFormula(t *testing.T) {
	s, whole := tinyModel(t)
	want := firstLogits(t, func(be backend.Backend) (*model.Loaded, error) { return s.Load(be, backend.Options{}) })
	tensors := tensorsOf(t, s)
	half := len(tensors) / 2
	old := safetensors.Tensor{Name: "model.layers.0.self_attn.rotary_emb.inv_freq", DType: "F32", Shape: []int{1}, Bytes: make([]byte, 4)}
	stale := slices.Clone(tensors[:2])
	for i := range stale {
		stale[i].Bytes = make([]byte, len(stale[i].Bytes))
	}
	index := map[string]string{}
	for i, x := range tensors {
		index[x.Name] = "model-00001-of-00002.safetensors"
		if i >= half {
			index[x.Name] = "parts/b.safetensors"
		}
	}
	js, err := json.Marshal(map[string]any{"weight_map": index})
	if err != nil {
		t.Fatal(err)
	}
	for name, folder := range map[string]fstest.MapFS{
		"one file":        whole,
		"with rope table": with(whole, "model.safetensors", pack(t, append(tensors[:len(tensors):len(tensors)], old))),
		"two files":       with(without(whole, "model.safetensors"), "model-1.safetensors", pack(t, tensors[:half]), "model-2.safetensors", pack(t, tensors[half:])),
		"indexed, one stale": with(without(whole, "model.safetensors"), "model-00001-of-00002.safetensors", pack(t, tensors[:half]),
			"parts/b.safetensors", pack(t, tensors[half:]), "model-00000-stale.safetensors", pack(t, stale), "model.safetensors.index.json", text(string(js))),
		"nested config": with(whole, "config.json", text(`{"model_type": "qwen3", "quantization": {"bits": 4, "group_size": 32, "model.layers.1.mlp.down_proj": false}, "text_config": `+tiny+`}`)),
	} {
		t.Run(name, func(t *testing.T) {
			c, err := model.OpenCheckpoint(folder, "tiny")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			got := firstLogits(t, func(be backend.Backend) (*model.Loaded, error) { return c.Load(be, backend.Options{}) })
			if !slices.Equal(got, want) {
				t.Error("logits differ from the formula model's")
			}
		})
	}
}

func firstLogits(t *testing.T, load func(backend.Backend) (*model.Loaded, error)) []float32 {
	t.Helper()
	be := ref.New()
	m, err := load(be)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	return golden.NewSequence(t, be, m, 3).Step([]int32{1, 5, 9}, 0, 2)
}

// with and without edit a copy of a folder.
func with(f fstest.MapFS, files ...any) fstest.MapFS {
	f = maps.Clone(f)
	for i := 0; i < len(files); i += 2 {
		f[files[i].(string)] = files[i+1].(*fstest.MapFile)
	}
	return f
}

func without(f fstest.MapFS, names ...string) fstest.MapFS {
	f = maps.Clone(f)
	for _, n := range names {
		delete(f, n)
	}
	return f
}

func TestLoadedFacts(t *testing.T) {
	_, folder := tinyModel(t)
	folder["generation_config.json"] = text(`{"eos_token_id": [4, 5], "temperature": 0.2, "top_k": 20.0, "top_p": 0.9, "do_sample": true, "min_p": null, "repetition_detection": {"max_pattern_size": 24, "min_count": 16}}`)
	c, err := model.OpenCheckpoint(folder, "tiny")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m, err := c.Load(stub.New(1), backend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	// embed and head 2·32·64, per layer q 64·64 + k, v 2·32·64 + o 64·64 + mlp 3·64·128 + norms 2·64 + 2·32, final norm 64.
	if want := int64(2*32*64 + 2*(2*64*64+2*32*64+3*64*128+2*64+2*32) + 64); m.Params != want {
		t.Errorf("%d parameters, want %d", m.Params, want)
	}
	var size int64
	for _, x := range tensorsOf(t, model.Synthetic{Config: []byte(tiny), Seed: 3, Type: quant.BF16}) {
		size += int64(len(x.Bytes))
	}
	if m.Bytes != size || m.Type != "qwen3" || m.Vocab != 32 || m.Context != 64 || m.Description != "qwen3, 78.3K parameters, 4 bits" {
		t.Errorf("%d bytes (want %d), type %s, vocabulary %d, context %d, %q", m.Bytes, size, m.Type, m.Vocab, m.Context, m.Description)
	}
	folder["generation_config.json"] = text(`{"do_sample": false}`)
	greedy, err := model.OpenCheckpoint(folder, "tiny")
	if err != nil || greedy.Generation.Temperature == nil || *greedy.Generation.Temperature != 0 {
		t.Errorf("do_sample false: %+v, %v", greedy.Generation, err)
	}
	g := m.Generation
	if !slices.Equal(g.EOS, []int32{4, 5}) || *g.Temperature != 0.2 || *g.TopK != 20 || *g.TopP != 0.9 || g.MinP != nil || g.RepetitionPenalty != nil ||
		g.Loop != (model.Loop{MaxSize: 24, MinCount: 16}) {
		t.Errorf("generation %+v", g)
	}
}

func TestGenerationFiles(t *testing.T) {
	_, base := tinyModel(t)
	for _, c := range []struct {
		name, generation string
		eos              []int32
		want             string // in the error
	}{
		{"absent", "", []int32{7}, ""},
		{"empty", `{}`, []int32{7}, ""},
		{"null", `{"eos_token_id": null}`, []int32{7}, ""},
		{"one", `{"eos_token_id": 9}`, []int32{9}, ""},
		{"all tokens", `{"top_k": -1}`, []int32{7}, ""},
		{"words", `{"eos_token_id": "</s>"}`, nil, "neither a token id nor a list"},
		{"broken", `{"eos_token_id": `, nil, "valid JSON"},
		{"top_p", `{"top_p": 1.5}`, nil, "top_p 1.5 is outside [0, 1]"},
		{"temperature", `{"temperature": {"__float__": "NaN"}}`, nil, "temperature NaN"},
		{"temperature infinite", `{"temperature": {"__float__": "Infinity"}}`, nil, "temperature +Inf"},
		{"temperature tagged", `{"temperature": {"__float__": "lots"}}`, nil, "no number"},
		{"temperature text", `{"temperature": "hot"}`, nil, "no number"},
		{"top_k", `{"top_k": -2}`, nil, "top_k -2"},
		{"repetition", `{"repetition_detection": {"max_pattern_size": 24, "min_count": 16}}`, []int32{7}, ""},
		{"repetition null", `{"repetition_detection": null}`, []int32{7}, ""},
		{"repetition without a size", `{"repetition_detection": {"min_count": 16}}`, nil, "repetition_detection"},
		{"repetition once", `{"repetition_detection": {"max_pattern_size": 24, "min_count": 1}}`, nil, "repetition_detection"},
	} {
		folder := base
		if c.generation != "" {
			folder = with(base, "generation_config.json", text(c.generation))
		}
		p, err := model.OpenCheckpoint(folder, "tiny")
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want == "" && !slices.Equal(p.Generation.EOS, c.eos):
			t.Errorf("%s: ends with %v, want %v", c.name, p.Generation.EOS, c.eos)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "generation_config.json")):
			t.Errorf("%s: error %v, want %q in it", c.name, err, c.want)
		}
	}
}

// TestHead: tie_word_embeddings decides whether the head is the embedding; without it the files do.
func TestHead(t *testing.T) {
	s, folder := tinyModel(t)
	own := tensorsOf(t, s)
	var shared []safetensors.Tensor
	for _, x := range own {
		if !strings.HasPrefix(x.Name, "lm_head.") {
			shared = append(shared, x)
		}
	}
	logits := func(tie string, tensors []safetensors.Tensor) []float32 {
		f := with(folder, "config.json", text(strings.Replace(tiny, `"tie_word_embeddings": false,`, tie, 1)), "model.safetensors", pack(t, tensors))
		c, err := model.OpenCheckpoint(f, "tiny")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return firstLogits(t, func(be backend.Backend) (*model.Loaded, error) { return c.Load(be, backend.Options{}) })
	}
	untied, tied := logits(`"tie_word_embeddings": false,`, own), logits(`"tie_word_embeddings": true,`, shared)
	if slices.Equal(untied, tied) {
		t.Fatal("the head makes no difference")
	}
	if !slices.Equal(logits("", own), untied) {
		t.Error("a head in the files is not used when the config says nothing")
	}
	if !slices.Equal(logits("", shared), tied) {
		t.Error("the embedding is not used when there is no head and the config says nothing")
	}
	if !slices.Equal(logits(`"tie_word_embeddings": true,`, own), tied) {
		t.Error("a head in the files is used although the config ties it")
	}
	bias := safetensors.Tensor{Name: "lm_head.bias", DType: "F32", Shape: []int{32}, Bytes: make([]byte, 4*32)}
	add := make([]float32, 32) // one per token
	for i := range add {
		add[i] = float32(i % 7)
	}
	quant.PutFloats(bias.Bytes, quant.F32, add)
	for i, y := range logits(`"tie_word_embeddings": true,`, append(shared, bias)) {
		if d := y - tied[i] - add[i%32]; d > 0.05 || d < -0.05 {
			t.Fatalf("logit %d is %g with a bias of the head, %g without, the bias is %g", i, y, tied[i], add[i%32])
		}
	}
}
