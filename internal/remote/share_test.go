//go:build unix

package remote

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/backend"
	"hearth/internal/budget"
)

// counted is a machine of so many bytes in which a worker process has a share.
func counted(t *testing.T, total int64, has budget.Use) (*budget.Machine, *budget.Share) {
	t.Helper()
	m := budget.New(budget.Readers{Total: func() int64 { return total }}, 0)
	s, err := m.Ask(t.Context(), budget.Claim{Name: "model", Use: has, Apart: true})
	if err != nil {
		t.Fatal(err)
	}
	return m, s
}

// serve is Serve at the end of an actor's connection, of a model that load makes.
func (a *actor) serve(load func(h Hooks) (*Loaded, error)) {
	_ = Serve(a.conn, "test", func(_ json.RawMessage, h Hooks) (*Loaded, error) { return load(h) })
}

func encoder() *Loaded {
	return &Loaded{Forward: func(*backend.Batch, func([]float32)) error { return nil }, Close: func() error { return nil }}
}

// TestShareCrosses: a share in a worker process gives what that of the parent does: memory while there is some, Wait and a wake
// while others have it, the parent's numbers where there never will be enough. What it has to spare it is asked for.
func TestShareCrosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, share := counted(t, 1000, budget.Use{Weights: 100, State: 10})
		given := make(chan *Share, 1)
		cfg := troupe(t, nil, func(a *actor) {
			a.serve(func(h Hooks) (*Loaded, error) {
				given <- h.Share
				return encoder(), nil
			})
		})
		cfg.Share = share
		e := mustOpen(t, cfg)
		s := <-given
		if got := s.Use(); got != (budget.Use{Weights: 100, State: 10}) {
			t.Errorf("it begins with %+v", got)
		}
		both := func(want budget.Use) {
			t.Helper()
			synctest.Wait()
			if a, b := share.Use(), s.Use(); a != want || b != want {
				t.Errorf("the parent counts %+v, the worker process %+v, want %+v", a, b, want)
			}
		}
		if got, a := s.Grow(budget.Use{State: 50}, budget.Use{State: 200}); a != budget.Yes || got.State != 200 {
			t.Errorf("%v, %+v", a, got)
		}
		both(budget.Use{Weights: 100, State: 210})
		woken, shrunk := 0, int64(0)
		s.Listen(func(n int64) {
			shrunk = n
			s.Give(budget.Use{State: n})
		}, func() { woken++ })
		other, err := m.Ask(t.Context(), budget.Claim{Name: "other", Unload: func() {}, Use: budget.Use{Weights: 600}})
		if err != nil {
			t.Fatal(err)
		}
		end, _ := other.Begin()
		if got, a := s.Grow(budget.Use{Scratch: 300}, budget.Use{Scratch: 300}); a != budget.Wait || got != (budget.Use{}) {
			t.Errorf("%v, %+v", a, got)
		}
		both(budget.Use{Weights: 100, State: 210})
		end()
		other.Close()
		synctest.Wait()
		if woken == 0 {
			t.Error("it was not woken")
		}
		if _, a := s.Grow(budget.Use{Scratch: 1000}, budget.Use{Scratch: 1000}); a != budget.Never {
			t.Errorf("%v", a)
		}
		want := share.Short(budget.Use{Scratch: 1000})
		if d := cmp.Diff(want, s.Short(budget.Use{Scratch: 1000})); d != "" {
			t.Errorf("what it lacks: parent -, worker process +\n%s", d)
		}
		s.SetSpare(150)
		synctest.Wait()
		if _, err := m.Ask(t.Context(), budget.Claim{Name: "third", Use: budget.Use{Weights: 750}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if shrunk != 60 {
			t.Errorf("it was asked for %d bytes, want 60", shrunk)
		}
		both(budget.Use{Weights: 100, State: 150})
		mustClose(t, e)
		if got := share.Use(); got != (budget.Use{Weights: 100, State: 10}) {
			t.Errorf("when it has ended it has %+v", got)
		}
	})
}

// TestShareOfTheDead: what a worker process took is free when it has died, and the next one begins as the first did.
func TestShareOfTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, share := counted(t, 1000, budget.Use{Weights: 100})
		var began []budget.Use
		kill := make(chan struct{})
		first := func(a *actor) {
			go func() {
				<-kill
				a.conn.Close()
			}()
			a.serve(func(h Hooks) (*Loaded, error) {
				began = append(began, h.Share.Use())
				h.Share.Grow(budget.Use{Weights: 50, State: 300, Scratch: 50}, budget.Use{Weights: 50, State: 300, Scratch: 50})
				h.Share.SetSpare(200)
				return encoder(), nil
			})
		}
		cfg := troupe(t, nil, first, func(a *actor) {
			a.serve(func(h Hooks) (*Loaded, error) {
				began = append(began, h.Share.Use())
				return encoder(), nil
			})
		})
		cfg.Share = share
		e := mustOpen(t, cfg)
		synctest.Wait()
		if free := m.Free(""); free != 500 {
			t.Errorf("%d bytes are free while it lives", free)
		}
		close(kill)
		for _, loaded := e.Worker(); loaded < 2; _, loaded = e.Worker() {
			time.Sleep(time.Second)
		}
		if free := m.Free(""); free != 900 || !reflect.DeepEqual(began, []budget.Use{{Weights: 100}, {Weights: 100}}) {
			t.Errorf("%d bytes are free; they began with %+v", free, began)
		}
		mustClose(t, e)
	})
}

// TestShareRefuses: an error that is about memory is one on the other side too.
func TestShareRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, share := counted(t, 1000, budget.Use{Weights: 100})
		cfg := troupe(t, nil, func(a *actor) {
			a.serve(func(h Hooks) (*Loaded, error) {
				lack := budget.Use{Weights: 2000}
				h.Share.Grow(lack, lack)
				return nil, &Refused{Msg: "too large", Short: h.Share.Short(lack)}
			})
		})
		cfg.Share = share
		_, err := Open(t.Context(), cfg)
		var short *budget.ShortError
		if !errors.As(err, &short) || short.Need.Weights != 2000 || short.Free != 900 || err.Error() != "too large" {
			t.Errorf("error %v, %+v", err, short)
		}
	})
}

// TestShareNonsense: a worker process that speaks of a share it does not have, or of no number of bytes, is killed.
func TestShareNonsense(t *testing.T) {
	for name, c := range map[string]struct {
		share bool
		k     kind
		b     []byte
	}{
		"no share":  {false, kindSpare, appendUint(nil, 5)},
		"too much":  {true, kindGrow, appendUse(appendUint(appendUint(appendUint(nil, 1<<63), 1), 1), budget.Use{})},
		"too short": {true, kindGive, []byte{1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, share := counted(t, 1000, budget.Use{Weights: 100})
			cfg := troupe(t, nil, func(a *actor) {
				a.load()
				a.send(c.k, c.b)
				a.stay()
			}, (*actor).answer)
			if c.share {
				cfg.Share = share
			}
			e := mustOpen(t, cfg)
			for _, loaded := e.Worker(); loaded < 2; _, loaded = e.Worker() {
				time.Sleep(time.Second)
			}
			if got := share.Use(); got != (budget.Use{Weights: 100}) {
				t.Errorf("%s: the share is %+v", name, got)
			}
			mustClose(t, e)
		})
	}
}

// TestParentGone: who asks for memory is not left waiting when the parent is gone, loaded or not.
func TestParentGone(t *testing.T) {
	for _, loads := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			conn, theirs := net.Pipe()
			asked, ended := make(chan budget.Answer, 1), make(chan error)
			ask := func(h Hooks) {
				_, a := h.Share.Grow(budget.Use{State: 5}, budget.Use{State: 5})
				asked <- a
			}
			go func() {
				ended <- Serve(theirs, "test", func(_ json.RawMessage, h Hooks) (*Loaded, error) {
					if loads {
						go ask(h)
						return encoder(), nil
					}
					ask(h)
					return nil, errors.New("no memory")
				})
			}()
			in := newReceiver(conn)
			say(t, conn, kindGreeting, appendJSON(nil, greeting{Version: version, Build: "test", Spec: json.RawMessage("{}"), Share: &budget.Use{}}))
			hear(t, in, kindGrow)
			conn.Close()
			if a := <-asked; a != budget.Wait {
				t.Errorf("the answer is %v", a)
			}
			if err := <-ended; !errors.Is(err, ErrGone) {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}

// TestOpenCancelled: a load that nobody waits for ends with its process, be it started, loading or about to be tried again.
func TestOpenCancelled(t *testing.T) {
	for name, part := range map[string]func(*actor){
		"silent": func(a *actor) { _, _ = a.until(kindPing); _, _ = a.until(kindEnd) },
		"loading": func(a *actor) {
			a.hear()
			a.send(kindGreeting, appendJSON(nil, greeting{Version: version, Build: "test"}))
			a.until(kindEnd)
		},
		"dies": (*actor).hear,
	} {
		synctest.Test(t, func(t *testing.T) {
			_, share := counted(t, 1000, budget.Use{Weights: 100})
			cfg := troupe(t, nil, part)
			cfg.Share, cfg.Delay = share, func(int) time.Duration { return time.Hour }
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(5*time.Second, cancel)
			began := time.Now()
			if _, err := Open(ctx, cfg); !errors.Is(err, context.Canceled) || time.Since(began) != 5*time.Second {
				t.Errorf("%s: error %v after %v", name, err, time.Since(began))
			}
			if _, err := Open(ctx, cfg); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: error %v", name, err)
			}
		})
	}
}
