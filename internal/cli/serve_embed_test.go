package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hearth/internal/golden"
)

// encoderDir is a tiny bert in a folder of that name.
func encoderDir(t *testing.T, name string, ranks bool) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	golden.EncoderFolder(t, dir, ranks)
	return dir
}

// TestServeEncoders: models that embed and rank beside the demo, and one alone.
func TestServeEncoders(t *testing.T) {
	embeds := encoderDir(t, "minilm", false)
	out, err := command(t, nil, "show", embeds, "--precision", "exact").Output()
	if want := "precision     exact: cosine to float32 "; err != nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), "32 numbers, length 1: yes") {
		t.Errorf("show: %v\n%s", err, out)
	}
	p := start(t, nil, "--embedding-model", embeds, "--rerank-model", encoderDir(t, "judge", true), "--precision", "exact", "--embedding-max-length", "20")
	status, body := request(t, "POST", p.url+"/v1/embeddings", `{"model": "minilm", "input": ["hello", "hello world"], "dimensions": 5}`)
	var reply struct {
		Data []struct {
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &reply); err != nil || status != 200 || len(reply.Data) != 2 || len(reply.Data[0].Embedding) != 5 {
		t.Errorf("%d %s", status, body)
	}
	long := strings.Repeat("x", 60)
	for body, want := range map[string]int{
		`{"input": "` + long + `"}`: 400, `{"input": "` + long + `", "truncate": true}`: 200, `{"model": "demo", "input": "x"}`: 400, `{"model": "bge", "input": "x"}`: 404,
	} {
		if status, got := request(t, "POST", p.url+"/v1/embeddings", body); status != want {
			t.Errorf("%.60s: %d, want %d: %s", body, status, want, got)
		}
	}
	if status, got := request(t, "POST", p.url+"/v1/rerank", `{"query": "a", "documents": ["b", "c"], "top_n": 1}`); status != 200 || !strings.Contains(string(got), "relevance_score") {
		t.Errorf("rerank: %d %s", status, got)
	}
	if status, got := request(t, "POST", p.url+"/v1/chat/completions", `{"model": "minilm", "messages": [{"role": "user", "content": "q"}]}`); status != 400 || !strings.Contains(string(got), "embeds texts and generates none") {
		t.Errorf("chat: %d %s", status, got)
	}
	_, list := request(t, "GET", p.url+"/v1/models", "")
	for _, want := range []string{`"kind":"chat"`, `"kind":"embedding"`, `"kind":"rerank"`} {
		if !strings.Contains(string(list), want) {
			t.Errorf("models: no %s in %s", want, list)
		}
	}

	_, page := request(t, "GET", p.url+"/v1/status", "")
	for _, want := range []string{`"embedding":[{"model":"minilm","kind":"embedding","total_requests":`, `"precision":{"name":"exact","rounding":"cosine to float32 `} {
		if !strings.Contains(string(page), want) {
			t.Errorf("status: no %s in %s", want, page)
		}
	}

	alone := start(t, nil, embeds)
	if status, got := request(t, "POST", alone.url+"/openai/deployments/minilm/embeddings?api-version=1", `{"input": [[2, 4, 3]], "encoding_format": "base64"}`); status != 200 || !strings.Contains(string(got), `"prompt_tokens":3`) {
		t.Errorf("alone: %d %s", status, got)
	}
	if status, got := request(t, "POST", alone.url+"/v1/messages", `{"max_tokens": 1, "messages": [{"role": "user", "content": "q"}]}`); status != 400 {
		t.Errorf("messages of an embedding model: %d %s", status, got)
	}
	if status, got := request(t, "GET", alone.url+"/health", ""); status != 200 || !strings.Contains(string(got), `"status":"ok"`) {
		t.Errorf("health: %d %s", status, got)
	}
}
