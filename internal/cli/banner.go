package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/demo"
	"hearth/internal/hub"
)

// introduce prints the first lines, once: where the server listens, what it serves, and to whom.
func (s *serving) introduce() {
	if s.shown {
		return
	}
	s.shown = true
	w := s.stdout
	v, c := buildVersion()
	fmt.Fprintf(w, "hearth %s (%s)\n", v, c)
	fmt.Fprintf(w, "listening on %s\n", strings.Join(s.sockets.urls(), " and "))
	if given := passing(s.sockets.given); given != "" {
		fmt.Fprintf(w, "sockets: %s\n", given)
	}
	if c := s.sockets.certificate; c != nil {
		fmt.Fprintf(w, "tls: %s\n", c.about())
	}
	fmt.Fprintf(w, "model: %s", s.models.ID())
	if s.src.Demo() {
		fmt.Fprint(w, ", a tiny demo inside hearth: it shows that everything works and knows next to nothing")
	} else {
		fmt.Fprintf(w, " (%s)", s.src.Path)
	}
	fmt.Fprintln(w)
	if s.src.Demo() {
		fmt.Fprintf(w, "       for a real model: %s\n", realModel(s.roots))
	}
	if file := s.cfg.File(); file != "" {
		fmt.Fprintf(w, "settings: %s\n", strings.Join(append([]string{file}, s.models.Settings().Sections()...), ", "))
	}
	fmt.Fprintf(w, "auth: %s\n", s.auth())
}

// suggest prints where the page is, unless it is where no browser goes, and a request to try, once the model is known to work.
func (s *serving) suggest() {
	kind := s.models.Main().Model().Kind
	if kind == chat.Completes {
		fmt.Fprintln(s.stdout, "base:  "+baseModel+"; chat requests are answered 400 ("+makeChat+")")
	}
	var at state
	if s.sockets.describe(&at); !strings.HasPrefix(at.URL, unixPrefix) {
		fmt.Fprintf(s.stdout, "page:  %s in a browser: chat, what the server does, models, and what other programs are told\n", at.URL)
	}
	fmt.Fprintf(s.stdout, "try:   %s\n", s.curl(kind))
}

// What people are told of a model without a chat template.
const (
	baseModel = "a base model (no chat template): it continues text and does not chat"
	makeChat  = "--chat-template NAME or FILE makes it chat; --chat-template list shows the names"
)

// tryRequests are the path and the body of a short request for each kind of model.
var tryRequests = map[chat.ModelKind][2]string{
	chat.Chats:     {"/v1/messages", `{"max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]}`},
	chat.Completes: {"/v1/completions", `{"max_tokens": 100, "prompt": "Once upon a time"}`},
	chat.Embeds:    {"/v1/embeddings", `{"input": "Hello"}`},
	chat.Ranks:     {"/v1/rerank", `{"query": "Hello", "documents": ["Hi", "Bye"]}`},
}

// realModel is the command that serves a model worth talking to, the newest one on this disk if there is any.
func realModel(on *hub.Roots) string {
	var best *hub.Entry
	list, _ := on.List(context.Background()) // the only error would be the context's
	for i := range list {
		if e := &list[i]; e.State == hub.Whole && e.Kind == string(chat.Chats) && (best == nil || e.Time.After(best.Time)) {
			best = e
		}
	}
	if best == nil {
		return demo.Real
	}
	return "hearth serve " + best.ID
}

func (s *serving) auth() string {
	if keys := s.cfg.Keys(); len(keys) > 0 {
		from := cmp.Or(s.cfg.Origin("api-key"), s.cfg.Origin("api-keys"), s.cfg.Origin("api-key-file"), s.cfg.KeyFile(), s.cfg.Origin("operator-key"))
		if len(keys) == 1 {
			return "on, from " + from
		}
		operators := 0
		for _, k := range keys {
			if k.Operator {
				operators++
			}
		}
		return fmt.Sprintf("on, %d keys from %s, %d of them an operator's; each has a prompt cache of its own: %t", len(keys), from, operators, s.cfg.Isolated())
	}
	if s.sockets.public() {
		return "none; whoever can reach this address can use it (--api-key KEY asks for one)"
	}
	return "none; any key or no key is accepted (--api-key KEY asks for one)"
}

func (s *serving) curl(kind chat.ModelKind) string {
	var at state
	s.sockets.describe(&at)
	key := ""
	switch from := cmp.Or(s.cfg.Origin("api-key"), s.cfg.Origin("operator-key"), "--api-key-file"); {
	case len(s.cfg.Keys()) == 0:
	case strings.HasPrefix(from, "--"), strings.HasPrefix(from, s.cfg.File()+":"):
		key = ` -H "x-api-key: KEY"`
	default:
		key = ` -H "x-api-key: $` + from + `"`
	}
	return `curl ` + at.curl() + tryRequests[kind][0] + key + ` -H 'content-type: application/json' -d '` + tryRequests[kind][1] + `'`
}
