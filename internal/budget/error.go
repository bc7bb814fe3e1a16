package budget

import (
	"fmt"
	"slices"
	"strings"
)

// ShortError refuses what does not fit beside what cannot go.
type ShortError struct {
	Name      string
	Need      Use
	Device    string // where Free and Capacity are; "": the machine
	Free      int64  // bytes
	Capacity  int64
	Reserve   int64 // left to the system, not in Capacity
	Available int64 // what the system says is left to programs; 0: not known
	Others    []Held
}

// Lacks says why somebody new with a device, "" for none, cannot have so many bytes.
func (m *Machine) Lacks(name, device string, bytes int64) *ShortError {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.short(&Share{m: m, claim: Claim{Name: name, Device: device}}, Use{Weights: bytes})
}

// short says what s lacks. The lock is held.
func (m *Machine) short(s *Share, need Use) *ShortError {
	e := &ShortError{Name: s.claim.Name, Need: need, Free: m.free(), Capacity: m.Capacity(), Reserve: m.reserve,
		Available: read(m.read.Available), Others: m.held(s)}
	if most, ok := m.devices[s.claim.Device]; ok {
		if free := max(m.unpromised(s.claim.Device), 0); free < e.Free {
			e.Device, e.Free, e.Capacity, e.Reserve = s.claim.Device, free, most, 0
			e.Others = slices.DeleteFunc(e.Others, func(h Held) bool { return h.Device != s.claim.Device })
		}
	}
	return e
}

func (e *ShortError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s needs %s of memory", e.Name, Size(e.Need.Sum()))
	var parts []string
	for _, p := range []struct {
		what string
		n    int64
	}{{"weights", e.Need.Weights}, {"keys and values", e.Need.State}, {"a step", e.Need.Scratch}} {
		if p.n > 0 {
			parts = append(parts, p.what+" "+Size(p.n))
		}
	}
	if len(parts) > 1 {
		fmt.Fprintf(&b, " (%s)", strings.Join(parts, ", "))
	}
	fmt.Fprintf(&b, ", and %s of %s are free", Size(e.Free), Size(e.Capacity))
	if e.Device != "" {
		b.WriteString(" on the GPU")
	}
	for i, h := range e.Others {
		if i == named {
			fmt.Fprintf(&b, ", %d more models the rest", len(e.Others)-i)
			break
		}
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		pinned := ""
		if h.Pinned {
			pinned = " and stays"
		}
		fmt.Fprintf(&b, "%s%s has %s%s", sep, h.Name, Size(h.Sum()), pinned)
	}
	return b.String()
}

// named is how many models an error names.
const named = 4

// Hint says what to do.
func (e *ShortError) Hint() string {
	var w []string
	switch {
	case len(e.Others) > 0 && e.Need.Sum() <= e.Capacity:
		w = append(w, "serve it without "+e.Others[0].Name)
	case e.Need.Weights > e.Capacity:
		w = append(w, "choose a smaller model, or one with fewer bits per weight")
	default:
		w = append(w, "choose a smaller model, or a smaller --context-length or --prefill-step-size")
	}
	if e.Need.Sum() <= e.Free+e.Reserve && e.Reserve > 0 {
		w = append(w, fmt.Sprintf("leave the system less than the %s of --os-reserve", Size(e.Reserve)))
	}
	if e.Device != "" {
		w = append(w, "let the GPU use more of the machine's memory")
	}
	if e.Available > 0 && e.Available < e.Need.Sum() && e.Need.Sum() <= e.Capacity {
		w = append(w, "close other programs: they leave "+Size(e.Available))
	}
	return strings.Join(w, ", or ")
}

// Size spells bytes for people.
func Size(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
