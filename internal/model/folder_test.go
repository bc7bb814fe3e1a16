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

// record keeps the tensors that a model asks for.
func record(tensors *[]safetensors.Tensor) backend.Backend {
	l := stub.New(1).NewLoader(backend.Options{})
	return backend.Visitor(func(s backend.WeightSpec) (backend.Weight, error) {
		for _, p := range s.Parts {
			for _, t := range []*backend.Tensor{p.Weight, p.Scales, p.Biases, p.Bias} {
				if t != nil {
					*tensors = append(*tensors, safetensors.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Bytes: t.Bytes})
				}
			}
		}
		return l.Load(s)
	})
}

// tensorsOf are the tensors of a formula model, as a checkpoint stores them.
func tensorsOf(t testing.TB, s model.Synthetic) (all []safetensors.Tensor) {
	t.Helper()
	if _, err := s.Load(record(&all), backend.Options{}); err != nil {
		t.Fatal(err)
	}
	return all
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

// TestGenerationFiles: generation_config.json is optional, so what is wrong with it is a warning that names file, key and place,
// and what is right in it counts.
func TestGenerationFiles(t *testing.T) {
	_, base := tinyModel(t)
	half, none := 0.5, 0.0
	const left = "; the key is left out"
	const gone = "; the file is left out: it recommends no sampling and names no token that ends a reply"
	for _, c := range []struct {
		name, generation string
		eos              []int32
		temperature      *float64
		want             string // the warning, without the file
	}{
		{"absent", "", []int32{7}, nil, ""},
		{"empty object", `{}`, []int32{7}, nil, ""},
		{"null", `{"eos_token_id": null, "temperature": null, "repetition_detection": null, "do_sample": null}`, []int32{7}, nil, ""},
		{"one", `{"eos_token_id": 9}`, []int32{9}, nil, ""},
		{"byte order mark", "\xef\xbb\xbf" + `{"eos_token_id": 9}` + "\r\n \n", []int32{9}, nil, ""},
		{"all tokens", `{"top_k": -1}`, []int32{7}, nil, ""},
		{"an empty list", `{"eos_token_id": []}`, []int32{7}, nil, ""},
		{"repetition", `{"repetition_detection": {"max_pattern_size": 24, "min_count": 16}}`, []int32{7}, nil, ""},

		{"comma", `{"eos_token_id": 2,}`, []int32{2}, nil, "has a comma too many at byte 19, line 1, which JSON does not allow; it is read without"},
		{"comment", "{\n  \"eos_token_id\": [2, 3], // ends\n  \"temperature\": 0.5 /* mild */\n}", []int32{2, 3}, &half, "has a comment at byte 29, line 2, which JSON does not allow; it is read without"},
		{"cut", "{\"eos_token_id\": 2,\n\"top_p", []int32{7}, nil, "is no valid JSON at byte 26, line 2: unexpected end of JSON input" + gone},
		{"empty", "", []int32{7}, nil, "is empty" + gone},
		{"null alone", "null", []int32{7}, nil, "is null" + gone},
		{"a list", "[]", []int32{7}, nil, "a JSON array is not what should be here" + gone},
		{"a page", "<html>\n", []int32{7}, nil, "is no valid JSON at byte 1, line 1: invalid character '<' looking for beginning of value" + gone},

		{"words", `{"eos_token_id": "</s>", "temperature": 0.5}`, []int32{7}, &half, `eos_token_id: "</s>" is neither a token id nor a list of them; it is left out`},
		{"a word among numbers", `{"eos_token_id": [2, "</s>", 3]}`, []int32{2, 3}, nil, `eos_token_id: "</s>" is neither a token id nor a list of them; it is left out`},
		{"a number as text", `{"eos_token_id": "2"}`, []int32{2}, nil, `eos_token_id: "2" is a text; it is read as the token id`},
		{"half a token", `{"eos_token_id": 2.5}`, []int32{7}, nil, "eos_token_id: 2.5 is neither a token id nor a list of them; it is left out"},
		{"top_p", `{"top_p": 1.5, "eos_token_id": 2}`, []int32{2}, nil, "top_p: 1.5 is outside [0, 1]" + left},
		{"NaN", `{"top_p": NaN, "temperature": 0.5}`, []int32{7}, &half, "top_p: NaN is outside [0, 1]" + left},
		{"tagged NaN", `{"top_p": {"__float__": "NaN"}, "temperature": 0.5}`, []int32{7}, &half, "top_p: NaN is outside [0, 1]" + left},
		{"infinite", `{"temperature": Infinity}`, []int32{7}, nil, "temperature: +Inf is outside [0, 100]" + left},
		{"huge", `{"temperature": 1e999}`, []int32{7}, nil, "temperature: 1e999 is no number" + left},
		{"tagged otherwise", `{"temperature": {"__float__": "lots"}}`, []int32{7}, nil, `temperature: {"__float__": "lots"} is no number` + left},
		{"temperature as text", `{"temperature": "0.5"}`, []int32{7}, &half, `temperature: "0.5" is a text; it is read as 0.5`},
		{"temperature in words", `{"temperature": "hot", "eos_token_id": 2}`, []int32{2}, nil, `temperature: "hot" is no number` + left},
		{"no truth", `{"do_sample": 0, "temperature": 0.5}`, []int32{7}, &half, "do_sample: 0 is neither true nor false" + left},
		{"truth as text", `{"do_sample": "False"}`, []int32{7}, &none, `do_sample: "False" is a text; it is read as false`},
		{"half a token", `{"top_k": 1.5}`, []int32{7}, nil, "top_k: 1.5 is no whole number" + left},
		{"top_k", `{"top_k": -2}`, []int32{7}, nil, "top_k: -2 is outside [-1, 1.6777216e+07]" + left},
		{"repetition without a size", `{"repetition_detection": {"min_count": 16}}`, []int32{7}, nil, "repetition_detection: {MinSize:0 MaxSize:0 MinCount:16} makes no sense" + left},
		{"repetition once", `{"repetition_detection": {"max_pattern_size": 24, "min_count": 1}}`, []int32{7}, nil, "repetition_detection: {MinSize:0 MaxSize:24 MinCount:1} makes no sense" + left},
		{"repetition of words", `{"repetition_detection": "on"}`, []int32{7}, nil, "repetition_detection: a JSON string is not what should be here" + left},
	} {
		folder := base
		if c.name != "absent" {
			folder = with(base, "generation_config.json", text(c.generation))
		}
		p, err := model.OpenCheckpoint(folder, "tiny")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var want []string
		if c.want != "" {
			want = []string{"generation_config.json: " + c.want}
		}
		if g := p.Generation; !slices.Equal(g.EOS, c.eos) || (g.Temperature == nil) != (c.temperature == nil) || g.Temperature != nil && *g.Temperature != *c.temperature {
			t.Errorf("%s: ends with %v, want %v, temperature %v", c.name, g.EOS, c.eos, g.Temperature)
		}
		if !slices.Equal(p.Warnings, want) {
			t.Errorf("%s: warnings\n%q, want\n%q", c.name, p.Warnings, want)
		}
		m, err := p.Load(stub.New(1), backend.Options{})
		if err != nil || !slices.Equal(m.Warnings, want) {
			t.Errorf("%s: the model's warnings are %q, %v", c.name, m.Warnings, err)
		}
	}
}

// TestGenerationWarnings: several wrong values are warned about in an order that stays.
func TestGenerationWarnings(t *testing.T) {
	_, base := tinyModel(t)
	p, err := model.OpenCheckpoint(with(base, "generation_config.json", text(`{"top_k": "x", "repetition_penalty": "x", "min_p": "x", "top_p": "x", "temperature": "x"}`)), "tiny")
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range []string{"temperature", "top_p", "min_p", "repetition_penalty", "top_k"} {
		if i >= len(p.Warnings) || !strings.HasPrefix(p.Warnings[i], "generation_config.json: "+key+": ") {
			t.Errorf("warnings %q, want number %d about %s", p.Warnings, i, key)
		}
	}
}

// TestConfigText: config.json may have a byte order mark, white space around it and numbers of Python, but it has to
// be JSON; what it says about the end of a reply is as optional as the file that says more of it.
func TestConfigText(t *testing.T) {
	_, base := tinyModel(t)
	for _, c := range []struct{ name, config, warning, err string }{
		{"byte order mark", "\xef\xbb\xbf" + tiny + "\r\n\t ", "", ""},
		{"numbers of Python", strings.Replace(tiny, "{", `{"x": NaN, "y": [-Infinity],`, 1), "", ""},
		{"no token", strings.Replace(tiny, `"eos_token_id": 7`, `"eos_token_id": "</s>"`, 1), `config.json: eos_token_id: "</s>" is neither a token id nor a list of them; it is left out`, ""},
		{"comma", strings.Replace(tiny, "{", `{"x": [1,],`, 1), "", "config.json: is no valid JSON at byte 10"},
		{"comment", "// a model\n" + tiny, "", "config.json: is no valid JSON at byte 1"},
		{"empty", " ", "", "config.json: is empty"},
		{"null", "null", "", "config.json: model_type is missing"},
	} {
		p, err := model.OpenCheckpoint(with(base, "config.json", text(c.config)), "tiny")
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %q", c.name, err, c.err)
			}
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case strings.Join(p.Warnings, "\n") != c.warning:
			t.Errorf("%s: warnings %q, want %q", c.name, p.Warnings, c.warning)
		}
	}
}

// TestOptionalFiles: a file that the weights can be read without does not stop the start when its text is broken.
func TestOptionalFiles(t *testing.T) {
	_, base := tinyModel(t)
	plain := strings.Replace(tiny, `, "quantization": {"group_size": 32, "bits": 4, "model.layers.1.mlp.down_proj": false}`, "", 1)
	for _, c := range []struct{ name, file, text, config, warning, err string }{
		{"index cut", "model.safetensors.index.json", `{"weight_map": {`, tiny, "is no valid JSON at byte 16, line 1: unexpected end of JSON input; the file is left out: the weights are those of the files model*.safetensors", ""},
		{"index of numbers", "model.safetensors.index.json", `{"weight_map": {"lm_head.weight": 1}}`, tiny, "weight_map should not be a JSON number; the file is left out: the weights are those of the files model*.safetensors", ""},
		{"index with a comma", "model.safetensors.index.json", `{"weight_map": {"lm_head.weight": "model.safetensors",}}`, tiny, "has a comma too many at byte 54, line 1, which JSON does not allow; it is read without", ""},
		{"quantisation said elsewhere", "hf_quant_config.json", `{"quantization": `, tiny, "is no valid JSON at byte 17, line 1: unexpected end of JSON input; the file is left out: config.json says how the weights are stored", ""},
		{"quantisation said nowhere else", "hf_quant_config.json", `{"quantization": `, plain, "", "hf_quant_config.json: is no valid JSON at byte 17, line 1"},
	} {
		p, err := model.OpenCheckpoint(with(base, c.file, text(c.text), "config.json", text(c.config)), "tiny")
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %q", c.name, err, c.err)
			}
			continue
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if want := []string{c.file + ": " + c.warning}; !slices.Equal(p.Warnings, want) {
			t.Errorf("%s: warnings\n%q, want\n%q", c.name, p.Warnings, want)
		}
		if _, err := p.Load(stub.New(1), backend.Options{}); err != nil {
			t.Errorf("%s: %v", c.name, err)
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
	var warnings []string
	logits := func(tie string, tensors []safetensors.Tensor) []float32 {
		f := with(folder, "config.json", text(strings.Replace(tiny, `"tie_word_embeddings": false,`, tie, 1)), "model.safetensors", pack(t, tensors))
		c, err := model.OpenCheckpoint(f, "tiny")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		l := firstLogits(t, func(be backend.Backend) (*model.Loaded, error) { return c.Load(be, backend.Options{}) })
		warnings = c.Warnings
		return l
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
	if !slices.Equal(logits(`"tie_word_embeddings": true,`, own), untied) {
		t.Error("a head in the files that is not the embedding is not used")
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "tie_word_embeddings") {
		t.Errorf("warnings %q of a head that is not the embedding it is tied to", warnings)
	}
	for _, x := range shared { // the same once more
		if rest, ok := strings.CutPrefix(x.Name, "model.embed_tokens."); ok {
			x.Name = "lm_head." + rest
			shared = append(shared, x)
		}
	}
	if !slices.Equal(logits(`"tie_word_embeddings": true,`, shared), tied) || len(warnings) > 0 {
		t.Errorf("a copy of the embedding changes logits, or gives the warnings %q", warnings)
	}
	bias := safetensors.Tensor{Name: "lm_head.bias", DType: "F32", Shape: []int{32}, Bytes: make([]byte, 4*32)}
	add := make([]float32, 32) // one per token
	for i := range add {
		add[i] = float32(i % 7)
	}
	quant.PutFloats(bias.Bytes, quant.F32, add)
	for i, y := range logits(`"tie_word_embeddings": true,`, append(slices.DeleteFunc(slices.Clone(shared), func(x safetensors.Tensor) bool { return strings.HasPrefix(x.Name, "lm_head.") }), bias)) {
		if d := y - tied[i] - add[i%32]; d > 0.05 || d < -0.05 {
			t.Fatalf("logit %d is %g with a bias of the head, %g without, the bias is %g", i, y, tied[i], add[i%32])
		}
	}
}

// TestTiedHeads: a head of floats that is the embedding once more is the embedding; one that is not counts, with a warning.
func TestTiedHeads(t *testing.T) {
	plain := tiny[:strings.Index(tiny, `, "quantization"`)] + "}"
	plain = strings.Replace(plain, `"tie_word_embeddings": false`, `"tie_word_embeddings": true`, 1)
	tensors := tensorsOf(t, model.Synthetic{Config: []byte(plain), Seed: 3, Type: quant.BF16})
	i := slices.IndexFunc(tensors, func(x safetensors.Tensor) bool { return x.Name == "model.embed_tokens.weight" })
	head := tensors[i]
	head.Name = "lm_head.weight"
	other := head
	other.Bytes = bytes.Repeat([]byte{0x80, 0x3f}, len(head.Bytes)/2)
	run := func(more ...safetensors.Tensor) (logits []float32, warnings []string) {
		f := fstest.MapFS{"config.json": text(plain), "model.safetensors": pack(t, append(slices.Clip(tensors), more...))}
		c, err := model.OpenCheckpoint(f, "tiny")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		logits = firstLogits(t, func(be backend.Backend) (*model.Loaded, error) {
			m, err := c.Load(be, backend.Options{})
			if err == nil {
				warnings = m.Warnings
			}
			return m, err
		})
		return logits, warnings
	}
	tied, _ := run()
	if same, w := run(head); !slices.Equal(same, tied) || len(w) != 0 {
		t.Errorf("the embedding once more: other logits, or the warnings %q", w)
	}
	if own, w := run(other); slices.Equal(own, tied) || len(w) != 1 || !strings.Contains(w[0], "tie_word_embeddings") {
		t.Errorf("another head: the embedding's logits, or the warnings %q", w)
	}
}
