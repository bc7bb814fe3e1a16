//go:build unix

package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"hearth/internal/budget"
	"hearth/internal/engine"
	"hearth/internal/model"
)

// said is a process that has said all it will say.
type said struct{ io.Reader }

func (said) Write(b []byte) (int, error) { return len(b), nil }
func (said) Close() error                { return nil }
func (said) Kill()                       {}
func (said) Wait() string                { return "it has ended" }
func (said) PID() int                    { return 1 }

// frame is a whole frame.
func frame(k kind, b []byte) []byte { return finish(append(begin(nil, k), b...), 0) }

func join(frames ...[]byte) []byte { return bytes.Join(frames, nil) }

// FuzzFrames: whatever the other side says, the parent reads to the end or to what makes no sense, the worker process to the
// end or until it is told to end. Nothing waits, and answers are no longer than what they answer.
func FuzzFrames(f *testing.F) {
	hello := frame(kindGreeting, appendJSON(nil, greeting{Version: version, Build: "test", Share: &budget.Use{State: 1 << 20}}))
	loaded := frame(kindLoaded, appendJSON(nil, facts{Limits: Limits{Vocab: 97, MaxSequences: 4, MaxQueue: 16}, Context: 100}))
	var u sent
	news := u.appendUpdate(nil, 1, &engine.Update{Tokens: []engine.Token{{ID: 5}}, StopID: -1, Usage: engine.Usage{Prompt: 3, Generated: 1}, Reason: engine.Stop}, true)
	f.Add(join(hello, loaded, frame(kindUpdates, news), frame(kindClosed, appendError(nil, nil))))
	f.Add(join(hello, loaded, frame(kindUpdates, append(news, news...))))
	f.Add(join(hello, frame(kindFailed, appendJSON(nil, Refused{Msg: "no", Short: &budget.ShortError{Name: "a"}}))))
	f.Add(join(hello, frame(kindWarn, []byte("a line")), frame(kindPong, nil), loaded, frame(kindReply, []byte{1, 0, 0})))
	f.Add(join(hello, frame(kindGrow, appendUse(appendUse(nil, budget.Use{State: 1}), budget.Use{State: 2})), frame(kindGive, appendUse(nil, budget.Use{State: 1})), frame(kindSpare, []byte{9})))
	f.Add(join(hello, loaded, frame(kindDrawn, []byte{9, 2, 5}), frame(kindDrawn, []byte{1, 2, 5})))
	f.Add(join(hello, loaded, frame(kindStuck, []byte{200, 1})))
	f.Add(frame(kindGreeting, []byte(`{"Version":1}`)))
	p := prompts()[0]
	one := appendPrompt(appendUint(nil, 1), &p)
	f.Add(join(hello, frame(kindPing, nil), frame(kindPrompt, one), frame(kindConstraint, appendConstraint(appendUint(nil, 1), engine.Constraint{})), frame(kindCancel, []byte{1}), frame(kindEnd, nil)))
	seen := p
	seen.Images = []engine.Image{{At: 1, Image: model.Image{Grid: [3]int{1, 1, 1}, Patches: []float32{1, 2}}}}
	part := appendFloats(appendError([]byte{1, 0}, nil), []float32{1})
	f.Add(join(hello, frame(kindPrompt, appendPrompt(appendUint(nil, 1), &seen)), frame(kindPatches, part), frame(kindPatches, []byte{1, 5, 0})))
	f.Add(join(hello, loaded, frame(kindOpen, []byte{1, 1, 0}), frame(kindShut, []byte{1})))
	f.Add(join(hello, frame(kindGrown, appendGrown(nil, &grown{got: budget.Use{State: 1}})), frame(kindShrink, []byte{5}), frame(kindWake, nil), frame(kindCall, []byte{1, 1, 2}), frame(kindDrop, []byte{1})))
	f.Fuzz(func(t *testing.T, b []byte) {
		e := &Engine{cfg: Config{Build: "test", Warn: func(string) {}}, quit: make(chan struct{}), streams: map[uint64]*stream{}, calls: map[uint64]*call{}}
		left := 0
		for id := range uint64(3) {
			e.streams[id] = &stream{id: id, known: known{left: 10}, stream: engine.NewStream(t.Context(), 3, func() {}), ctx: t.Context(), unwatch: func() bool { return true }}
			e.calls[id] = &call{done: make(chan error, 1), take: func(c *contents) { left += len(c.scores()) }}
		}
		proc := said{bytes.NewReader(b)}
		s := &session{e: e, proc: proc, out: newOutbox(), in: newReceiver(proc), loaded: make(chan error, 1), began: time.Now()}
		switch err := s.read(); {
		case err == nil, errors.Is(err, io.EOF) != (err == io.EOF), len(err.Error()) > 1000+len(b):
			t.Errorf("the session ends with %v", err)
		case left > len(b), len(s.out.buf) > 4*len(b)+100:
			t.Errorf("%d scores and an answer of %d bytes from %d", left, len(s.out.buf), len(b))
		}
		here, there := net.Pipe()
		defer here.Close()
		go func() { _, _ = io.Copy(io.Discard, here) }()
		go func() {
			_, _ = here.Write(b)
			here.Close()
		}()
		err := Serve(there, "test", func(json.RawMessage, Hooks) (*Loaded, error) {
			return &Loaded{Close: func() error { return nil }}, nil
		})
		if err == nil && !bytes.Contains(b, frame(kindEnd, nil)) {
			t.Error("the worker process ends well though nobody told it to")
		}
	})
}
