package metrics

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// full is a model that has all figures.
func full() []Model {
	h := Histogram{Bounds: []float64{0.001, 0.01}, Counts: []uint64{2, 3}, Over: 1, Sum: 0.5}
	return []Model{
		{Name: "a", Loaded: true, Running: 2, Waiting: 3, WaitingFor: "memory", Computed: 10, Cached: 6, Restored: 2, Generated: 7, ImagesEncoded: 4, ImagesReused: 5, ImageBytes: 6, Budget: 100, Used: 25, PageTokens: 64, Pages: 12,
			Caches: true, Evicted: map[string]int64{"memory": 5}, Repairs: map[string]int64{"name": 1}, Disk: &Disk{Writes: 4},
			Steps: map[string]Histogram{"decode": h}, Batch: &h, Tokens: &h},
		{Name: `odd"name\`, Waiting: 1, Encoder: &Encoder{Requests: 9}},
	}
}

// text is what a scrape of m gives.
func text(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	b, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != 200 {
		t.Fatal(w.Code, err, string(b))
	}
	return string(b)
}

// used has been told of a request.
func used(vllm bool) *Metrics {
	m := New(Options{Models: full, VLLM: vllm})
	m.Enter()
	m.End(&Request{Route: "/v1/x", Status: 200, Model: "a", Took: time.Second, Refused: "queue", Bounds: []string{"form"}, Finish: "length", Hit: "prefix",
		Prompt: 16, Output: 7, Images: 3, ToolCalls: 2, First: time.Millisecond, Queued: time.Millisecond, Prefill: time.Millisecond, Decode: time.Second})
	return m
}

func TestModels(t *testing.T) {
	got := text(t, used(true))
	for _, line := range []string{
		`hearth_sequences_running{model="a"} 2`,
		`hearth_sequences_waiting{model="a",reason="memory"} 3`,
		`hearth_sequences_waiting{model="a",reason="slot"} 0`,
		`hearth_sequences_waiting{model="odd\"name\\",reason="step"} 1`,
		`hearth_prompt_tokens_total{model="a",source="computed"} 10`,
		`hearth_prompt_tokens_total{model="a",source="cached"} 4`,
		`hearth_prompt_tokens_total{model="a",source="disk"} 2`,
		`hearth_kv_cache_usage_ratio{model="a"} 0.25`,
		`hearth_step_seconds_bucket{kind="decode",model="a",le="0.001"} 2`,
		`hearth_step_seconds_bucket{kind="decode",model="a",le="0.01"} 5`,
		`hearth_step_seconds_bucket{kind="decode",model="a",le="+Inf"} 6`,
		`hearth_step_seconds_sum{kind="decode",model="a"} 0.5`,
		`hearth_encoder_requests_total{model="odd\"name\\"} 9`,
		`hearth_tool_calls_total{model="a"} 2`,
		`hearth_prompt_images_total{model="a"} 3`,
		`hearth_images_total{model="a",source="encoded"} 4`,
		`hearth_images_total{model="a",source="reused"} 5`,
		`hearth_image_cache_bytes{model="a"} 6`,
		`vllm:num_requests_running{model_name="a"} 2`,
		`vllm:num_requests_waiting{model_name="a"} 3`,
		`vllm:kv_cache_usage_perc{model_name="a"} 0.25`,
		`vllm:cache_config_info{block_size="64",enable_prefix_caching="true",model_name="a",num_gpu_blocks="12"} 1`,
		`vllm:prompt_tokens_total{model_name="a"} 16`,
		`vllm:prefix_cache_hits_total{model_name="a"} 6`,
		`vllm:request_success_total{finished_reason="length",model_name="a"} 1`,
		`vllm:time_to_first_token_seconds_count{model_name="a"} 1`,
		`vllm:request_generation_tokens_sum{model_name="a"} 7`,
	} {
		if !strings.Contains(got, "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

// TestNil: where there are none, nothing happens and nothing is allocated.
func TestNil(t *testing.T) {
	var m *Metrics
	if n := testing.AllocsPerRun(100, func() { m.Enter(); m.End(&Request{}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

var update = flag.Bool("update", false, "write the list of docs/metrics.md")

// TestDocs holds the list of docs/metrics.md to what there is.
func TestDocs(t *testing.T) {
	const file, begin, end = "../../docs/metrics.md", "<!-- list -->\n", "<!-- end of list -->"
	type row struct{ help, kind, labels string }
	rows := map[string]*row{}
	get := func(name string) *row {
		if rows[name] == nil {
			rows[name] = &row{}
		}
		return rows[name]
	}
	for line := range strings.Lines(text(t, used(true))) {
		line = strings.TrimSpace(line)
		if s, ok := strings.CutPrefix(line, "# HELP "); ok {
			name, help, _ := strings.Cut(s, " ")
			get(name).help = help
		} else if s, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(s, " ")
			get(name).kind = kind
		} else if name, rest, ok := strings.Cut(line, "{"); ok {
			var labels []string
			for _, pair := range strings.Split(rest, ",") {
				if label, _, ok := strings.Cut(pair, "="); ok && label != "le" && !strings.Contains(label, `"`) {
					labels = append(labels, label)
				}
			}
			for _, end := range []string{"_bucket", "_sum", "_count"} {
				if base := strings.TrimSuffix(name, end); rows[base] != nil {
					name = base
				}
			}
			get(name).labels = strings.Join(labels, ", ")
		}
	}
	var list strings.Builder
	list.WriteString("| name | kind | labels | |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if strings.HasPrefix(name, "hearth_") || strings.HasPrefix(name, "vllm:") {
			r := rows[name]
			fmt.Fprintf(&list, "| `%s` | %s | %s | %s |\n", name, r.kind, r.labels, strings.ReplaceAll(r.help, `\"`, `"`))
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(b), begin)
	old, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("%s has no list", file)
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+list.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old != list.String() {
		t.Errorf("%s lists other metrics than there are: go test ./internal/metrics -update", file)
	}
}

// TestDeployed: dashboard and alerts ask for nothing that is not listed in docs/metrics.md.
func TestDeployed(t *testing.T) {
	listed, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"prometheus/alerts.yml", "prometheus/alerts_test.yml", "grafana/hearth.json"} {
		b, err := os.ReadFile("../../deploy/" + file)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`hearth_[a-z0-9_]+`).FindAllString(string(b), -1)
		if len(names) < 5 || strings.HasSuffix(file, ".json") && !json.Valid(b) {
			t.Errorf("%s: %d names, or no JSON", file, len(names))
		}
		for _, name := range names {
			base := name
			for _, end := range []string{"_bucket", "_sum", "_count"} {
				base = strings.TrimSuffix(base, end)
			}
			if !strings.Contains(string(listed), "\n| `"+name+"` |") && !strings.Contains(string(listed), "\n| `"+base+"` |") {
				t.Errorf("%s asks for %s, which is not there", file, name)
			}
		}
	}
}

// FuzzLabel: a model may be called as a folder is, in bytes of any kind: requests are counted and the scrape has its figures,
// under a name that is the model's own where that is UTF-8.
func FuzzLabel(f *testing.F) {
	for _, name := range []string{"org/model", "", "caf\xe9", "\xff\xfe", "a\nb\"\\", "é\xc3", "\x00", "�"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		l := label(name)
		if !utf8.ValidString(l) || utf8.ValidString(name) && l != name || len(l) > 4*len(name) {
			t.Errorf("%q is %q", name, l)
		}
		m := New(Options{VLLM: true, Models: func() []Model {
			return []Model{{Name: name, Encoder: &Encoder{Requests: 9}}, {Name: name + "2", Disk: &Disk{}}}
		}})
		m.Enter()
		m.End(&Request{Route: "/v1/x", Status: 200, Model: name, Finish: "stop", Hit: "prefix", Output: 1, First: time.Millisecond})
		escaped := strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(l)
		if got := text(t, m); !strings.Contains(got, `hearth_encoder_requests_total{model="`+escaped+`"} 9`) {
			t.Errorf("%q: nothing of %s", name, escaped)
		}
	})
}
