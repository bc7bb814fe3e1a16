package server

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// apart is a protocol whose route answers at once and goes on apart from it.
type apart struct {
	wire.Protocol
	run func(ctx context.Context)
}

func (p apart) Mount(mux wire.Mux, o wire.Options) {
	mux.HandleFunc("/apart", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := o.Server.Detach(r.Context())
		again, err := http.NewRequestWithContext(ctx, http.MethodPost, "/again", nil)
		if err != nil {
			panic(err)
		}
		again.Host = r.Host
		begun := make(chan struct{})
		go func() {
			defer cancel(nil)
			again = again.WithContext(context.WithValue(ctx, begunKey{}, begun))
			o.Server.ServeHTTP(discard{http.Header{}}, again)
		}()
		<-begun
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("/again", func(w http.ResponseWriter, r *http.Request) {
		close(r.Context().Value(begunKey{}).(chan struct{}))
		p.run(r.Context())
		w.WriteHeader(http.StatusNoContent)
	})
}

type begunKey struct{}

type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// A call that goes on apart from the one that asked for it outlives that, is waited for, and is told when the drain is over.
func TestDrainApart(t *testing.T) {
	for _, tc := range []struct {
		name  string
		drain time.Duration
		ends  bool
	}{{"finishes", time.Minute, false}, {"is ended", time.Millisecond, true}} {
		t.Run(tc.name, func(t *testing.T) {
			release, ended := make(chan struct{}), make(chan error, 1)
			o := options()
			o.Drain = tc.drain
			o.Protocols = append([]wire.Protocol{apart{o.Protocols[0], func(ctx context.Context) {
				select {
				case <-release:
					ended <- nil
				case <-ctx.Done():
					ended <- context.Cause(ctx)
				}
			}}}, o.Protocols...)
			addr, stop := serve(t, o)
			if got := post(addr+"/apart", ""); got != "204 " {
				t.Fatalf("answered %q", got)
			}
			stopped := make(chan error)
			go func() { stopped <- stop() }()
			if !tc.ends {
				close(release)
			}
			var cause *chat.Error
			if err := <-ended; errors.As(err, &cause) != tc.ends || tc.ends && cause.Code != "shutting_down" {
				t.Errorf("ended by %v", err)
			}
			if err := <-stopped; err != nil {
				t.Error(err)
			}
		})
	}
}
