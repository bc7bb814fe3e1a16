package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"hearth/internal/config"
	"hearth/internal/regular"
)

// state is what a running server tells other programs of its user, in serve-<pid>.json of the runtime folder. It holds
// the key, so only its owner may read it.
type state struct {
	PID     int       `json:"pid"`
	URL     string    `json:"url"`
	Dial    string    `json:"dial,omitempty"`               // host and port, where the host of URL may lead elsewhere
	Mark    string    `json:"certificate_sha256,omitempty"` // of the server's TLS certificate; see mark
	Model   string    `json:"model"`
	Small   string    `json:"small_model,omitempty"`
	Demo    bool      `json:"demo"`
	Key     string    `json:"key,omitempty"`
	KeyOf   string    `json:"key_of,omitempty"` // whose Key is, where there are several
	Locked  bool      `json:"locked,omitempty"` // a key is asked for, if only such as the server knows the hashes of
	Token   string    `json:"token,omitempty"`  // for the routes under /hearth/
	Started time.Time `json:"started"`
	// Certificate is the file of the TLS certificate, where clients of this machine do not trust it by themselves.
	Certificate string `json:"certificate,omitempty"`
}

// client asks the server, wherever the name in its URL leads, and no other one: of those that speak TLS it takes the certificate
// that the server has, and whatever that is for.
func (s *state) client() *http.Client {
	t := &http.Transport{DisableKeepAlives: true, TLSClientConfig: pinned(s.Mark)}
	network, addr := "tcp", s.Dial
	if path, unix := strings.CutPrefix(s.URL, unixPrefix); unix {
		network, addr = "unix", path
	}
	if addr != "" {
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	}
	return &http.Client{Transport: t}
}

// callable reports a URL that client can ask.
func (s *state) callable() bool {
	return slices.ContainsFunc([]string{"http://", "https://", unixPrefix}, func(p string) bool { return strings.HasPrefix(s.URL, p) })
}

// base is what the paths of requests stand behind.
func (s *state) base() string {
	if strings.HasPrefix(s.URL, unixPrefix) {
		return "http://localhost"
	}
	return s.URL
}

// curl is what curl takes to ask the server, up to the path.
func (s *state) curl() string {
	if name, abstract := strings.CutPrefix(s.URL, unixPrefix+"@"); abstract {
		return "--abstract-unix-socket " + word(name) + " " + s.base()
	}
	if path, unix := strings.CutPrefix(s.URL, unixPrefix); unix {
		return "--unix-socket " + word(path) + " " + s.base()
	}
	if s.Certificate != "" {
		return "--cacert " + word(s.Certificate) + " " + s.URL
	}
	return s.URL
}

// trust is the environment of a program that takes the name of a file with further certificates from a variable: one that the
// user has set stays.
func (s *state) trust(variable string) [][2]string {
	if set, _ := config.Environ(variable); set != "" || s.Certificate == "" {
		return nil
	}
	return [][2]string{{variable, s.Certificate}}
}

// setKey notes the key that agents get, and whose it is.
func (s *state) setKey(cfg *config.Config) {
	all, k := cfg.Keys(), cfg.AgentKey()
	s.Key, s.Locked = k.Plain, len(all) > 0
	if s.KeyOf = k.Name; s.KeyOf == "" && k.Operator && len(all) > 1 {
		s.KeyOf = "the operator"
	}
}

func (s *state) file(dir string) string {
	return filepath.Join(dir, "serve-"+strconv.Itoa(s.PID)+".json")
}

// announce writes s and returns what takes it back.
func announce(s *state) (withdraw func(), err error) {
	dir, err := config.RuntimeDir(config.Environ)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	err = regular.Replace(s.file(dir), 0o600, func(f *os.File) error {
		_, err := f.Write(append(text, '\n'))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("write state: %w", err)
	}
	return func() { _ = os.Remove(s.file(dir)) }, nil
}

// maxState bounds the file in which a server says that it runs.
const maxState = 64 << 10

// announced lists the servers that say they run, the latest first. Files of dead processes are removed.
func announced() ([]*state, error) {
	dir, err := config.RuntimeDir(config.Environ)
	if err != nil {
		return nil, err
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []*state
	for _, de := range files {
		if !strings.HasPrefix(de.Name(), "serve-") {
			continue
		}
		f := filepath.Join(dir, de.Name())
		text, err := regular.Read(f, maxState)
		s := &state{}
		if err != nil || json.Unmarshal(text, s) != nil || s.file(dir) != f || !s.callable() {
			continue
		}
		if !alive(s.PID) {
			_ = os.Remove(f)
			continue
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *state) int { return b.Started.Compare(a.Started) })
	return all, nil
}
