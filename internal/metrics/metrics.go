// Package metrics tells Prometheus what the server does. It keeps the counts of requests, which package server brings one by
// one when they have ended, and asks for the figures of the models when somebody scrapes: those are counted where they arise,
// as plain numbers, so that no step and no token waits for this package. Package cli joins the two. docs/metrics.md lists what
// there is.
//
// No label has a value that a caller chooses: routes are patterns, models are those that answered, reasons are words of ours.
package metrics

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Options configures Metrics.
type Options struct {
	Version, Commit string
	// Models gives the figures of all models, whenever somebody scrapes. nil: there are none.
	Models func() []Model
	// Reasons are those of Request.Refused that are told of before there is one, so that the first of them is seen to come.
	Reasons []string
	// VLLM adds the names of vLLM, which gateways and dashboards know, beside the own ones.
	VLLM bool
}

// Metrics is the figures of one server. Its methods may be called from any goroutine, and on nil, where they do nothing.
type Metrics struct {
	registry *prometheus.Registry
	handler  http.Handler

	inFlight prometheus.Gauge
	requests *prometheus.CounterVec
	refused  *prometheus.CounterVec
	bounds   *prometheus.CounterVec
	finished *prometheus.CounterVec
	success  *prometheus.CounterVec // vLLM's name; nil: it is not wanted
	hits     *prometheus.CounterVec
	calls    *prometheus.CounterVec
	images   *prometheus.CounterVec

	took, first, queued, prefill, decode histograms // seconds
	prompt, output                       histograms // tokens
}

// histograms is one by model, under one name or two.
type histograms []*prometheus.HistogramVec

func (h histograms) observe(model string, v float64) {
	for _, x := range h {
		x.WithLabelValues(model).Observe(v)
	}
}

// Bounds of histograms. Prompts take from milliseconds to tens of minutes.
var (
	seconds = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	tokens  = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000}
)

// New makes the metrics of a server.
func New(o Options) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hearth_" + name, Help: help}, labels)
	}
	registry := prometheus.NewRegistry()
	histogram := func(name, help string, buckets []float64) (h histograms) {
		add := func(prefix, label string) {
			x := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets}, []string{label})
			registry.MustRegister(x)
			h = append(h, x)
		}
		if add("hearth_", "model"); o.VLLM {
			add("vllm:", "model_name")
		}
		return h
	}
	m := &Metrics{
		registry: registry,
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "hearth_http_requests_in_flight", Help: "Requests that are being answered."}),
		requests: counter("http_requests_total", "Requests that have been answered, by the pattern of their path, status and the model that answered (\"\": none did).", "route", "status", "model"),
		refused:  counter("requests_refused_total", "Requests that were refused, by the bound they met or the kind of the error.", "reason"),
		bounds:   counter("bounds_met_total", "Requests that met a bound, refused or not; docs/security.md lists the bounds.", "bound"),
		finished: counter("requests_finished_total", "Replies of models, by why they ended.", "model", "reason"),
		hits:     counter("prompts_total", "Prompts that began, by what the prefix cache had of them.", "model", "cache"),
		calls:    counter("tool_calls_total", "Tool calls in replies.", "model"),
		images:   counter("prompt_images_total", "Images in prompts that began, prepared for the model's tower.", "model"),
		took:     histogram("e2e_request_latency_seconds", "Time from a request's arrival to the end of its reply.", seconds),
		first:    histogram("time_to_first_token_seconds", "Time from a request's arrival to the first piece of its reply, waiting included.", seconds),
		queued:   histogram("request_queue_time_seconds", "Time that a prompt waited for its first step.", seconds),
		prefill:  histogram("request_prefill_time_seconds", "Time from a prompt's first step to its first token.", seconds),
		decode:   histogram("request_decode_time_seconds", "Time from the first token to the last.", seconds),
		prompt:   histogram("request_prompt_tokens", "Prompt tokens of a request, cached ones included.", tokens),
		output:   histogram("request_generation_tokens", "Tokens generated for a request, also for one that was cancelled.", tokens),
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "hearth_build_info", Help: "Version of this server; always 1.",
		ConstLabels: prometheus.Labels{"version": o.Version, "commit": o.Commit}})
	info.Set(1)
	m.registry.MustRegister(info, m.inFlight, m.requests, m.refused, m.bounds, m.finished, m.hits, m.calls, m.images,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, r := range o.Reasons {
		m.refused.WithLabelValues(r)
	}
	if o.Models != nil {
		m.registry.MustRegister(&models{of: o.Models})
	}
	if o.VLLM {
		m.success = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "vllm:request_success_total", Help: "Requests that ended, by why."},
			[]string{"model_name", "finished_reason"})
		m.registry.MustRegister(m.success)
		if o.Models != nil {
			m.registry.MustRegister(&vllm{of: o.Models})
		}
	}
	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	return m
}

// ServeHTTP answers a scrape.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.handler.ServeHTTP(w, r) }

// Request is one that has been answered.
type Request struct {
	Route  string // pattern of its path
	Status int
	Model  string // that answered; "": none
	Took   time.Duration

	Refused string   // why, a word of ours; "": it was not
	Bounds  []string // that it met, refused or not

	// Of a reply of a model; Finish is "" where there was none.
	Finish                  string
	Hit                     string // how its prompt stood to the prefix cache; "": not known
	Prompt, Output          int    // tokens
	Images                  int    // in the prompt
	ToolCalls               int
	First                   time.Duration // 0: there was none
	Queued, Prefill, Decode time.Duration
}

// Enter counts a request that is being answered, until End.
func (m *Metrics) Enter() {
	if m != nil {
		m.inFlight.Inc()
	}
}

// End counts a request that has been answered.
func (m *Metrics) End(r *Request) {
	if m == nil {
		return
	}
	model := label(r.Model)
	m.inFlight.Dec()
	m.requests.WithLabelValues(r.Route, strconv.Itoa(r.Status), model).Inc()
	if r.Refused != "" {
		m.refused.WithLabelValues(r.Refused).Inc()
	}
	for _, b := range r.Bounds {
		m.bounds.WithLabelValues(b).Inc()
	}
	if model == "" || r.Finish == "" {
		return
	}
	m.finished.WithLabelValues(model, r.Finish).Inc()
	if m.success != nil {
		m.success.WithLabelValues(model, finishedReason(r.Finish)).Inc()
	}
	m.took.observe(model, r.Took.Seconds())
	m.prompt.observe(model, float64(r.Prompt))
	m.output.observe(model, float64(r.Output))
	m.calls.WithLabelValues(model).Add(float64(r.ToolCalls))
	if r.First > 0 {
		m.first.observe(model, r.First.Seconds())
	}
	if r.Hit == "" { // it has not begun
		return
	}
	m.hits.WithLabelValues(model, r.Hit).Inc()
	m.images.WithLabelValues(model).Add(float64(r.Images))
	m.queued.observe(model, r.Queued.Seconds())
	if r.Output > 0 {
		m.prefill.observe(model, r.Prefill.Seconds())
		m.decode.observe(model, r.Decode.Seconds())
	}
}

// label is the name of a model as labels can have it: Prometheus takes nothing but UTF-8, and a folder may have any name.
// Bytes that are none are written as \xff.
func label(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	var b strings.Builder
	for len(name) > 0 {
		r, n := utf8.DecodeRuneInString(name)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\x%02x`, name[0])
		} else {
			b.WriteString(name[:n])
		}
		name = name[n:]
	}
	return b.String()
}
