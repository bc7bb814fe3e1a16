package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestConversationIsCached: turns on a conversation compute what a chain of the same responses computes, that is what is new in
// each turn, also after the server was started again on the same store.
func TestConversationIsCached(t *testing.T) {
	const page = 64 // tokens
	dir := t.TempDir()
	serve := func() *process {
		return start(t, nil, "--store-dir", filepath.Join(dir, "store"), "--prefix-cache-dir", filepath.Join(dir, "cache"), "--prefix-cache-disk-mb", "100")
	}
	type reply struct {
		ID     string
		Status string
		Usage  struct {
			Input   int `json:"input_tokens"`
			Output  int `json:"output_tokens"`
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"input_tokens_details"`
		}
	}
	p := serve()
	call := func(path string, body object) (r reply) {
		t.Helper()
		text, _ := json.Marshal(body)
		status, got := request(t, "POST", p.url+path, string(text), "Content-Type", "application/json")
		if err := json.Unmarshal(got, &r); err != nil || status != 200 {
			t.Fatalf("%s: %d %s", path, status, got)
		}
		return r
	}
	conversation := call("/v1/conversations", object{"metadata": object{"k": "v"}}).ID
	previous, whole := "", 0
	for turn := 1; turn <= 8; turn++ {
		if turn == 5 {
			stop(t, p)
			p = serve()
		}
		ask := object{"input": fmt.Sprintf("What is %d plus %d?", turn, turn+1), "instructions": strings.Repeat(longSystem, 5), "temperature": 0, "reasoning": object{"effort": "none"}}
		ask["conversation"] = conversation
		on := call("/v1/responses", ask)
		delete(ask, "conversation")
		// The chain has another beginning, so that neither finds what the other has computed.
		ask["instructions"] = strings.Repeat(longSystem, 5)[2:]
		if previous != "" {
			ask["previous_response_id"] = previous
		}
		chained := call("/v1/responses", ask)
		previous = chained.ID
		t.Logf("turn %d: %+v, in a chain %+v", turn, on.Usage, chained.Usage)
		cached, again := on.Usage.Details.Cached, turn == 5
		if again {
			whole -= whole % page // what is on disk
		}
		if cached < whole {
			t.Errorf("turn %d: %d tokens of the %d before were reused", turn, cached, whole)
		}
		if c := chained.Usage; !again && on.Usage.Input-cached != c.Input-c.Details.Cached {
			t.Errorf("turn %d: %d tokens were computed, in a chain %d", turn, on.Usage.Input-cached, c.Input-c.Details.Cached)
		}
		whole = on.Usage.Input + on.Usage.Output - 1 // the stop token never ran
	}
}
