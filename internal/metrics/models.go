package metrics

import "github.com/prometheus/client_golang/prometheus"

// Model is the figures of one model when they were asked for. Counts are since the server started, of all times that the model
// was loaded.
type Model struct {
	Name   string
	Loaded bool

	Running, Waiting int     // sequences
	WaitingFor       string  // what the first of those lacks: slot, memory; "": no more than a step
	OldestWait       float64 // seconds that the first one has waited
	Stuck            float64 // seconds that a step runs which does not end
	Context          int

	Computed, Cached, Restored int64 // prompt tokens: that steps ran, that the prefix cache had, those of them from disk
	Generated                  int64
	Preempted                  int64

	// Images: how many files were decoded, how many the tower ran over, how often what it had made was used again, and the bytes
	// of that.
	ImagesDecoded, ImagesEncoded, ImagesReused, ImageBytes int64

	Queries, Hits int64 // prompts that began, and those that found something

	// Bytes. Cache is what only the prefix cache holds, Used what sequences do.
	Weights, Used, Cache, Budget int64
	PageTokens                   int
	Pages                        int64 // that Budget can hold
	Caches                       bool  // there is a prefix cache
	Entries, Sessions            int
	Evicted                      map[string]int64 // bytes that left the prefix cache, by why
	Disk                         *Disk            // nil: there is none

	// Steps are their times by kind; nil: not measured, like Batch and Tokens.
	Steps  map[string]Histogram
	Batch  *Histogram // sequences in a step
	Tokens *Histogram // time between tokens

	Loads, Failed int64
	LoadTime      float64 // seconds of the last load
	Restarts      int64   // of its process
	Repairs       map[string]int64
	Encoder       *Encoder // of a model that embeds or ranks; nil: it generates
}

// Disk is the part of the prefix cache that is on disk.
type Disk struct {
	Entries                                int
	Bytes, Max                             int64
	Hits, Writes, Refused, Dropped, Errors int64
}

// Encoder is the figures of a model that embeds or ranks.
type Encoder struct{ Requests, Texts, Tokens, Truncated, Steps int64 }

// Histogram is counts of what is at most each of Bounds and more than the one before; Over is more than all of them.
type Histogram struct {
	Bounds []float64
	Counts []uint64
	Over   uint64
	Sum    float64
}

// metric makes a sample of h.
func (h *Histogram) metric(d *prometheus.Desc, labels ...string) prometheus.Metric {
	at := make(map[float64]uint64, len(h.Bounds))
	n := uint64(0)
	for i, b := range h.Bounds {
		n += h.Counts[i]
		at[b] = n
	}
	return prometheus.MustNewConstHistogram(d, n+h.Over, h.Sum, at, labels...)
}

// describe makes the name of a figure of models.
func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("hearth_"+name, help, append([]string{"model"}, labels...), nil)
}

// The figures of models.
var (
	modelLoaded  = describe("model_loaded", "1 while the model is loaded.")
	loads        = describe("model_loads_total", "Times that the model was loaded, or could not be.", "result")
	loadTime     = describe("model_load_seconds", "Time that the last load took.")
	restarts     = describe("model_process_restarts_total", "Times that the model's own process was started again.")
	weightBytes  = describe("model_weights_bytes", "Bytes of the model's weights.")
	contextLimit = describe("model_context_tokens", "Tokens that one sequence may have, prompt and answer together.")

	running    = describe("sequences_running", "Sequences that run; a request has as many as it wants answers.")
	waiting    = describe("sequences_waiting", "Sequences that wait, by what the first of them lacks: a slot (--max-sequences run), memory, or no more than the next step.", "reason")
	oldestWait = describe("sequences_oldest_wait_seconds", "How long the first of the waiting sequences has waited.")
	stuck      = describe("step_stuck_seconds", "How long a step has run that does not end; 0: none.")
	preempted  = describe("preemptions_total", "Sequences that gave their memory to an older one and started again.")

	promptTokens = describe("prompt_tokens_total", "Prompt tokens by where they came from: computed by steps, cached in memory, or restored from disk.", "source")
	generated    = describe("generation_tokens_total", "Generated tokens, those of cancelled replies included.")

	cacheQueries = describe("prefix_cache_queries_total", "Prompts that were looked up in the prefix cache.")
	cacheHits    = describe("prefix_cache_hits_total", "Of those, prompts that found something.")
	evicted      = describe("prefix_cache_evicted_bytes_total", "Bytes that left the prefix cache: memory was needed, a limit was met, they had expired, or somebody cleared it.", "reason")
	entries      = describe("prefix_cache_entries", "Ends of stored prompts and answers.")
	sessions     = describe("prefix_cache_sessions", "Conversations of which something may be stored.")
	stateBytes   = describe("kv_cache_bytes", "Bytes of state by who holds it: running sequences, or the prefix cache alone.", "use")
	stateLimit   = describe("kv_cache_limit_bytes", "Bytes of state that there may be.")
	usage        = describe("kv_cache_usage_ratio", "Part of that which running sequences hold, from 0 to 1.")

	imagesDecoded = describe("images_decoded_total", "Files of images that were decoded: of one that came before the digest is known, and pixels are made only for the tower.")
	imagesTower   = describe("images_total", "Images that steps needed: encoded by the model's tower, or reused as it made them before. What the prefix cache has needs neither.", "source")
	imageBytes    = describe("image_cache_bytes", "Bytes of what towers made of images, kept to be used again.")

	diskBytes   = describe("disk_cache_bytes", "Bytes of the prefix cache on disk.")
	diskLimit   = describe("disk_cache_limit_bytes", "Bytes that it may have there.")
	diskEntries = describe("disk_cache_entries", "Runs of pages on disk, a file each.")
	diskHits    = describe("disk_cache_hits_total", "Prompts that got something from disk.")
	diskWrites  = describe("disk_cache_runs_total", "Runs of pages that were to go to disk: written, refused as not worth it, dropped because writing is slow, or failed.", "result")

	steps     = describe("step_seconds", "Time of a step by kind: sequences decode, prompts run, or both.", "kind")
	batch     = describe("step_sequences", "Sequences in a step.")
	tokenTime = describe("inter_token_latency_seconds", "Time between two tokens of a sequence.")

	repairs = describe("tool_call_repairs_total", "What was put right in the model's tool calls, by kind; docs/dialects.md lists the kinds.", "kind")

	encoded       = describe("encoder_requests_total", "Requests to embed or rank.")
	encodedTexts  = describe("encoder_texts_total", "Texts that were embedded or ranked.")
	encodedTokens = describe("encoder_tokens_total", "Their tokens.")
	encodedCut    = describe("encoder_truncated_total", "Of the texts, those that were cut.")
	encodedSteps  = describe("encoder_steps_total", "Steps that took.")
)

// models collects the figures of models when it is asked to.
type models struct{ of func() []Model }

// Describe implements prometheus.Collector: which names there are depends on the models.
func (c *models) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *models) Collect(out chan<- prometheus.Metric) {
	for _, m := range c.of() {
		s := samples{out, label(m.Name)}
		s.model(&m)
	}
}

// samples sends those of one model.
type samples struct {
	out  chan<- prometheus.Metric
	name string
}

func (s samples) send(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels []string) {
	s.out <- prometheus.MustNewConstMetric(d, kind, v, append([]string{s.name}, labels...)...)
}

func (s samples) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s.send(d, prometheus.GaugeValue, v, labels)
}

func (s samples) count(d *prometheus.Desc, v int64, labels ...string) {
	s.send(d, prometheus.CounterValue, float64(v), labels)
}

// reasons to wait, of which each is told, so that none is missing.
var reasons = [...]string{"slot", "memory", "step"}

func (s samples) model(m *Model) {
	s.gauge(modelLoaded, number(m.Loaded))
	s.count(loads, m.Loads, "loaded")
	s.count(loads, m.Failed, "failed")
	s.gauge(loadTime, m.LoadTime)
	s.count(restarts, m.Restarts)
	s.gauge(weightBytes, float64(m.Weights))
	if e := m.Encoder; e != nil {
		s.encoder(e)
	} else {
		s.generator(m)
	}
	s.waiting(m)
}

func (s samples) waiting(m *Model) {
	for _, r := range reasons {
		n := 0
		if r == m.WaitingFor || r == "step" && m.WaitingFor == "" {
			n = m.Waiting
		}
		s.gauge(waiting, float64(n), r)
	}
	s.gauge(oldestWait, m.OldestWait)
}

func (s samples) encoder(e *Encoder) {
	s.count(encoded, e.Requests)
	s.count(encodedTexts, e.Texts)
	s.count(encodedTokens, e.Tokens)
	s.count(encodedCut, e.Truncated)
	s.count(encodedSteps, e.Steps)
}

func (s samples) generator(m *Model) {
	s.gauge(contextLimit, float64(m.Context))
	s.gauge(running, float64(m.Running))
	s.gauge(stuck, m.Stuck)
	s.count(preempted, m.Preempted)
	s.count(promptTokens, m.Computed, "computed")
	s.count(promptTokens, m.Cached-m.Restored, "cached")
	s.count(promptTokens, m.Restored, "disk")
	s.count(generated, m.Generated)
	s.count(imagesDecoded, m.ImagesDecoded)
	s.count(imagesTower, m.ImagesEncoded, "encoded")
	s.count(imagesTower, m.ImagesReused, "reused")
	s.gauge(imageBytes, float64(m.ImageBytes))
	s.count(cacheQueries, m.Queries)
	s.count(cacheHits, m.Hits)
	for why, n := range m.Evicted {
		s.count(evicted, n, why)
	}
	s.gauge(entries, float64(m.Entries))
	s.gauge(sessions, float64(m.Sessions))
	s.gauge(stateBytes, float64(m.Used), "sequences")
	s.gauge(stateBytes, float64(m.Cache), "cache")
	s.gauge(stateLimit, float64(m.Budget))
	s.gauge(usage, m.usage())
	for kind, n := range m.Repairs {
		s.count(repairs, n, kind)
	}
	if d := m.Disk; d != nil {
		s.disk(d)
	}
	for kind, h := range m.Steps {
		s.out <- h.metric(steps, s.name, kind)
	}
	if m.Batch != nil && m.Tokens != nil {
		s.out <- m.Batch.metric(batch, s.name)
		s.out <- m.Tokens.metric(tokenTime, s.name)
	}
}

func (s samples) disk(d *Disk) {
	s.gauge(diskBytes, float64(d.Bytes))
	s.gauge(diskLimit, float64(d.Max))
	s.gauge(diskEntries, float64(d.Entries))
	s.count(diskHits, d.Hits)
	s.count(diskWrites, d.Writes, "written")
	s.count(diskWrites, d.Refused, "refused")
	s.count(diskWrites, d.Dropped, "dropped")
	s.count(diskWrites, d.Errors, "failed")
}

// usage is the part of Budget that sequences hold.
func (m *Model) usage() float64 {
	if m.Budget == 0 {
		return 0
	}
	return float64(m.Used) / float64(m.Budget)
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
