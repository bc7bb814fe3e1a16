package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// debug logs what a request asks for, before it is answered: counts, sizes and parameters, none of its text. It is a
// wire.Options.Seen.
func (s *Server) debug(r *http.Request, req *chat.Request) {
	attrs := []slog.Attr{
		slog.String("id", wire.InfoFrom(r.Context()).RequestID), slog.String("path", clip(r.URL.Path)), slog.String("client", clip(r.UserAgent())),
		slog.String("model", clip(req.Model)), slog.Int("max_tokens", req.MaxTokens),
	}
	if p := req.Prompt; p != nil {
		attrs = append(attrs, slog.Int("prompt_bytes", len(p.Text)), slog.Int("prompt_tokens", len(p.Tokens)), slog.Int("suffix_bytes", len(p.Suffix)))
	} else {
		var m measure
		for i := range req.Messages {
			m.add(req.Messages[i].Parts)
		}
		attrs = append(attrs, slog.Int("messages", len(req.Messages)), slog.Int("message_bytes", m.text), slog.Int("images", m.images))
		if m.images > 0 {
			attrs = append(attrs, slog.Int("image_bytes", m.imageBytes))
		}
	}
	if len(req.Tools) > 0 {
		size := 0
		for i := range req.Tools {
			size += len(req.Tools[i].Name) + len(req.Tools[i].Description) + len(req.Tools[i].Parameters)
		}
		attrs = append(attrs, slog.Int("tools", len(req.Tools)), slog.Int("tool_bytes", size), slog.String("tool_choice", choiceWords[req.Choice.Kind]))
	}
	modes := [...]string{chat.Default: "default", chat.On: "on", chat.Off: "off"}
	attrs = append(attrs, slog.String("thinking", modes[req.Thinking.Mode]))
	if effort := req.Thinking.Effort; effort != "" {
		attrs = append(attrs, slog.String("effort", clip(effort)))
	}
	for _, n := range []struct {
		name  string
		count int
	}{{"thinking_budget", req.Thinking.Budget}, {"stop_sequences", len(req.Stop)}, {"n", req.N}, {"template_args", len(req.TemplateArgs)}, {"logit_bias", len(req.Sampling.LogitBias)}} {
		if n.count > 0 {
			attrs = append(attrs, slog.Int(n.name, n.count))
		}
	}
	attrs = append(attrs, sampling(&req.Sampling)...)
	if req.Logprobs {
		attrs = append(attrs, slog.Int("top_logprobs", req.TopLogprobs))
	}
	s.o.Log.LogAttrs(r.Context(), slog.LevelDebug, "asked", attrs...)
}

// longestPrompt is the bytes of a prompt in the log.
const longestPrompt = 64 << 10

// decided logs what was decided about a request, and why: a wire.Options.Decided.
func (s *Server) decided(ctx context.Context, u *chat.Usage) {
	info := wire.InfoFrom(ctx)
	attrs := []slog.Attr{slog.String("id", info.RequestID), slog.String("model", info.Served)}
	for _, d := range u.Decisions {
		origin := d.Origin
		if origin == chat.OfSettings && s.o.Origin != nil {
			origin = cmp.Or(s.o.Origin(info.Served, strings.ReplaceAll(d.What, "_", "-")), origin)
		}
		attrs = append(attrs, slog.String(d.What, d.Value+" ("+origin+")"))
	}
	if len(u.Images) > 0 {
		attrs = append(attrs, seen(u.Images)...)
	}
	s.o.Log.LogAttrs(ctx, slog.LevelDebug, "decided", attrs...)
	if s.o.LogPrompts && u.Text != "" {
		s.o.Log.LogAttrs(ctx, slog.LevelDebug, "prompt", slog.String("id", info.RequestID), slog.String("text", wire.Clip(u.Text, longestPrompt)))
	}
}

// sampling are the parameters that a request sets.
func sampling(s *chat.Sampling) (attrs []slog.Attr) {
	for _, p := range chat.WholeLastParameters {
		switch x := *p.Field(s); {
		case x == nil:
		case p.Whole:
			attrs = append(attrs, slog.Int(p.Name, int(*x)))
		default:
			attrs = append(attrs, slog.Float64(p.Name, *x))
		}
	}
	if s.Seed != nil {
		attrs = append(attrs, slog.Uint64("seed", *s.Seed))
	}
	return attrs
}

// measure adds up the bytes of what is read as text, and images with the bytes that came with the request.
type measure struct{ text, images, imageBytes int }

func (m *measure) add(parts []chat.Part) {
	for i := range parts {
		p := &parts[i]
		m.text += len(p.Text)
		switch {
		case p.Call != nil:
			m.text += len(p.Call.Name) + len(p.Call.Arguments)
		case p.Result != nil:
			m.add(p.Result.Parts)
		case p.Kind == chat.PartMedia && p.Media.Kind == chat.Image:
			m.images++
			m.imageBytes += p.Media.Bytes
		}
	}
}

// mostSeen bounds the images of a request that the log tells of one by one.
const mostSeen = 20

// seen are the images of a prompt: how many, and of each its pixels, those that it was prepared to, its tokens, those of them
// that were cached, and its digest, from which nobody learns what is in it.
func seen(images []chat.Seen) []slog.Attr {
	var each []string
	positions := 0
	for i := range images {
		m := &images[i]
		if positions += m.Positions; i < mostSeen {
			each = append(each, fmt.Sprintf("%dx%d prepared=%s tokens=%d cached=%d digest=%x", m.Width, m.Height, sizes(m.Prepared), m.Positions, m.Cached, m.Digest))
		}
	}
	return []slog.Attr{slog.Int("images", len(images)), slog.Int("image_tokens", positions), slog.Any("seen", each)}
}

// sizes spells widths and heights: 320x224, or, of a picture in tiles, 12*512x512+512x384.
func sizes(all [][2]int) string {
	var b strings.Builder
	for i, n := 0, 0; i < len(all); i += n {
		for n = 1; i+n < len(all) && all[i+n] == all[i]; n++ {
		}
		if i > 0 {
			b.WriteByte('+')
		}
		if n > 1 {
			fmt.Fprintf(&b, "%d*", n)
		}
		fmt.Fprintf(&b, "%dx%d", all[i][0], all[i][1])
	}
	return b.String()
}
