//go:build unix

package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hearth/internal/backend"
	"hearth/internal/budget"
	"hearth/internal/chat"
	"hearth/internal/engine"
	"hearth/internal/kv"
	"hearth/internal/sample"
)

// fill gives every field a value that is not zero, so that a field that is added and does not cross is found.
func fill(t *testing.T, r *rand.Rand, v reflect.Value) {
	t.Helper()
	if k, ok := v.Addr().Interface().(*kv.Kind); ok {
		*k = kv.Kind(1 + r.IntN(int(kv.LCP)))
		return
	}
	if l, ok := v.Addr().Interface().(*engine.Lack); ok {
		*l = engine.LackMemory
		return
	}
	if tm, ok := v.Addr().Interface().(*time.Time); ok {
		*tm = time.Now().Add(time.Duration(1 + r.IntN(1e9)))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(1 + r.Int64N(1<<30))
	case reflect.Uint64, reflect.Uint8:
		v.SetUint(1 + r.Uint64N(200))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1 + r.Float64())
	case reflect.String:
		v.SetString("text é")
	case reflect.Func, reflect.Chan: // cross as something else
	case reflect.Interface:
		v.Set(reflect.ValueOf(errors.New("text é")))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, r, v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(t, r, v.Index(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range v.Len() {
			fill(t, r, v.Index(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, r, v.Elem())
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, r, key)
		fill(t, r, elem)
		v.SetMapIndex(key, elem)
	default:
		t.Fatalf("no value for a %v", v.Type())
	}
}

// TestPromptCrosses: all of a prompt arrives, whatever fields there are.
func TestPromptCrosses(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var want engine.Prompt
	for range 20 {
		fill(t, r, reflect.ValueOf(&want).Elem())
		want.Constrain = func(int32) engine.Constraint { return engine.Constraint{} }
		for i := range want.Images {
			want.Images[i].Patches = nil // they cross when they are asked for
		}
		c := &contents{b: appendPrompt(nil, &want)}
		got, constrained := c.prompt()
		want.Constrain, want.Made = nil, 0 // they stay here
		if d := cmp.Diff(want, got); d != "" || !constrained || c.end() != nil {
			t.Fatalf("constrained %t, end %v, sent -, read +\n%s", constrained, c.end(), d)
		}
	}
}

// TestSamplingParametersCross: every parameter of a request arrives in the worker process, as the sampler has it.
func TestSamplingParametersCross(t *testing.T) {
	for i, p := range chat.SamplingParameters {
		var want sample.Params
		if !want.Set(p.Name, float64(i+1)) {
			t.Errorf("package sample: there is no %s", p.Name)
		}
		c := &contents{b: appendParams(nil, &want)}
		if d := cmp.Diff(want, c.params(), cmpopts.EquateEmpty()); d != "" || c.end() != nil {
			t.Errorf("%s does not cross to the worker process: end %v, sent -, read +\n%s", p.Name, c.end(), d)
		}
	}
}

// constraints are of all kinds.
func constraints() []engine.Constraint {
	return []engine.Constraint{
		{}, {Forced: []int32{5, 1 << 20, -1}}, {Mask: sample.Set{}}, {Mask: sample.Set{0}}, {Mask: sample.Set{1, 0, ^uint64(0), 1 << 63}},
		{Forced: []int32{7}, Mask: sample.Set{9}}, {Mask: make(sample.Set, longestSet)},
	}
}

// sameError compares errors by what they say.
func sameError(a, b error) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error())
}

// TestConstraintCrosses: a hook's answer arrives, one that restricts nothing apart from one that allows nothing, and no set is
// longer than makes sense.
func TestConstraintCrosses(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	var filled engine.Constraint
	fill(t, r, reflect.ValueOf(&filled).Elem())
	for _, want := range append(constraints(), filled) {
		c := &contents{b: appendConstraint(nil, want)}
		if d := cmp.Diff(want, c.constraint(), cmp.Comparer(sameError)); d != "" || c.end() != nil {
			t.Errorf("end %v, sent -, read +\n%s", c.end(), d)
		}
	}
	whole := appendConstraint(nil, engine.Constraint{Mask: sample.Set{1, 2}})
	for name, b := range map[string][]byte{
		"too long":       appendConstraint(nil, engine.Constraint{Mask: make(sample.Set, longestSet+1)}),
		"cut off":        whole[:len(whole)-1],
		"nothing behind": whole[:2],
		"more behind":    append(slices.Clone(whole), 0),
	} {
		c := &contents{b: b}
		if got := c.constraint(); c.end() == nil {
			t.Errorf("%s: read %v", name, got)
		}
	}
}

// TestUpdatesCross: updates of a stream add up to the same on the other side.
func TestUpdatesCross(t *testing.T) {
	for _, logprobs := range []bool{false, true} {
		r := rand.New(rand.NewPCG(5, 6))
		var s sent
		began := time.Now()
		k := known{left: 100, usage: engine.Usage{Submitted: began}}
		away := began.Add(time.Hour) // the other clock
		u := engine.Usage{Prompt: 7, Submitted: away}
		frames := 0
		for step := range 12 {
			n := engine.Update{StopID: -1}
			for range r.IntN(4) {
				tok := engine.Token{ID: int32(r.IntN(1 << 20)), More: r.IntN(2) == 0}
				if logprobs {
					tok.Logprob, tok.Top = -r.Float32(), []sample.Logprob{{ID: 1, Logprob: -2}, {ID: 70000, Logprob: -3}}
				}
				n.Tokens = append(n.Tokens, tok)
				u.Generated++
			}
			switch step {
			case 1:
				u.Started, u.Cached, u.Disk, u.Longer, u.Hit, u.Own, u.Ran, u.Instead = away.Add(time.Second), 3, 2, 5, kv.LCP, true, 4, engine.TokensOf([]int32{7, 300})
			case 3:
				u.First = away.Add(2 * time.Second)
			case 11:
				u.Ended = away.Add(3 * time.Second)
				u.Generated++ // the stop id
				n.Reason, n.StopID = engine.Stop, 9
			}
			n.Usage = u
			b := s.appendUpdate(nil, 5, &n, logprobs)
			frames += len(b)
			c := &contents{b: b}
			if id := c.uint(); id != 5 {
				t.Fatalf("stream %d", id)
			}
			got := k.update(c)
			want := n
			shift := cmp.Comparer(func(a, b time.Time) bool {
				switch {
				case a.IsZero() || b.IsZero():
					return a.IsZero() == b.IsZero()
				case a.Before(away):
					a = a.Add(time.Hour)
				}
				if b.Before(away) {
					b = b.Add(time.Hour)
				}
				return a.Equal(b)
			})
			if d := cmp.Diff(want, got, shift, cmpopts.EquateEmpty()); d != "" || c.end() != nil {
				t.Fatalf("step %d: end %v, sent -, read +\n%s", step, c.end(), d)
			}
		}
		if !logprobs && frames > 200 {
			t.Errorf("12 updates take %d bytes", frames)
		}
	}
}

// TestUsageCrosses: there is no field of a usage that stays behind.
func TestUsageCrosses(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var want engine.Usage
	fill(t, r, reflect.ValueOf(&want).Elem())
	k := known{usage: engine.Usage{Submitted: want.Submitted}}
	want.Started, want.First, want.Ended = want.Submitted.Add(1), want.Submitted.Add(2), want.Submitted.Add(3)
	c := &contents{b: new(sent).appendUpdate(nil, 5, &engine.Update{StopID: -1, Usage: want}, false)}
	c.uint() // the stream
	if d := cmp.Diff(want, k.update(c).Usage); d != "" || c.end() != nil {
		t.Errorf("end %v, sent -, read +\n%s", c.end(), d)
	}
}

// TestErrorsCross: errors that callers look for keep their types, others their texts.
func TestErrorsCross(t *testing.T) {
	short := &budget.ShortError{}
	fill(t, rand.New(rand.NewPCG(9, 10)), reflect.ValueOf(short).Elem())
	for _, want := range []error{
		nil, engine.ErrClosed, context.Canceled, context.DeadlineExceeded, sample.ErrLogits, errors.New("other"),
		&engine.QueueFullError{Running: 3, Waiting: 400}, &engine.ClientFullError{Live: 5}, &engine.ImageError{Image: 2, Err: errors.New("it is too wide")}, &engine.TooLongError{Tokens: 1 << 20, Max: 7},
		&engine.StepError{Err: errors.New("[METAL] out of memory"), Stack: []byte("stack")}, short, &engine.NoMemoryError{Err: short},
	} {
		c := &contents{b: appendError(nil, want)}
		got := c.error()
		if c.end() != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v became %v, end %v", want, got, c.end())
		}
	}
	wrapped := errors.Join(errors.New("a"), &engine.TooLongError{Tokens: 5, Max: 4})
	c := &contents{b: appendError(nil, wrapped)}
	var long *engine.TooLongError
	if !errors.As(c.error(), &long) || long.Tokens != 5 {
		t.Error("a wrapped error lost its type")
	}
}

// TestStatsCross: statistics cross as JSON, which must know all their fields.
func TestStatsCross(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	var want, got engine.Stats
	fill(t, r, reflect.ValueOf(&want).Elem())
	c := &contents{b: appendJSON(nil, want)}
	takeJSON(c, &got)
	if d := cmp.Diff(want, got); d != "" || c.end() != nil {
		t.Errorf("end %v, sent -, read +\n%s", c.end(), d)
	}
	var f, g facts
	fill(t, r, reflect.ValueOf(&f).Elem())
	f.About = json.RawMessage(`{}`)
	takeJSON(&contents{b: appendJSON(nil, f)}, &g)
	if d := cmp.Diff(f, g); d != "" {
		t.Errorf("facts: sent -, read +\n%s", d)
	}
}

// TestTextsCross: a batch of texts arrives as it was laid out, and rows come back.
func TestTextsCross(t *testing.T) {
	want := &backend.Batch{Tokens: []int32{5, 6, 7, 8}, Types: []int32{0, 0, 1, 0},
		Spans: []backend.Span{{Slot: -1, Row: 0, Len: 3}, {Slot: -1, Row: 3, Len: 1}}}
	want.Pos[0] = []int32{0, 1, 2, 0}
	c := &contents{b: appendTexts(nil, want)}
	if d := cmp.Diff(want, c.texts(), cmpopts.IgnoreUnexported(backend.Batch{}, backend.Span{}), cmpopts.IgnoreFields(backend.Batch{}, "Late")); d != "" || c.end() != nil {
		t.Errorf("end %v, sent -, read +\n%s", c.end(), d)
	}
	row := []float32{1, -2.5, float32(math.Inf(1))}
	c = &contents{b: appendFloats(nil, row)}
	if got := c.floats(); !slices.Equal(got, row) || c.end() != nil {
		t.Errorf("%v, end %v", got, c.end())
	}
}

// FuzzContents: whatever a frame holds is read or refused, without more memory than it has bytes to show for; what is read
// and spelled again reads the same.
func FuzzContents(f *testing.F) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 4 {
		p := prompts()[r.IntN(8)]
		f.Add(byte(kindPrompt), appendPrompt(nil, &p))
	}
	var s sent
	f.Add(byte(kindUpdates), s.appendUpdate(nil, 3, &engine.Update{Tokens: []engine.Token{{ID: 5, Top: []sample.Logprob{{ID: 1}}}}, StopID: -1,
		Usage: engine.Usage{Prompt: 5, Generated: 1}, Reason: engine.Error, Err: &engine.StepError{Err: errors.New("x")}}, true))
	f.Add(byte(kindReply), appendScores(nil, []engine.Score{{Argmax: 3, Top: []sample.Logprob{{ID: 1, Logprob: -1}}}}))
	f.Add(byte(kindCall), appendTexts(nil, &backend.Batch{Tokens: []int32{1, 2, 3}, Types: []int32{0, 1, 1}, Spans: []backend.Span{{Len: 1}, {Len: 2}}}))
	for _, constraint := range constraints()[:6] {
		f.Add(byte(kindConstraint), appendConstraint(nil, constraint))
	}
	f.Add(byte(kindClosed), appendError(nil, &engine.QueueFullError{Running: 1}))
	f.Add(byte(kindGrow), appendUse(appendUse(nil, budget.Use{State: 1 << 30}), budget.Use{Weights: 5, Scratch: 7}))
	f.Add(byte(kindGrown), appendGrown(nil, &grown{got: budget.Use{State: 1 << 30}}))
	f.Add(byte(kindGrown), appendGrown(nil, &grown{answer: budget.Never, short: &budget.ShortError{Name: "a", Others: []budget.Held{{Name: "b"}}}}))
	f.Fuzz(func(t *testing.T, k byte, b []byte) {
		c := &contents{b: b}
		switch kind(k) {
		case kindPrompt:
			p, constrained := c.prompt()
			if c.end() != nil {
				return
			}
			if constrained {
				p.Constrain = func(int32) engine.Constraint { return engine.Constraint{} }
			}
			again := &contents{b: appendPrompt(nil, &p)}
			q, _ := again.prompt()
			p.Constrain = nil
			if d := cmp.Diff(p, q, cmpopts.EquateNaNs()); d != "" || again.end() != nil {
				t.Errorf("end %v\n%s", again.end(), d)
			}
		case kindConstraint:
			constraint := c.constraint()
			if len(constraint.Mask) > longestSet || 8*len(constraint.Mask) > len(b) {
				t.Errorf("a set of %d words from %d bytes", len(constraint.Mask), len(b))
			}
			if c.end() != nil {
				return
			}
			again := &contents{b: appendConstraint(nil, constraint)}
			sameText := cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) })
			if d := cmp.Diff(constraint, again.constraint(), sameText); d != "" || again.end() != nil {
				t.Errorf("end %v\n%s", again.end(), d)
			}
		case kindUpdates:
			k := known{left: 1000, usage: engine.Usage{Submitted: time.Unix(1e9, 0)}}
			c.uint()
			n := k.update(c)
			if len(n.Tokens) > 1000 {
				t.Errorf("%d tokens", len(n.Tokens))
			}
		case kindReply:
			scores := c.scores()
			if c.end() != nil {
				return
			}
			again := &contents{b: appendScores(nil, scores)}
			if d := cmp.Diff(scores, again.scores(), cmpopts.EquateNaNs()); d != "" || again.end() != nil {
				t.Errorf("end %v\n%s", again.end(), d)
			}
		case kindClosed:
			_ = c.error()
		case kindGrown:
			g := c.grown()
			if c.end() != nil {
				return
			}
			if (g.short == nil) != (g.answer == budget.Yes) {
				t.Errorf("%v with %+v", g.answer, g.short)
			}
			again := &contents{b: appendGrown(nil, &g)}
			if d := cmp.Diff(g, again.grown(), cmp.AllowUnexported(grown{})); d != "" || again.end() != nil {
				t.Errorf("end %v\n%s", again.end(), d)
			}
		case kindGrow:
			if least, most := c.use(), c.use(); least.Sum() < 0 || most.Sum() < 0 || least.Sum()+most.Sum() < 0 {
				t.Errorf("%+v, %+v", least, most)
			}
		case kindCall:
			b := c.texts()
			if c.end() != nil {
				return
			}
			again := &contents{b: appendTexts(nil, b)}
			if n := again.texts(); !slices.Equal(n.Tokens, b.Tokens) || !slices.Equal(n.Pos[0], b.Pos[0]) || len(b.Pos[0]) != len(b.Tokens) || again.end() != nil {
				t.Errorf("%+v became %+v, end %v", b, n, again.end())
			}
		default:
			in := newReceiver(bytes.NewReader(b))
			for {
				if _, _, err := in.read(); err != nil {
					break
				}
			}
			if cap(in.buf) > 2*fullFrame+2*len(b) {
				t.Errorf("%d bytes of memory for %d", cap(in.buf), len(b))
			}
		}
	})
}
