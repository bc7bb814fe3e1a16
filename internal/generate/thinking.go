package generate

import (
	"cmp"
	"context"
	"slices"

	"hearth/internal/chat"
)

// thinking is what a request asks of the model, the server's setting where it leaves that open or that holds. A model that
// must call at once has no room to think first.
func (m *prompter) thinking(r *chat.Request, forced bool) chat.Thinking {
	t := r.Thinking
	switch {
	case forced, m.holds():
		t.Mode, t.Effort = chat.Off, ""
	case t.Mode == chat.Default:
		t.Mode = m.cfg.Thinking
		if t.Mode == chat.Default && t.Short && m.switches.works && !m.argsThink() {
			t.Mode = chat.Off
		}
	}
	t.Budget = cmp.Or(t.Budget, m.cfg.ThinkingBudget) // also of what thinks all the same
	return t
}

// holds reports that no request makes the model think.
func (m *prompter) holds() bool { return m.cfg.NoThinking && m.switches.works }

// thinkingArgs are the variables by which templates know whether and how much to think.
var thinkingArgs = []string{"enable_thinking", "thinking", "reasoning", "thinking_mode", "thinking_budget", "reasoning_effort", "thinking_effort", "reasoning_mode"}

// shortAdds is by how many tokens a prompt is longer because its reply is short. Clients count tokens without saying how long the
// reply may be, and compare.
func (m *prompter) shortAdds(ctx context.Context, r *chat.Request, p *prompt) int {
	open := *r
	open.Thinking.Short = false
	if p.raw || p.forced != "" || m.thinking(&open, false).Mode == m.thinking(r, false).Mode {
		return 0
	}
	q, err := m.prompt(ctx, &open)
	if err != nil { // a template that refuses to have the model think: then nobody can have counted that
		return 0
	}
	return len(p.tokens) - len(q.tokens)
}

// argsThink tells whether the configured variables of the template say anything of thinking.
func (m *prompter) argsThink() bool {
	return slices.ContainsFunc(thinkingArgs, func(name string) bool { return m.cfg.TemplateArgs[name] != nil })
}
