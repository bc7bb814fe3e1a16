package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// perf is the [perf] line of one request, for benchmarks that read the log. Rates are 0 where there is nothing to divide.
type perf struct {
	Request       string  `json:"request"`
	Input         int     `json:"input_tokens"`
	Output        int     `json:"output_tokens"`
	Cached        int     `json:"cached_tokens"`
	Rest          int     `json:"rest_tokens"`
	PromptTPS     float64 `json:"prompt_tps"`
	GenerationTPS float64 `json:"generation_tps"`
	PeakMemoryGB  float64 `json:"peak_memory_gb"`
	TTFT          float64 `json:"ttft_s"`
	Queue         float64 `json:"queue_s"`
	Wall          float64 `json:"wall_s"`
	ToolCalls     int     `json:"tool_calls"`
	Thinking      bool    `json:"thinking"`
	PromptCache   string  `json:"prompt_cache"`
	Finish        string  `json:"finish"`

	Bounds []chat.Bound `json:"bounds,omitempty"` // that were met, see chat.Usage
}

// measure writes the [cache] and [perf] lines of a request that reached a model, in one piece.
func (s *Server) measure(info *wire.Info, began time.Time, took time.Duration) {
	u := info.Usage
	if s.o.Perf == nil && !s.o.PerfLog || u == nil || u.Hit == "" && info.Finish == "" { // the last: nothing was generated, as for embeddings
		return
	}
	p := perf{Request: info.RequestID, Input: u.Prompt, Output: u.Output, Cached: u.Cached, Rest: u.Prompt - u.Cached,
		PromptTPS: rate(u.Prompt-u.Cached, u.Prefill), GenerationTPS: rate(u.Output-1, u.Decode),
		Queue: u.Queued.Seconds(), Wall: took.Seconds(), ToolCalls: info.ToolCalls, Thinking: u.Reasoning > 0,
		PromptCache: u.Hit, Finish: string(info.Finish), Bounds: met(info)}
	if !info.First.IsZero() {
		p.TTFT = info.First.Sub(began).Seconds()
	}
	if s.o.PeakMemory != nil {
		p.PeakMemoryGB = float64(s.o.PeakMemory()) / 1e9
	}
	if s.o.PerfLog {
		s.o.Log.LogAttrs(context.Background(), slog.LevelInfo, "cache", slog.String("request", p.Request), slog.String("session", cmp.Or(info.Session, "-")),
			slog.Bool("hit", u.Cached > 0), slog.String("reason", u.Hit), slog.Int("cached_tokens", p.Cached), slog.Int("rest_tokens", p.Rest), slog.Int("common_tokens", u.Common),
			slog.String("message", parting(u)), slog.Int("spliced_tokens", u.Spliced), slog.String("parting", strings.TrimPrefix(s.text(u), " parting=")))
		s.o.Log.LogAttrs(context.Background(), slog.LevelInfo, "perf", slog.Any("perf", p))
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[cache] request=%s session=%s hit=%t reason=%s cached_tokens=%d rest_tokens=%d common_tokens=%d message=%s spliced_tokens=%d%s\n[perf] ",
		p.Request, cmp.Or(info.Session, "-"), u.Cached > 0, u.Hit, p.Cached, p.Rest, u.Common, parting(u), u.Spliced, s.text(u))
	_ = json.NewEncoder(&b).Encode(p) // plain numbers and strings
	_, _ = s.o.Perf.Write([]byte(b.String()))
}

// parting is the message in which a prompt parted from what was stored.
func parting(u *chat.Usage) string {
	if u.Parted == 0 {
		return "-"
	}
	return strconv.Itoa(u.Parted - 1)
}

// text is the field with the text around that place, if that may be logged.
func (s *Server) text(u *chat.Usage) string {
	if text := wire.PartingText(u); s.o.LogPrompts && text != "" {
		return " parting=" + text
	}
	return ""
}

func rate(n int, d time.Duration) float64 {
	if n <= 0 || d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}
