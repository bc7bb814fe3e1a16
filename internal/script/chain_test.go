package script

import (
	"encoding/json"
	"testing"

	"hearth/internal/server"
	"hearth/internal/store"
	"hearth/internal/wire"
	"hearth/internal/wire/responses"
)

// respelled are families whose calls the demo's template cannot leave as they were generated: it has other marks around them.
var respelled = map[string]bool{"harmony": true, "muse": true}

// TestChains: in 20 turns that build on each other by previous_response_id, each a call in the syntax of a family, every turn
// computes what it adds and nothing else, but for the call before where the template respells it; also after a restart over the
// same store, of whose first turn nothing is in the cache.
func TestChains(t *testing.T) {
	for _, s := range scenesOf(t, "argument_string") {
		dir := t.TempDir()
		var kept *store.Store
		serve := func() *apis {
			a := newAPIs(t, "", 0, []scene{s})
			kept = store.New(store.Options{Mode: store.Disk, Dir: dir})
			a.Handler = server.New(server.Options{Models: a, Protocols: []wire.Protocol{responses.Protocol{Store: kept}},
				HostNames: []string{}, Health: func() server.Health { return server.Health{} }})
			return a
		}
		a := serve()
		said := s.family + "\n" + s.raw // what the script repeats
		input := []any{map[string]any{"role": "user", "content": said}}
		previous, ran := "", 0
		for turn := range 20 {
			restarted := turn == 10
			if restarted {
				kept.Close()
				a = serve()
			}
			body := map[string]any{"input": input, "tools": []any{map[string]any{"type": "function", "name": "f", "parameters": json.RawMessage(parameters)}}}
			if previous != "" {
				body["previous_response_id"] = previous
			}
			b, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			w := a.post(t, "/v1/responses", string(b))
			var r struct {
				ID     string
				Output []struct {
					Type string
					Call string `json:"call_id"`
				}
				Usage struct {
					Input   int `json:"input_tokens"`
					Output  int `json:"output_tokens"`
					Details struct {
						Cached int `json:"cached_tokens"`
					} `json:"input_tokens_details"`
				}
			}
			if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil || len(r.Output) != 1 || r.Output[0].Type != "function_call" {
				t.Fatalf("%s: turn %d: %s, %v", s.family, turn, w.Body, err)
			}
			if computed := r.Usage.Input - r.Usage.Details.Cached; turn > 0 && !restarted && computed > r.Usage.Input-ran {
				t.Errorf("%s: turn %d computes %d tokens of %d, %d had run", s.family, turn, computed, r.Usage.Input, ran)
			}
			if ran = r.Usage.Input; respelled[s.family] {
				ran -= 4 // what opens the answer
			} else {
				ran += r.Usage.Output - 1 // the last token was sampled, and did not run
			}
			previous = r.ID
			input = []any{map[string]any{"type": "function_call_output", "call_id": r.Output[0].Call, "output": said}}
		}
		kept.Close()
	}
}
