package interop

import (
	"errors"
	"math"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/openai/openai-go/v3"
)

// TestEmbeddings: texts and ids through the Go SDK and its Azure form, from a tiny bert.
func TestEmbeddings(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "minilm")
	if out, err := exec.Command("python3", "../python/encoder.py", dir).CombinedOutput(); err != nil {
		t.Fatalf("make the model: %v\n%s", err, out)
	}
	url := startHearth(t, "--embedding-model", dir)
	for name, connect := range map[string]func(url, key string) sdk{"openai": newOpenAI3, "azure": newAzure3} {
		t.Run(name, func(t *testing.T) {
			client := connect(url, realKey).(openai3).client
			texts, err := client.Embeddings.New(t.Context(), openai.EmbeddingNewParams{
				Model: "minilm", Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a b", "hello"}}})
			if err != nil {
				t.Fatal(err)
			}
			if len(texts.Data) != 2 || texts.Usage.PromptTokens != 11 || texts.Model != "minilm" || len(texts.Data[1].Embedding) != 32 {
				t.Fatalf("%+v", texts)
			}
			ids, err := client.Embeddings.New(t.Context(), openai.EmbeddingNewParams{
				Model: "minilm", Dimensions: openai.Int(8), Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfTokenArrays: [][]int64{{2, 4, 6, 3}}}})
			if err != nil {
				t.Fatal(err)
			}
			length, short, whole := 0.0, ids.Data[0].Embedding, texts.Data[0].Embedding
			for _, x := range short {
				length += x * x
			}
			if len(short) != 8 || math.Abs(length-1) > 1e-5 || math.Abs(short[0]*whole[1]-short[1]*whole[0]) > 1e-5 {
				t.Errorf("8 of %v are %v", whole, short)
			}
			_, err = client.Embeddings.New(t.Context(), openai.EmbeddingNewParams{
				Model: "minilm", Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("")}})
			var refused *openai.Error
			if !errors.As(err, &refused) || refused.StatusCode != 400 || refused.Param != "input" {
				t.Errorf("an empty text: %v", err)
			}
		})
	}
}
