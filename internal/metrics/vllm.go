package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// vllm gives some figures under the names that vLLM has for them. The Gateway API's inference extension, llm-d and dashboards
// read these; the first asks for the numbers of waiting and running requests, the part of the cache that is in use, and
// cache_config_info.
type vllm struct{ of func() []Model }

func vdescribe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("vllm:"+name, help, append([]string{"model_name"}, labels...), nil)
}

// The names of vLLM, as its V1 engine has them.
var (
	vRunning   = vdescribe("num_requests_running", "Number of requests that run.")
	vWaiting   = vdescribe("num_requests_waiting", "Number of requests that wait.")
	vUsage     = vdescribe("kv_cache_usage_perc", "Part of the KV cache that is in use; 1 is all of it.")
	vConfig    = vdescribe("cache_config_info", "How the KV cache is laid out.", "block_size", "num_gpu_blocks", "enable_prefix_caching")
	vPreempted = vdescribe("num_preemptions_total", "Requests that were preempted.")
	vPrompt    = vdescribe("prompt_tokens_total", "Prompt tokens, cached ones included.")
	vGenerated = vdescribe("generation_tokens_total", "Generated tokens.")
	vQueries   = vdescribe("prefix_cache_queries_total", "Prompt tokens that were looked up in the prefix cache.")
	vHits      = vdescribe("prefix_cache_hits_total", "Prompt tokens that it had.")
	vTokenTime = vdescribe("inter_token_latency_seconds", "Time between two tokens of a request.")
)

// Describe implements prometheus.Collector: which names there are depends on the models.
func (c *vllm) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *vllm) Collect(out chan<- prometheus.Metric) {
	for _, m := range c.of() {
		if m.Encoder == nil {
			samples{out, label(m.Name)}.vllm(&m)
		}
	}
}

func (s samples) vllm(m *Model) {
	s.gauge(vRunning, float64(m.Running))
	s.gauge(vWaiting, float64(m.Waiting))
	s.gauge(vUsage, m.usage())
	s.gauge(vConfig, 1, strconv.Itoa(m.PageTokens), strconv.FormatInt(m.Pages, 10), strconv.FormatBool(m.Caches))
	s.count(vPreempted, m.Preempted)
	s.count(vPrompt, m.Computed+m.Cached)
	s.count(vGenerated, m.Generated)
	s.count(vQueries, m.Computed+m.Cached)
	s.count(vHits, m.Cached)
	if m.Tokens != nil {
		s.out <- m.Tokens.metric(vTokenTime, s.name)
	}
}

// finishedReason is vLLM's word for why a reply ended.
func finishedReason(finish string) string {
	switch finish {
	case "length":
		return "length"
	case "cancelled":
		return "abort"
	case "error":
		return "error"
	}
	return "stop"
}
