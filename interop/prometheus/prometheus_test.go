// Package prometheus has a real Prometheus scrape a running hearth, and asks it every query of the dashboard and the alerts of
// deploy/: `make prometheus`. It is only a test, run by hand; its table stands in docs/metrics.md.
package prometheus

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hearth/internal/golden"
	"hearth/interop/program"
)

var (
	binary = flag.String("hearth", "", "the hearth binary under test; without it the test is skipped")
	table  = flag.String("table", "", "file that takes the table of queries and values, as Markdown")
)

// query is one of those in deploy/.
type query struct{ of, expr string }

const deploy = "../../deploy/"

// dashboard is the queries of the panels, as Grafana fills them in.
func dashboard(t *testing.T) (all []query) {
	t.Helper()
	b, err := os.ReadFile(deploy + "grafana/hearth.json")
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err == nil {
		err = json.Unmarshal(b, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("$__rate_interval", "30s", "$model", ".*", "$job", "hearth")
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all = append(all, query{p.Title, fill.Replace(target.Expr)})
		}
	}
	return all
}

// alerts is the left sides of the alerts' comparisons: whole ones give nothing while all is well.
func alerts(t *testing.T) (all []query) {
	t.Helper()
	b, err := os.ReadFile(deploy + "prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)- alert: (\S+)\n\s+expr: (.*) > [0-9.]+$`).FindAllStringSubmatch(string(b), -1) {
		all = append(all, query{m[1], m[2]})
	}
	if n := bytes.Count(b, []byte("- alert:")); n == 0 || n != len(all) {
		t.Fatalf("%d alerts, %d comparisons", n, len(all))
	}
	return all
}

// start runs Prometheus on the configuration of deploy/, with the target that is there, and returns its address.
func start(t *testing.T, target string) string {
	t.Helper()
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0") // a free port
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	b, err := os.ReadFile(deploy + "prometheus/prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	config := strings.NewReplacer("localhost:8080", u.Host, "_interval: 15s", "_interval: 1s").Replace(string(b))
	rules, err := os.ReadFile(deploy + "prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"prometheus.yml": config, "alerts.yml": string(rules)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("prometheus", "--config.file", filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", addr)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(out.String())
		}
	})
	return "http://" + addr
}

// sample is one series of a result.
type sample struct {
	Metric map[string]string
	Value  [2]any // time, and the value as text
}

// get decodes the data of an answer of Prometheus' API.
func get(path string, data any) error {
	resp, err := http.Get(path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var r struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil || r.Status != "success" {
		return fmt.Errorf("%s: %d %v %s", path, resp.StatusCode, err, r.Error)
	}
	return json.Unmarshal(r.Data, data)
}

// ask gives the series of a query that have a value.
func ask(prom, expr string) ([]sample, error) {
	var d struct{ Result []sample }
	if err := get(prom+"/api/v1/query?query="+url.QueryEscape(expr), &d); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(d.Result, func(s sample) bool {
		v, err := strconv.ParseFloat(fmt.Sprint(s.Value[1]), 64)
		return err != nil || math.IsNaN(v)
	}), nil
}

// load is a round of requests of all kinds: streams and documents, tools, long prompts that come again, cancels, refusals,
// vectors.
func load(server string) {
	long := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 40)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			text := fmt.Sprintf("Hello %d", i%3)
			if i%2 == 0 {
				text = long + text
			}
			post(server+"/v1/messages", fmt.Sprintf(`{"max_tokens":40,"messages":[{"role":"user","content":%q}]}`, text), 0)
			post(server+"/v1/chat/completions", fmt.Sprintf(`{"max_tokens":40,"stream":true,"messages":[{"role":"user","content":%q}],
				"tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object","properties":{"a":{"type":"number"}}}}}],"tool_choice":"required"}`, text), 0)
			post(server+"/v1/responses", fmt.Sprintf(`{"max_output_tokens":20,"input":%q}`, text), 0)
		})
	}
	wg.Go(func() { // leaves early
		post(server+"/v1/messages", `{"max_tokens":2000,"stream":true,"messages":[{"role":"user","content":"Count"}]}`, 20*time.Millisecond)
	})
	wg.Go(func() {
		post(server+"/v1/embeddings", `{"model":"minilm","input":["hello","world"]}`, 0)
		post(server+"/v1/messages", `{"max_tokens":1,"stop_sequences":[`+strings.Repeat(`"x",`, 2000)+`"x"],"messages":[{"role":"user","content":"Hi"}]}`, 0)
		post(server+"/v1/nothing", `{}`, 0)
	})
	wg.Wait()
}

// post reads the answer, for so long if limit is not 0.
func post(to, body string, limit time.Duration) {
	ctx := context.Background()
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(body))
	if err != nil {
		return
	}
	r.Header.Set("Content-Type", "application/json")
	if resp, err := http.DefaultClient.Do(r); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

// TestPrometheus: the target is up, every rule is evaluated, and every query gives a value.
func TestPrometheus(t *testing.T) {
	if *binary == "" {
		t.Skip("run by hand: make prometheus")
	}
	embeds := filepath.Join(t.TempDir(), "minilm")
	if err := os.Mkdir(embeds, 0o755); err != nil {
		t.Fatal(err)
	}
	golden.EncoderFolder(t, embeds, false)
	s := program.Serve(t, *binary, append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir()), io.Discard, "--config", "off", "--enable-metrics", "--metrics-vllm", "--max-sequences", "3", "--store", "memory", "--embedding-model", embeds)
	prom := start(t, s.URL)
	queries := slices.Concat(dashboard(t), alerts(t),
		[]query{{"a gateway", "vllm:num_requests_waiting"}, {"a gateway", "vllm:num_requests_running"}, {"a gateway", "vllm:kv_cache_usage_perc"}, {"a gateway", "vllm:cache_config_info"}})
	results := make([][]sample, len(queries))
	var missing []string
	deadline := time.Now().Add(2 * time.Minute)
	for round := 0; ; round++ {
		load(s.URL)
		missing = missing[:0]
		for i, q := range queries {
			var err error
			if results[i], err = ask(prom, q.expr); err != nil || len(results[i]) == 0 {
				missing = append(missing, fmt.Sprintf("%s: %s: %v", q.of, q.expr, err))
			}
		}
		if len(missing) == 0 && round > 0 || time.Now().After(deadline) {
			break
		}
	}
	for _, m := range missing {
		t.Errorf("no data: %s", m)
	}
	check(t, prom)
	report(t, queries, results)
}

// check asks for the health of targets and rules.
func check(t *testing.T, prom string) {
	t.Helper()
	var targets struct {
		ActiveTargets []struct{ Health, LastError string }
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	if err := get(prom+"/api/v1/targets", &targets); err != nil || len(targets.ActiveTargets) != 1 || targets.ActiveTargets[0].Health != "up" {
		t.Errorf("targets: %v %+v", err, targets)
	}
	if err := get(prom+"/api/v1/rules", &rules); err != nil || len(rules.Groups) != 1 {
		t.Errorf("rules: %v %+v", err, rules)
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if r.Health != "ok" {
				t.Errorf("rule %s: %s %s", r.Name, r.Health, r.LastError)
			}
		}
	}
}

// report logs the table, or writes it.
func report(t *testing.T, queries []query, results [][]sample) {
	t.Helper()
	var b strings.Builder
	b.WriteString("| panel or alert | query | series | the first |\n|---|---|---|---|\n")
	for i, q := range queries {
		value := "none"
		if len(results[i]) > 0 {
			r := results[i][0]
			v, _ := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
			var labels []string
			for _, name := range []string{"route", "status", "reason", "model", "kind", "source", "use", "cache", "bound", "result"} {
				if l := r.Metric[name]; l != "" {
					labels = append(labels, l)
				}
			}
			value = strings.TrimSpace(strings.Join(labels, " ") + " " + strconv.FormatFloat(v, 'g', 4, 64))
		}
		fmt.Fprintf(&b, "| %s | `%s` | %d | %s |\n", q.of, strings.ReplaceAll(q.expr, "|", `\|`), len(results[i]), value)
	}
	if *table == "" {
		t.Log("\n" + b.String())
	} else if err := os.WriteFile(*table, []byte(b.String()), 0o644); err != nil {
		t.Error(err)
	}
}
