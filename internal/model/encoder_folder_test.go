package model_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"hearth/internal/backend"
	"hearth/internal/backend/ref"
	"hearth/internal/backend/stub"
	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/safetensors"
)

const tinyBert = `{"model_type": "bert", "architectures": ["BertModel"], "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 48,
	"num_attention_heads": 2, "vocab_size": 60, "max_position_embeddings": 40}`

var meanPooling = model.Pooling{Kind: model.Embeds, Rows: backend.PoolMean, Normalize: true}

// encoderTensors are the tensors of a formula encoder, as a checkpoint stores them.
func encoderTensors(t testing.TB, config string, p model.Pooling) (all []safetensors.Tensor) {
	t.Helper()
	if _, err := (model.Synthetic{Config: []byte(config), Seed: 3, Type: quant.F32}).LoadEncoder(record(&all), backend.Options{}, p); err != nil {
		t.Fatal(err)
	}
	return all
}

func encoderFolder(t testing.TB, config string, p model.Pooling) fstest.MapFS {
	return fstest.MapFS{"config.json": text(config), "model.safetensors": pack(t, encoderTensors(t, config, p))}
}

// firstRows embeds two texts.
func firstRows(t *testing.T, load func(be backend.Backend) (*model.Encoder, error)) []float32 {
	t.Helper()
	be := ref.New()
	m, err := load(be)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	b := &backend.Batch{Tokens: []int32{1, 5, 9, 7, 2}, Spans: []backend.Span{{Slot: -1, Len: 3}, {Slot: -1, Row: 3, Len: 2}}}
	b.Pos[0] = []int32{0, 1, 2, 0, 1}
	m.Prepare(b)
	o := be.Begin(nil, b)
	defer o.End()
	rows, err := o.Floats(m.Forward(o, b))
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(rows)
}

func loadFolder(t *testing.T, folder fstest.MapFS, use *model.Pooling) []float32 {
	t.Helper()
	c, err := model.OpenCheckpoint(folder, "tiny")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := c.Pooling()
	if err != nil {
		t.Fatal(err)
	}
	if use != nil {
		p = *use
	}
	return firstRows(t, func(be backend.Backend) (*model.Encoder, error) { return c.LoadEncoder(be, backend.Options{}, p) })
}

func renamed(t *testing.T, folder fstest.MapFS, to func(string) string) fstest.MapFS {
	return tensorsAs(t, folder, func(x safetensors.Tensor) []safetensors.Tensor {
		x.Name = to(x.Name)
		return []safetensors.Tensor{x}
	})
}

func alsoHas(t *testing.T, folder fstest.MapFS, names ...string) fstest.MapFS {
	first := true
	return tensorsAs(t, folder, func(x safetensors.Tensor) []safetensors.Tensor {
		out := []safetensors.Tensor{x}
		for _, n := range names {
			if first {
				out = append(out, safetensors.Tensor{Name: n, DType: "F32", Shape: []int{1}, Bytes: make([]byte, 4)})
			}
		}
		first = false
		return out
	})
}

// TestEncoderFolders: every spelling of a checkpoint gives the formula model's bits.
func TestEncoderFolders(t *testing.T) {
	bert := encoderFolder(t, tinyBert, meanPooling)
	want := loadFolder(t, bert, nil)
	synthetic := firstRows(t, func(be backend.Backend) (*model.Encoder, error) {
		return model.Synthetic{Config: []byte(tinyBert), Seed: 3, Type: quant.F32}.LoadEncoder(be, backend.Options{}, meanPooling)
	})
	if !slices.Equal(want, synthetic) {
		t.Error("the folder's rows are not the formula's")
	}
	for name, folder := range map[string]fstest.MapFS{
		"prefixed": renamed(t, bert, func(s string) string { return "bert." + s }),
		"old norms": renamed(t, bert, func(s string) string {
			return strings.NewReplacer("LayerNorm.weight", "LayerNorm.gamma", "LayerNorm.bias", "LayerNorm.beta").Replace(s)
		}),
		"heads and buffers": alsoHas(t, bert, "embeddings.position_ids", "cls.predictions.bias", "pooler.dense.weight"),
	} {
		if !slices.Equal(loadFolder(t, folder, nil), want) {
			t.Errorf("%s: other rows", name)
		}
	}
	last := model.Pooling{Kind: model.Embeds, Rows: backend.PoolLast, Normalize: true}
	qwen := encoderFolder(t, tiny, last)
	want = loadFolder(t, qwen, &last)
	bare := renamed(t, qwen, func(s string) string { return strings.TrimPrefix(s, "model.") })
	for name, folder := range map[string]fstest.MapFS{"without prefix": bare, "with a head": alsoHas(t, qwen, "lm_head.weight")} {
		if !slices.Equal(loadFolder(t, folder, &last), want) {
			t.Errorf("%s: other rows", name)
		}
	}
}

// TestDenseFolders: layers behind the pooling have files of their own, or are with the model's.
func TestDenseFolders(t *testing.T) {
	p := meanPooling
	p.Dense = []model.Dense{{In: 32, Out: 24}, {In: 24, Out: 16, Bias: true, Act: backend.Activation{Kind: backend.TanhCap, A: 1}}}
	whole := encoderFolder(t, tinyBert, p)
	whole["modules.json"] = text(`[{"idx":0,"path":"","type":"sentence_transformers.models.Transformer"},{"path":"1_Pooling","type":"sentence_transformers.models.Pooling"},
		{"path":"2_Dense","type":"sentence_transformers.models.Dense"},{"path":"3_Dense","type":"sentence_transformers.models.Dense"},{"path":"4_Normalize","type":"sentence_transformers.models.Normalize"}]`)
	whole["1_Pooling/config.json"] = text(`{"word_embedding_dimension": 32, "pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true, "include_prompt": true}`)
	whole["2_Dense/config.json"] = text(`{"in_features": 32, "out_features": 24, "bias": false, "activation_function": "torch.nn.modules.linear.Identity"}`)
	whole["3_Dense/config.json"] = text(`{"in_features": 24, "out_features": 16, "bias": true, "activation_function": "torch.nn.modules.activation.Tanh"}`)
	want := loadFolder(t, whole, nil)
	if len(want) != 2*16 {
		t.Fatalf("%d numbers", len(want))
	}
	apart := tensorsAs(t, whole, func(x safetensors.Tensor) []safetensors.Tensor {
		if strings.HasPrefix(x.Name, "dense.") {
			return nil
		}
		return []safetensors.Tensor{x}
	})
	for i, dir := range []string{"2_Dense", "3_Dense"} {
		var own []safetensors.Tensor
		for _, x := range encoderTensors(t, tinyBert, p) {
			if rest, ok := strings.CutPrefix(x.Name, []string{"dense.0.", "dense.1."}[i]); ok {
				x.Name = "linear." + rest
				own = append(own, x)
			}
		}
		apart[dir+"/model.safetensors"] = pack(t, own)
	}
	if !slices.Equal(loadFolder(t, apart, nil), want) {
		t.Error("layers in files of their own give other rows")
	}
	for name, c := range map[string]struct {
		folder fstest.MapFS
		want   string
	}{
		"file":    {without(apart, "3_Dense/model.safetensors"), "3_Dense/model.safetensors: is missing"},
		"config":  {without(apart, "2_Dense/config.json"), "2_Dense/config.json: is missing"},
		"sizes":   {with(apart, "3_Dense/config.json", text(`{"in_features": 25, "out_features": 16}`)), "takes 25 numbers, there are 24"},
		"no size": {with(apart, "3_Dense/config.json", text(`{"in_features": 24}`)), "are no sizes"},
		"act":     {with(apart, "3_Dense/config.json", text(`{"in_features": 24, "out_features": 16, "activation_function": "torch.nn.ELU"}`)), "torch.nn.ELU is not supported"},
		"shape":   {with(apart, "3_Dense/model.safetensors", apart["2_Dense/model.safetensors"]), "expected shape [16 24]"},
	} {
		if err := openEncoder(c.folder); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func openEncoder(folder fstest.MapFS) error {
	c, err := model.OpenCheckpoint(folder, "tiny")
	if err != nil {
		return err
	}
	defer c.Close()
	p, err := c.Pooling()
	if err != nil {
		return err
	}
	m, err := c.LoadEncoder(stub.New(1), backend.Options{}, p)
	if err == nil {
		err = m.Close()
	}
	return err
}

// TestPooling reads what folders say.
func TestPooling(t *testing.T) {
	plain := encoderFolder(t, tinyBert, meanPooling)
	config := func(s string) fstest.MapFS { return with(plain, "config.json", text(s)) }
	add := func(fields string) string { return tinyBert[:len(tinyBert)-1] + ", " + fields + "}" }
	qwen := strings.Replace(tiny, `{`, `{"architectures": ["Qwen3ForCausalLM"], `, 1)
	module := func(types ...string) string {
		s := ""
		for i, typ := range types {
			s += `,{"path":"` + strings.Repeat("m", i) + `","type":"sentence_transformers.models.` + typ + `"}`
		}
		return "[" + s[1:] + "]"
	}
	for name, c := range map[string]struct {
		folder fstest.MapFS
		want   model.Pooling
		err    string
	}{
		"bert":         {plain, meanPooling, ""},
		"pooling only": {with(plain, "1_Pooling/config.json", text(`{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}`)), model.Pooling{Kind: model.Embeds, Rows: backend.PoolFirst, Normalize: true}, ""},
		"new form":     {with(plain, "1_Pooling/config.json", text(`{"pooling_mode": "lasttoken"}`)), model.Pooling{Kind: model.Embeds, Rows: backend.PoolLast, Normalize: true}, ""},
		"not normalised": {with(plain, "modules.json", text(module("Transformer", "Pooling")), "m/config.json", text(`{"pooling_mode_mean_tokens": true}`)),
			model.Pooling{Kind: model.Embeds, Rows: backend.PoolMean}, ""},
		"length":             {with(plain, "sentence_bert_config.json", text(`{"max_seq_length": 24}`)), model.Pooling{Kind: model.Embeds, Normalize: true, MaxTokens: 24}, ""},
		"chat":               {config(qwen), model.Pooling{Rows: backend.PoolLast, Normalize: true}, ""},
		"qwen3 with modules": {with(config(qwen), "modules.json", text(module("Transformer", "Pooling", "Normalize")), "m/config.json", text(`{"pooling_mode_lasttoken": true}`)), model.Pooling{Kind: model.Embeds, Rows: backend.PoolLast, Normalize: true}, ""},
		"headless":           {config(strings.Replace(qwen, "Qwen3ForCausalLM", "Qwen3Model", 1)), model.Pooling{Kind: model.Embeds, Rows: backend.PoolLast, Normalize: true}, ""},
		"generates":          {config(strings.Replace(qwen, "Qwen3ForCausalLM", "GPT2LMHeadModel", 1)), model.Pooling{Rows: backend.PoolLast, Normalize: true}, ""},
		"has a head":         {alsoHas(t, config(strings.Replace(qwen, "Qwen3ForCausalLM", "Qwen3Model", 1)), "lm_head.weight"), model.Pooling{Rows: backend.PoolLast, Normalize: true}, ""},
		"ranks":              {config(strings.Replace(add(`"num_labels": 1`), "BertModel", "BertForSequenceClassification", 1)), model.Pooling{Kind: model.Ranks, Normalize: true, Labels: 1}, ""},
		"ranks by id2label":  {config(strings.Replace(add(`"id2label": {"0": "LABEL_0"}, "sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"`), "BertModel", "BertForSequenceClassification", 1)), model.Pooling{Kind: model.Ranks, Normalize: true, Labels: 1, Raw: true}, ""},
		"classes":            {config(strings.Replace(tinyBert, "BertModel", "BertForSequenceClassification", 1)), model.Pooling{Kind: model.Ranks, Normalize: true, Labels: 2}, ""},
		"yes or no": {with(config(qwen), "modules.json", text(module("Transformer", "LogitScore")), "m/config.json", text(`{"true_token_id": 5, "false_token_id": 3}`)),
			model.Pooling{Kind: model.Ranks, Rows: backend.PoolLast, Yes: 5, No: 3}, ""},

		"two poolings":   {with(plain, "1_Pooling/config.json", text(`{"pooling_mode_cls_token": true, "pooling_mode_max_tokens": true}`)), model.Pooling{}, `1_Pooling/config.json: pooling "cls_token and max_tokens" is not supported`},
		"another module": {with(plain, "modules.json", text(module("Transformer", "CNN"))), model.Pooling{}, "module sentence_transformers.models.CNN is not supported"},
		"outside":        {with(plain, "modules.json", text(`[{"path": "../x", "type": "Pooling"}]`)), model.Pooling{}, `"../x" is outside the folder`},
		"no JSON":        {with(plain, "modules.json", text(`[`)), model.Pooling{}, "modules.json: is no valid JSON"},
		"one token":      {with(config(qwen), "modules.json", text(module("Transformer", "LogitScore")), "m/config.json", text(`{"true_token_id": 5}`)), model.Pooling{}, "should be two tokens"},
	} {
		checkpoint, err := model.OpenCheckpoint(c.folder, "tiny")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := checkpoint.Pooling()
		if len(checkpoint.Warnings) > 0 {
			t.Errorf("%s: warnings %q", name, checkpoint.Warnings)
		}
		checkpoint.Close()
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %s", name, err, c.err)
			}
			continue
		}
		if err != nil || len(got.Dense) != 0 || got.Kind != c.want.Kind || got.Rows != c.want.Rows || got.Normalize != c.want.Normalize ||
			got.MaxTokens != c.want.MaxTokens || got.Labels != c.want.Labels || got.Raw != c.want.Raw || got.Yes != c.want.Yes || got.No != c.want.No {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
}

// TestPoolingWarnings: sentence_bert_config.json only shortens texts, so what is wrong with it is a warning; what decides about
// numbers may be written carelessly, but not be broken.
func TestPoolingWarnings(t *testing.T) {
	plain := encoderFolder(t, tinyBert, meanPooling)
	const out = "sentence_bert_config.json: "
	for _, c := range []struct {
		name, file, text, want string
		most                   int
	}{
		{"length below 0", "sentence_bert_config.json", `{"max_seq_length": -1}`, out + "max_seq_length: -1 is outside [0, 1.6777216e+07]; the key is left out", 0},
		{"length as text", "sentence_bert_config.json", `{"max_seq_length": "24"}`, out + `max_seq_length: "24" is a text; it is read as 24`, 24},
		{"length cut", "sentence_bert_config.json", `{"max_seq_length": 24`, out + "is no valid JSON at byte 21, line 1: unexpected end of JSON input; the file is left out: texts may be as long as the model has positions", 0},
		{"a comma in the pooling", "1_Pooling/config.json", `{"pooling_mode_mean_tokens": true,}`, "1_Pooling/config.json: has a comma too many at byte 34, line 1, which JSON does not allow; it is read without", 0},
	} {
		k, err := model.OpenCheckpoint(with(plain, c.file, text(c.text)), "tiny")
		if err != nil {
			t.Fatal(err)
		}
		p, err := k.Pooling()
		if err != nil || p.MaxTokens != c.most || strings.Join(k.Warnings, "\n") != c.want {
			t.Errorf("%s: at most %d tokens, warnings %q, error %v, want %q", c.name, p.MaxTokens, k.Warnings, err, c.want)
		}
		e, err := k.LoadEncoder(stub.New(1), backend.Options{}, p)
		if err != nil || strings.Join(e.Warnings, "\n") != c.want {
			t.Errorf("%s: the model's warnings are %q, %v", c.name, e.Warnings, err)
		}
		k.Close()
	}
}

// TestBrokenEncoders: what is wrong with a config or a checkpoint is said by name.
func TestBrokenEncoders(t *testing.T) {
	plain := encoderFolder(t, tinyBert, meanPooling)
	edit := func(pairs ...string) fstest.MapFS {
		return with(plain, "config.json", text(strings.NewReplacer(pairs...).Replace(tinyBert)))
	}
	for name, c := range map[string]struct {
		folder fstest.MapFS
		want   string
	}{
		"act":       {edit(`"vocab_size"`, `"hidden_act": "elu", "vocab_size"`), `hidden_act is "elu", which architecture "bert" does not do here`},
		"positions": {edit(`"vocab_size"`, `"position_embedding_type": "relative_key", "vocab_size"`), "relative_key"},
		"heads":     {edit(`"num_attention_heads": 2`, `"num_attention_heads": 3`), "no multiple of num_attention_heads 3"},
		"length":    {edit(`"max_position_embeddings": 40`, `"max_position_embeddings": 0`), "max_position_embeddings is missing"},
		"eps":       {edit(`"vocab_size"`, `"layer_norm_eps": 2, "vocab_size"`), "layer_norm_eps 2"},
		"roberta":   {edit(`"bert"`, `"xlm-roberta"`, `"max_position_embeddings": 40`, `"max_position_embeddings": 2`), "leaves no positions"},
		"layers":    {edit(`"num_hidden_layers": 2`, `"num_hidden_layers": 3`), "encoder.layer.2.attention.self.query.weight"},
		"width":     {edit(`"intermediate_size": 48`, `"intermediate_size": 64`), "expected shape [64 32], found [48 32]"},
		"extra":     {alsoHas(t, plain, "encoder.layer.0.adapter.weight"), "encoder.layer.0.adapter.weight is not part"},
		"norm": {renamed(t, plain, func(s string) string {
			return strings.Replace(s, "encoder.layer.1.output.LayerNorm.bias", "encoder.layer.1.output.LayerNorm.offset", 1)
		}), "encoder.layer.1.output.LayerNorm.bias is missing"},
		"classes": {edit("BertModel", "BertForSequenceClassification"), "tells 2 classes apart"},
	} {
		if err := openEncoder(c.folder); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", name, err, c.want)
		}
	}
	if _, _, err := model.New("bert", []byte(tinyBert), 1); err == nil || !strings.Contains(err.Error(), "generates none") {
		t.Errorf("bert as a chat model: %v", err)
	}
	if _, _, err := model.New("modernbert", nil, 1); err == nil || !strings.Contains(err.Error(), "xlm-roberta") {
		t.Errorf("an unknown type: %v", err)
	}
	if _, err := (model.Synthetic{Config: []byte(tinyBert), Type: quant.F32}).LoadEncoder(stub.New(1), backend.Options{}, model.Pooling{Kind: model.Ranks, Yes: 1, No: 2}); err == nil || !strings.Contains(err.Error(), "no logits") {
		t.Errorf("bert asked for yes or no: %v", err)
	}
	if _, err := (model.Synthetic{Config: []byte(tiny), Type: quant.F32}).LoadEncoder(stub.New(1), backend.Options{}, model.Pooling{Kind: model.Ranks, Yes: 1, No: 99}); err == nil || !strings.Contains(err.Error(), "outside the vocabulary") {
		t.Errorf("tokens outside the vocabulary: %v", err)
	}
}

// FuzzEncoder: whatever a folder's files say, it loads or there is an error.
func FuzzEncoder(f *testing.F) {
	dense := `[{"path":"","type":"Transformer"},{"path":"m","type":"x.Pooling"},{"path":"d","type":"x.Dense"},{"path":"2_Normalize","type":"x.Normalize"}]`
	f.Add(tinyBert, dense, `{"pooling_mode_mean_tokens": true}`, `{"in_features": 32, "out_features": 4, "bias": false}`, `{"max_seq_length": 12}`)
	f.Add(strings.Replace(tinyBert, "BertModel", "BertForSequenceClassification", 1), `[]`, `{}`, `{}`, `{}`)
	f.Add(strings.Replace(tinyBert, `"bert"`, `"xlm-roberta"`, 1), `[{"path":"m","type":"LogitScore"}]`, `{"true_token_id": 1, "false_token_id": 2}`, `{}`, `{}`)
	f.Add(tiny, `[{"path":"m","type":"LogitScore"}]`, `{"true_token_id": 1, "false_token_id": 2}`, `{}`, `{}`)
	weights := encoderFolder(f, tinyBert, meanPooling)["model.safetensors"]
	f.Fuzz(func(t *testing.T, config, modules, pooling, layer, sentence string) {
		_ = openEncoder(fstest.MapFS{"config.json": text(config), "model.safetensors": weights, "modules.json": text(modules), "m/config.json": text(pooling),
			"d/config.json": text(layer), "1_Pooling/config.json": text(pooling), "sentence_bert_config.json": text(sentence)})
	})
}

// TestBertActivations: every activation that backends have can be between an encoder's products.
func TestBertActivations(t *testing.T) {
	var seen [][]float32
	for _, act := range []string{"gelu", "gelu_fast", "quick_gelu", "relu2", "sigmoid"} {
		config := strings.Replace(tinyBert, `"vocab_size"`, `"hidden_act": "`+act+`", "vocab_size"`, 1)
		rows := loadFolder(t, encoderFolder(t, config, meanPooling), nil)
		for _, other := range seen {
			if slices.Equal(rows, other) {
				t.Errorf("%s: the rows of another activation", act)
			}
		}
		seen = append(seen, rows)
	}
}

// TestNestedBothWays: in transformers a model of text and images does not look at the key that lets its text part's rows see what
// follows them.
func TestNestedBothWays(t *testing.T) {
	m := mutation{Key: "text_config.use_bidirectional_attention", Value: []byte("true")}
	config := m.apply(t, loadSaved(t, "gemma3").Config)
	_, err := model.Synthetic{Config: config, Seed: 3, Type: quant.F32}.LoadEncoder(stub.New(1), backend.Options{}, meanPooling)
	if err == nil || !strings.Contains(err.Error(), m.Key) {
		t.Errorf("%v does not name %s", err, m.Key)
	}
}
