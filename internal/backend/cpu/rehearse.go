package cpu

// idle is the pool of a rehearsal: it does nothing.
var idle = &pool{size: 1, idle: true}

// Rehearse runs steps on a model, loaded or from DryLoader, and tells how many bytes they take beside weights and state. Nothing
// is computed and memory is only reserved, so that it takes no longer and needs no more for large models than for
// small ones. What the steps give has no meaning; no state and no page is written. No step may be open.
func (b *Backend) Rehearse(steps func() error) (int64, error) {
	scopes, acts := b.scopes, b.acts
	b.scopes, b.acts, b.rehearsing = [2]*scope{}, nil, true
	err := steps()
	bytes := b.StepBytes()
	for _, s := range b.scopes {
		if s != nil {
			s.free()
		}
	}
	b.forget()
	b.scopes, b.acts, b.rehearsing = scopes, acts, false
	return bytes, err
}

// Trim frees what past steps have left for the next ones. No step may be open.
func (b *Backend) Trim() {
	for _, s := range b.scopes {
		if s != nil && !s.open {
			s.free()
		}
	}
	b.acts = nil
	b.forget()
}

// forget lets go of the prepared forms that jobs and free arrays still name.
func (b *Backend) forget() {
	for _, a := range b.arrays {
		if a != nil && a.gen == 0 {
			a.acts = nil
		}
	}
	b.prep, b.mul, b.moe, b.heads.acts = prepJob{}, mulJob{}, moeJob{}, nil
}

// StepBytes is the most that the arrays of a step have taken, and their prepared forms, since Trim.
func (b *Backend) StepBytes() (n int64) {
	for _, s := range b.scopes {
		if s == nil {
			continue
		}
		for i := range s.arenas {
			n += 4 * int64(s.arenas[i].most) // what lies beyond is not touched
		}
	}
	for _, a := range b.acts {
		n += heapTimes * a.Bytes()
	}
	for _, a := range b.moe.acts {
		n += heapTimes * a.Bytes()
	}
	for i := range b.heads.acts {
		n += heapTimes * b.heads.acts[i].Bytes()
	}
	return n
}

// heapTimes is how often prepared forms count: they lie on the heap, which the collector lets grow to twice what is live.
const heapTimes = 2

// Held is what weights and state have been given of memory of their own, in bytes, touched or not.
func (b *Backend) Held() int64 { return b.mem.Given() }

// free gives back the memory of steps.
func (s *scope) free() {
	for i := range s.arenas {
		s.arenas[i].free()
	}
}
