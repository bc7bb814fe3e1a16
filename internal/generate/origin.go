package generate

import (
	"crypto/sha256"
	"encoding/binary"
	"io"

	"hearth/internal/chat"
	"hearth/internal/engine"
)

// attribute tells the engine whose prompt p is. Prompts of one session, or of one caller among several, are one client; of
// others every request is to be one, with all its choices.
func attribute(p *engine.Prompt, o *chat.Origin) {
	p.Request, p.Background, p.Marked = o.ID, o.Background, o.Marked
	p.Salt, p.Party = o.Salt, party(o)
	p.Client = o.Party()
	if o.Session != "" {
		p.Session = p.Client
	}
}

// party names who may be told where prompts part: one session of one caller. All requests that name no session and have no
// key of their own are one. Unlike chat.Origin.Party it cannot be guessed for another caller.
func party(o *chat.Origin) uint64 {
	h := sha256.New()
	_, _ = h.Write(o.Caller[:]) // a hash takes everything
	_, _ = h.Write(o.Salt[:])
	_, _ = io.WriteString(h, o.Session)
	return binary.BigEndian.Uint64(h.Sum(nil)) | 1
}
