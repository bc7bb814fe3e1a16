package backend

// MLA is multi-head latent attention. Of every token the state keeps one latent that all heads share, and one rotary key. Head h
// has the matrices Kₕ [Lora, Nope] and Vₕ [VDim, Lora] and, with its query split into [Nope | Rot] columns, gives
//
//	softmax over tokens j of Scale·(Kₕ·query[:Nope] · latentⱼ + query[Nope:] · rotaryⱼ), times Vₕ·latentⱼ
//
// A backend may compute that as attention over latents (as written), or over keys Kₕᵀ·latentⱼ and values Vₕ·latentⱼ. With
// Caps.Invariant it is one of the two for spans of every length.
type MLA struct {
	State                        StateID
	Heads, Nope, Rot, Lora, VDim int
	KUp, VUp                     Weight // UseHeads: Heads matrices [Lora, Nope] and [VDim, Lora]
	Scale                        float32
}

// MLA checks the op of that name.
func (c Check) MLA(q, latent, rot Array, s *MLA) {
	c.aligned("MLA", q)
	if q.Cols() != s.Heads*(s.Nope+s.Rot) {
		fail("MLA: q has %d columns for %d heads of %d+%d", q.Cols(), s.Heads, s.Nope, s.Rot)
	}
	c.all("MLA", "latent", latent, s.Lora)
	c.all("MLA", "the rotary key", rot, s.Rot)
	for _, w := range []struct {
		what    string
		w       Weight
		out, in int
	}{{"keys", s.KUp, s.Lora, s.Nope}, {"values", s.VUp, s.VDim, s.Lora}} {
		if w.w.Count() != s.Heads || w.w.Out() != w.out || w.w.In() != w.in {
			fail("MLA: %d matrices of %s are %d×%d, want %d of %d×%d", w.w.Count(), w.what, w.w.Out(), w.w.In(), s.Heads, w.out, w.in)
		}
	}
	if s.State < 0 || int(s.State) >= len(c.States) {
		fail("MLA: state %d of %d is not declared", s.State, len(c.States))
	}
	if d := &c.States[s.State]; d.Kind != StateLatent || d.Heads != 1 || d.KDim != s.Lora || d.VDim != s.Rot || d.Window != 0 {
		fail("MLA: state %s is declared as kind %d, %d heads of %d and %d, window %d; used with a latent of %d and a key of %d",
			d.Name, d.Kind, d.Heads, d.KDim, d.VDim, d.Window, s.Lora, s.Rot)
	}
}

// LatentGroup is GroupOf for a latent and its rotary key stored as one row: no group has numbers of both.
func (p KVPolicy) LatentGroup(lora, rot int) int {
	for rot != 0 {
		lora, rot = rot, lora%rot
	}
	return p.GroupOf(lora)
}
