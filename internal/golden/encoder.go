package golden

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"hearth/internal/safetensors"
)

// Letters is the tokenizer.json of a WordPiece tokenizer of the letters, with bert's own tokens: [CLS] is 2, [SEP] is 3, a
// is 4, ##a is 5.
func Letters() string {
	vocab := `"[PAD]":0,"[UNK]":1,"[CLS]":2,"[SEP]":3`
	for i := range 26 {
		c := string(rune('a' + i))
		vocab += `,"` + c + `":` + strconv.Itoa(4+2*i) + `,"##` + c + `":` + strconv.Itoa(5+2*i)
	}
	return `{"version":"1.0","added_tokens":[
{"id":0,"content":"[PAD]","special":true},{"id":1,"content":"[UNK]","special":true},{"id":2,"content":"[CLS]","special":true},{"id":3,"content":"[SEP]","special":true}],
"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true},
"pre_tokenizer":{"type":"BertPreTokenizer"},
"post_processor":{"type":"BertProcessing","sep":["[SEP]",3],"cls":["[CLS]",2]},
"decoder":{"type":"WordPiece","prefix":"##","cleanup":true},
"model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":1000,"vocab":{` + vocab + `}}}`
}

// EncoderFolder writes the folder of a tiny bert that reads Letters: 32 columns, 40 positions. With ranks it has a head of
// one score, otherwise it embeds.
func EncoderFolder(t testing.TB, dir string, ranks bool) {
	t.Helper()
	const d, ffn, vocab, positions = 32, 48, 60, 40
	arch := "BertModel"
	var tensors []safetensors.Tensor
	add := func(name string, shape ...int) {
		n := 1
		for _, k := range shape {
			n *= k
		}
		raw := make([]byte, 0, 4*n)
		for i := range n {
			x := math.Sin(float64(1+i) * float64(len(name)+len(tensors)) * 0.7)
			if len(shape) == 1 {
				x = 1 + x/10
			}
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(x)))
		}
		tensors = append(tensors, safetensors.Tensor{Name: name, DType: "F32", Shape: shape, Bytes: raw})
	}
	linear := func(name string, in, out int) {
		add(name+".weight", out, in)
		add(name+".bias", out)
	}
	norm := func(name string) {
		add(name+".weight", d)
		add(name+".bias", d)
	}
	add("embeddings.word_embeddings.weight", vocab, d)
	add("embeddings.position_embeddings.weight", positions, d)
	add("embeddings.token_type_embeddings.weight", 2, d)
	norm("embeddings.LayerNorm")
	for i := range 2 {
		layer := fmt.Sprintf("encoder.layer.%d.", i)
		for _, p := range []string{"query", "key", "value"} {
			linear(layer+"attention.self."+p, d, d)
		}
		linear(layer+"attention.output.dense", d, d)
		norm(layer + "attention.output.LayerNorm")
		linear(layer+"intermediate.dense", d, ffn)
		linear(layer+"output.dense", ffn, d)
		norm(layer + "output.LayerNorm")
	}
	if ranks {
		arch = "BertForSequenceClassification"
		linear("pooler.dense", d, d)
		linear("classifier", d, 1)
	}
	var file bytes.Buffer
	if err := safetensors.Write(&file, tensors, nil); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`{"model_type":"bert","architectures":[%q],"num_labels":1,"hidden_size":%d,"num_hidden_layers":2,"intermediate_size":%d,
"num_attention_heads":2,"vocab_size":%d,"max_position_embeddings":%d,"type_vocab_size":2}`, arch, d, ffn, vocab, positions)
	for name, text := range map[string][]byte{"config.json": []byte(config), "tokenizer.json": []byte(Letters()), "model.safetensors": file.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
