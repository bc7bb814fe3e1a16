package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// Bounds of request summaries.
const (
	maxSummaries = 500 // files; the oldest go
	maxListed    = 200 // messages and tools of one request: the first and the last
)

// summary is what is written about a request: what it is made of and how much of it, none of what it says. It holds no
// text, no arguments and no keys.
type summary struct {
	Time     time.Time         `json:"time"`
	ID       string            `json:"request_id"`
	Path     string            `json:"path"`
	Bytes    int64             `json:"body_bytes"` // -1: not told
	Headers  map[string]string `json:"headers"`
	Model    string            `json:"model"`
	Max      int               `json:"max_tokens,omitempty"`
	Choice   string            `json:"tool_choice"`
	Thinking chat.Thinking     `json:"thinking"`
	Stops    int               `json:"stop_sequences"`
	Messages []messageSummary  `json:"messages"`
	Left     int               `json:"messages_left_out,omitempty"`
	Tools    []toolSummary     `json:"tools"`
}

type messageSummary struct {
	Role  chat.Role `json:"role"`
	Parts []string  `json:"parts"` // kind and bytes: "text 120"
}

type toolSummary struct {
	Name        string `json:"name"`
	Description int    `json:"description_bytes"`
	Parameters  int    `json:"parameters_bytes"`
	Deferred    bool   `json:"deferred,omitempty"`
}

// shownHeaders tell clients apart and hold no credentials.
var shownHeaders = []string{"User-Agent", "Anthropic-Version", "Anthropic-Beta", "X-App", "X-Stainless-Lang", "X-Stainless-Package-Version"}

// summaries writes summaries of requests to a folder that is there.
type summaries struct {
	dir string
	mu  sync.Mutex
	n   int // written so far, for names in order
}

// write is a wire.Options.Seen. A summary that cannot be written is not worth a failed request.
func (s *summaries) write(r *http.Request, req *chat.Request) {
	text, err := json.MarshalIndent(summarise(r, req), "", " ")
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	name := fmt.Sprintf("%s-%06d.json", time.Now().UTC().Format("20060102T150405"), s.n)
	_ = os.WriteFile(filepath.Join(s.dir, name), append(text, '\n'), 0o600)
	des, _ := os.ReadDir(s.dir) // by name, which is by time
	files := slices.DeleteFunc(des, func(de os.DirEntry) bool { return !summaryName.MatchString(de.Name()) })
	for _, de := range files[:max(len(files)-maxSummaries, 0)] {
		_ = os.Remove(filepath.Join(s.dir, de.Name()))
	}
}

// summaryName is the name of a summary's file.
var summaryName = regexp.MustCompile(`^2\d{7}T\d{6}-\d{6,}\.json$`)

// choiceWords name the kinds of tool choice.
var choiceWords = [...]string{chat.ChoiceAuto: "auto", chat.ChoiceNone: "none", chat.ChoiceRequired: "required", chat.ChoiceNamed: "named"}

func summarise(r *http.Request, req *chat.Request) *summary {
	s := &summary{Time: time.Now().UTC(), ID: wire.InfoFrom(r.Context()).RequestID, Path: r.URL.Path, Bytes: r.ContentLength,
		Headers: map[string]string{}, Model: clip(req.Model), Max: req.MaxTokens, Choice: choiceWords[req.Choice.Kind], Thinking: req.Thinking,
		Stops: len(req.Stop), Messages: []messageSummary{}, Tools: []toolSummary{}}
	s.Thinking.Effort = clip(s.Thinking.Effort)
	for _, h := range shownHeaders {
		if v := r.Header.Get(h); v != "" {
			s.Headers[strings.ToLower(h)] = clip(v)
		}
	}
	for i := range req.Messages {
		if i >= maxListed/2 && i < len(req.Messages)-maxListed/2 {
			s.Left++
			continue
		}
		m := &req.Messages[i]
		s.Messages = append(s.Messages, messageSummary{m.Role, describe(m.Parts)})
	}
	for i := range req.Tools[:min(len(req.Tools), maxListed)] {
		t := &req.Tools[i]
		s.Tools = append(s.Tools, toolSummary{clip(t.Name), len(t.Description), len(t.Parameters), t.Deferred})
	}
	return s
}

// describe tells the kinds and sizes of at most maxListed parts.
func describe(parts []chat.Part) []string {
	out := []string{}
	for i := range parts[:min(len(parts), maxListed)] {
		switch p := &parts[i]; p.Kind {
		case chat.PartText:
			out = append(out, fmt.Sprintf("text %d", len(p.Text)))
		case chat.PartReasoning:
			out = append(out, fmt.Sprintf("reasoning %d", len(p.Text)))
		case chat.PartToolCall:
			out = append(out, fmt.Sprintf("call %s %d", clip(p.Call.Name), len(p.Call.Arguments)))
		case chat.PartToolResult:
			out = append(out, "result: "+strings.Join(describe(p.Result.Parts), ", "))
		case chat.PartMedia:
			out = append(out, fmt.Sprintf("%s %d", p.Media.Kind, p.Media.Bytes))
		}
	}
	return out
}

// clip shortens a client's word.
func clip(s string) string { return wire.Clip(s, 200) }
