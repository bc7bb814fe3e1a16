package generate

import (
	"hearth/internal/chat"
	"hearth/internal/engine"
)

// attribute tells the engine whose prompt p is. Prompts of one session, or of one caller among several, are one client;
// of others every request is one, with all its choices.
func (g *Generator) attribute(p *engine.Prompt, o *chat.Origin) {
	p.Request, p.Background, p.Marked = o.ID, o.Background, o.Marked
	p.Salt = o.Salt
	p.Client = o.Party()
	if o.Session != "" {
		p.Session = p.Client
	}
	if p.Client == 0 {
		p.Client = g.requests.Add(1)
	}
}
