//go:build unix

package generate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/dialect"
	"hearth/internal/jinja"
)

const endless = `{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}`

// TestTemplateLimit: a template's limit is the client's error, names the steps and says which bound it was; all forms in which
// a conversation is tried share the steps.
func TestTemplateLimit(t *testing.T) {
	// Rendered in time when it is tried, and without end for what a client sends; the last refuses after nearly all steps.
	const trial = `{% if not messages[0].content.startswith('hearth') %}`
	for name, src := range map[string]string{
		"endless": `{{ messages[0].content }}` + trial + endless + `{% endif %}`,
		"memory":  `{{ messages[0].content }}` + trial + `{% set n = namespace(x='ab') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}{% endif %}`,
		"depth":   `{% macro f() %}{{ f() }}{% endmacro %}{{ messages[0].content }}` + trial + `{{ f() }}{% endif %}`,
	} {
		g, err := withTemplate(t, src)
		if err != nil {
			t.Fatal(err)
		}
		_, err = g.Render(t.Context(), &chat.Request{Messages: []chat.Message{text(chat.User, "Hi")}})
		var e *chat.Error
		if !errors.As(err, &e) || e.Kind != chat.Invalid || e.Bound != chat.BoundTemplate || !strings.ContainsAny(e.Msg, "0123456789") {
			t.Errorf("%s: %v", name, err)
		}
	}
	g, err := withTemplate(t, `{{ messages[0].content }}`+trial+`{% for a in range(10000) %}{% endfor %}{{ raise_exception('no') }}{% endif %}`)
	if err != nil {
		t.Fatal(err)
	}
	g.cfg.Limits.Steps = 25_000 // enough for one form, not for two
	ctx := &counted{t.Context(), 1 << 20}
	_, err = g.Render(ctx, &chat.Request{Messages: []chat.Message{text(chat.User, "Hi")}})
	if err == nil || !strings.Contains(err.Error(), "refuses this conversation: no") {
		t.Errorf("the first refusal is told, got %v", err)
	}
	if looks := 1<<20 - ctx.looks; looks > 40 {
		t.Errorf("%d looks at the context, which are for a thousand steps each", looks)
	}
}

// TestTemplateQuotes: an error quotes no more of a template than a few lines.
func TestTemplateQuotes(t *testing.T) {
	g, err := withTemplate(t, `{{ messages[0].content }}{% if not messages[0].content.startswith('hearth') %}{{ raise_exception('ä' * 100000) }}{% endif %}`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.Render(t.Context(), &chat.Request{Messages: []chat.Message{text(chat.User, "Hi")}})
	if err == nil || len(err.Error()) > 2*mostQuoted {
		t.Errorf("%d bytes", len(err.Error()))
	}
}

// counted is a context that ends when it has been looked at so many times.
type counted struct {
	context.Context
	looks int
}

func (c *counted) Err() error {
	if c.looks--; c.looks < 0 {
		return context.Canceled
	}
	return nil
}

// TestPromptLeft: nobody makes a prompt to its end for a client who has left, wherever that is noticed.
func TestPromptLeft(t *testing.T) {
	g, err := withTemplate(t, "{% for m in messages %}<|im_start|>{{ m.role }}: {{ m.content }}{% endfor %}", "<|im_start|>")
	if err != nil {
		t.Fatal(err)
	}
	var messages []chat.Message
	for i := range 100 {
		messages = append(messages, text(chat.User, fmt.Sprint(i)), text(chat.Assistant, fmt.Sprint(i)))
	}
	for looks := range 1000 {
		_, err := g.Render(&counted{t.Context(), looks}, &chat.Request{Messages: append(messages, text(chat.User, fmt.Sprint("new ", looks)))})
		if !errors.Is(err, context.Canceled) {
			if looks < 300 { // as many as there are messages, and pieces of text
				t.Errorf("%v after %d looks", err, looks)
			}
			return
		}
	}
}

// TestTrials: the trials of a template share their steps, and one that can do nothing says so at the start.
func TestTrials(t *testing.T) {
	tmpl, err := NewTemplate("t", `{% for a in range(99999) %}{% endfor %}{{ messages[0].content }}`)
	if err != nil {
		t.Fatal(err)
	}
	p, err := findForm(tmpl, dialect.Choose(dialect.Evidence{}), jinja.Limits{}, false, nil)
	if err != nil || !p.spent || p.steps > 2*probeSteps {
		t.Errorf("%d steps, %v", p.steps, err)
	}
	for name, tt := range map[string]struct{ src, want string }{
		"fine":    {printAll, ""},
		"fails":   {"{{ nothing.at.all }}", "chat template test fails on every trial conversation, and so will most requests: render template test: line 1: 'nothing' is undefined"},
		"lists":   {"{% if messages[0].content is string %}{{ nothing.at.all }}{% endif %}", "chat template test fails on every trial conversation, and so will most requests: render template test: line 1: 'nothing' is undefined"},
		"refuses": {"{{ raise_exception('one\ntwo') }}", "chat template test fails on every trial conversation, and so will most requests: template test refuses the conversation at line 1: one"},
		"endless": {endless + "{{ messages[0].content }}", "chat template test: the trials that show what it can render end at a limit, so most of what it can do goes unused: render template test: line 1: template does more than 1000000 steps of work"},
	} {
		g, err := withTemplate(t, tt.src)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(g.Warnings(), "|"); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
