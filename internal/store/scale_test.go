package store

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var scale = flag.Bool("scale", false, "compare a store of 100,000 responses with one of 1,000")

// TestScale: what takes a moment with few responses does with many. Both stores take turns, so that they meet the same machine.
func TestScale(t *testing.T) {
	if !*scale {
		t.Skip("run by hand: go test ./internal/store -run TestScale -scale -v")
	}
	sizes := [2]int{1_000, 100_000}
	var stores [2]*Store
	for i, n := range sizes {
		stores[i] = open(t, Options{})
		for r := range n {
			previous := ""
			if r%10 > 0 {
				previous = fmt.Sprint("r", r-1)
			}
			long(t, stores[i], fmt.Sprint("r", r), previous)
		}
	}
	const rounds = 3000
	took := map[string]*[2][]time.Duration{}
	for round := range rounds {
		for i, s := range stores {
			of := fmt.Sprint("r", (round*7919)%(sizes[i]/10)*10+9) // the end of a chain of ten
			r := &Response{ID: fmt.Sprint("new", round), Owner: ada, Previous: of, Body: []byte(strings.Repeat("b", 1000)), Input: items("in")}
			for _, step := range []struct {
				name string
				f    func() error
			}{
				{"begin", func() error { return s.Begin(t.Context(), r) }},
				{"finish", func() error { r.Status, r.Output = "completed", items("out"); return s.Finish(t.Context(), r) }},
				{"get", func() error { _, err := s.Get(t.Context(), ada, of); return err }},
				{"chain of 10", func() error { _, err := s.Chain(t.Context(), ada, of, false); return err }},
			} {
				began := time.Now()
				if err := step.f(); err != nil {
					t.Fatal(step.name, err)
				}
				if took[step.name] == nil {
					took[step.name] = &[2][]time.Duration{}
				}
				took[step.name][i] = append(took[step.name][i], time.Since(began))
			}
		}
	}
	for name, ds := range took {
		var p50, p99 [2]time.Duration
		for i := range ds {
			slices.Sort(ds[i])
			p50[i], p99[i] = ds[i][rounds/2], ds[i][rounds*99/100]
		}
		ratio := float64(p99[1]) / float64(p99[0])
		t.Logf("%-12s %d responses: median %v, p99 %v; %d: median %v, p99 %v; p99 by %.2f", name, sizes[0], p50[0], p99[0], sizes[1], p50[1], p99[1], ratio)
		if ratio > 2 {
			t.Errorf("%s: the p99 grows by %.2f", name, ratio)
		}
	}
}

// long keeps a response with a kilobyte of everything.
func long(t *testing.T, s *Store, id, previous string) {
	t.Helper()
	body := []byte(`"` + strings.Repeat("x", 1000) + `"`)
	r := &Response{ID: id, Owner: ada, Previous: previous, Body: body, Input: []Item{{id + "i", body}}}
	err := s.Begin(t.Context(), r)
	if r.Status, r.Output = "completed", []Item{{id + "o", body}}; err == nil {
		err = s.Finish(t.Context(), r)
	}
	if err != nil {
		t.Fatal(err)
	}
}
