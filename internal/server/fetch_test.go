package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hearth/internal/wire"
)

func room(int64) bool { return true }

// TestPublic: which addresses clients may lead to.
func TestPublic(t *testing.T) {
	for _, a := range []string{"8.8.8.8", "1.1.1.1", "192.0.1.1", "172.32.0.1", "100.128.0.1", "2001:4860:4860::8888", "2606:4700::1111"} {
		if !public(netip.MustParseAddr(a)) {
			t.Errorf("%s is not public", a)
		}
	}
	for _, a := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "127.0.0.1", "127.9.9.9", "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.168.1.1",
		"100.64.0.1", "100.100.100.200", "192.0.0.192", "198.18.0.1", "203.0.113.9", "224.0.0.1", "240.0.0.1", "255.255.255.255", "168.63.129.16",
		"::", "::1", "::ffff:127.0.0.1", "::127.0.0.1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "64:ff9b::7f00:1", "64:ff9b:1::a00:1", "fec0::1",
		"2002:7f00:1::", "2001:0:1::", "2001:db8::1", "100::1",
	} {
		if public(netip.MustParseAddr(a)) {
			t.Errorf("%s is public", a)
		}
	}
	if public(netip.Addr{}) {
		t.Error("no address is public")
	}
}

// site is a web server on loopback, and a Fetcher that reaches it.
func site(t *testing.T, o FetchOptions, h http.HandlerFunc) (*Fetcher, string) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	if o.Hosts == nil {
		o.Hosts = []string{"127.0.0.1"}
	}
	if o.Bytes == 0 {
		o.Bytes = 1 << 20
	}
	if o.allow == nil {
		o.allow = netip.Addr.IsLoopback
	}
	return NewFetcher(o), srv.URL
}

// TestFetch: what comes from the web, what does not, and what is said of it.
func TestFetch(t *testing.T) {
	var asked atomic.Int64
	var sent http.Header
	file := bytes.Repeat([]byte("0123456789"), 20_000)
	f, at := site(t, FetchOptions{Bytes: len(file)}, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		sent = r.Header
		var n int
		switch _, _ = fmt.Sscanf(r.URL.Path, "/redirect/%d", &n); {
		case n > 1:
			http.Redirect(w, r, fmt.Sprintf("/redirect/%d", n-1), http.StatusFound)
		case n == 1:
			http.Redirect(w, r, "/file", http.StatusFound)
		case r.URL.Path == "/file":
			_, _ = w.Write(file)
		case r.URL.Path == "/parts":
			for part := range bytes.Lines(bytes.ReplaceAll(file, []byte("9"), []byte("\n"))) {
				_, _ = w.Write(part)
				w.(http.Flusher).Flush()
				break
			}
			_, _ = w.Write([]byte("rest"))
		case r.URL.Path == "/large":
			_, _ = w.Write(append(file, '!'))
		case r.URL.Path == "/largestream":
			w.(http.Flusher).Flush()
			_, _ = w.Write(append(file, '!'))
		case r.URL.Path == "/promise":
			w.Header().Set("Content-Length", "99999999999")
		case r.URL.Path == "/cut":
			w.Header().Set("Content-Length", "9999")
			_, _ = w.Write([]byte("GIF"))
		case r.URL.Path == "/elsewhere":
			http.Redirect(w, r, "http://localhost:1/x", http.StatusFound)
		case r.URL.Path == "/file-scheme":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		case r.URL.Path == "/named":
			http.Redirect(w, r, "http://me:secret@127.0.0.1/", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	})
	for path, want := range map[string]string{"/file": string(file), "/redirect/3": string(file), "/parts": "012345678\nrest"} {
		if got, err := f.Fetch(t.Context(), at+path, room); err != nil || string(got) != want {
			t.Errorf("%s: %d bytes, %v", path, len(got), err)
		}
	}
	for name := range sent {
		if name != "Accept" && name != "User-Agent" && name != "Connection" {
			t.Errorf("the header %s was sent", name)
		}
	}
	host := strings.TrimPrefix(at, "http://")
	for to, want := range map[string]string{
		at + "/redirect/4":  "it is behind more than 3 redirects",
		at + "/large":       "it is larger than 200000 bytes",
		at + "/largestream": "it is larger than 200000 bytes",
		at + "/promise":     "it is larger than 200000 bytes",
		at + "/cut":         "it broke off",
		at + "/none":        "it is answered with status 404",
		at + "/elsewhere":   "it is at a host that --image-urls does not name",
		at + "/file-scheme": "it is at a URL of file",
		at + "/named":       "it is at a URL with a name and a password",
	} {
		_, err := f.Fetch(t.Context(), to, room)
		if whole := fmt.Sprintf("at %q cannot be fetched: %s; send the image as base64", host, want); err == nil || err.Error() != whole {
			t.Errorf("%s: %v, want %s", to, err, whole)
		}
	}
	before := asked.Load()
	for to, want := range map[string]string{
		"http://localhost" + strings.TrimPrefix(at, "http://127.0.0.1"): "--image-urls does not name",
		"http://me:secret@" + host:                                      "a name and a password",
		"ftp://127.0.0.1/x":                                             "a URL of ftp",
		"http:///x":                                                     "without a host",
		"http://%zz/":                                                   "not valid",
		"http://127.0.0.1/" + strings.Repeat("x", 9<<10):                "a URL of 9233 bytes, the limit is 8192",
	} {
		if _, err := f.Fetch(t.Context(), to, room); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v, want %s", to, err, want)
		}
	}
	if _, err := f.Fetch(t.Context(), "http://127.0.0.1:1/", room); err == nil || !strings.Contains(err.Error(), "is at a host that does not answer;") {
		t.Errorf("a closed port: %v", err)
	}
	if asked.Load() != before {
		t.Errorf("%d requests were made", asked.Load()-before)
	}
}

// TestFetchAddress: whatever a name says, a connection goes to no address that is not public, and the client does not learn which
// it would have been. The server is on loopback, as a private one would be.
func TestFetchAddress(t *testing.T) {
	var asked atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer srv.Close()
	port := srv.URL[strings.LastIndex(srv.URL, ":"):]
	t.Setenv("HTTP_PROXY", srv.URL)
	t.Setenv("http_proxy", srv.URL)
	f := NewFetcher(FetchOptions{Hosts: []string{"*"}, Bytes: 9})
	for _, host := range []string{"127.0.0.1", "localhost", "2130706433", "0177.0.0.1", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "LOCALHOST", "localhost."} {
		_, err := f.Fetch(t.Context(), "http://"+host+port+"/", room)
		if err == nil || strings.Contains(strings.ReplaceAll(err.Error(), host, ""), "127.0.0.1") {
			t.Errorf("%s: %v", host, err)
		}
	}
	if _, err := f.Fetch(t.Context(), srv.URL, room); err == nil || !strings.Contains(err.Error(), "it is not at a public address; send the image as base64") {
		t.Errorf("%v", err)
	}
	if asked.Load() != 0 {
		t.Errorf("the server was asked %d times", asked.Load())
	}
	own := netip.MustParseAddr("8.8.8.8")
	f = NewFetcher(FetchOptions{Hosts: []string{"*"}, Own: func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("::ffff:8.8.8.8")} }})
	for address, want := range map[string]bool{"8.8.8.8:80": false, "[::ffff:8.8.8.8]:80": false, "8.8.4.4:80": true, "10.0.0.1:80": false, "[fe80::1%eth0]:80": false, "nonsense": false} {
		if err := f.control("tcp4", address, nil); (err == nil) != want {
			t.Errorf("%s, where %s is this machine: %v", address, own, err)
		}
	}
	if f.control("udp4", "8.8.4.4:53", nil) == nil {
		t.Error("UDP is taken")
	}
}

// TestFetchRedirected: a host that may be asked cannot send on to an address that may not.
func TestFetchRedirected(t *testing.T) {
	var inside atomic.Int64
	private := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside.Add(1) }))
	defer private.Close()
	first := true
	f, at := site(t, FetchOptions{Hosts: []string{"*"}, allow: func(netip.Addr) bool { was := first; first = false; return was }}, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, private.URL, http.StatusMovedPermanently)
	})
	if _, err := f.Fetch(t.Context(), at, room); err == nil || !strings.Contains(err.Error(), "not at a public address") || inside.Load() != 0 {
		t.Errorf("%v; the server inside was asked %d times", err, inside.Load())
	}
}

// TestFetchTLS: certificates are looked at.
func TestFetchTLS(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "GIF") }))
	defer srv.Close()
	o := FetchOptions{Hosts: []string{"127.0.0.1"}, Bytes: 9, allow: netip.Addr.IsLoopback}
	if _, err := NewFetcher(o).Fetch(t.Context(), srv.URL, room); err == nil || !strings.Contains(err.Error(), "whose certificate is not believed") {
		t.Errorf("%v", err)
	}
	o.roots = srv.Client().Transport.(*http.Transport).TLSClientConfig
	if got, err := NewFetcher(o).Fetch(t.Context(), srv.URL, room); err != nil || string(got) != "GIF" {
		t.Errorf("%s, %v", got, err)
	}
}

// TestFetchHosts: names as --image-urls has them.
func TestFetchHosts(t *testing.T) {
	for list, hosts := range map[string]map[string]bool{
		"*":              {"a.example": true},
		"a.example":      {"a.example": true, "b.a.example": false, "xa.example": false},
		"*.Example":      {"a.example": true, "b.a.example": true, "example": false, "badexample": false},
		"*example":       {"badexample": false},
		"a.example,b.co": {"b.co": true, "c.co": false},
	} {
		f := NewFetcher(FetchOptions{Hosts: strings.Split(list, ",")})
		for host, want := range hosts {
			if err := f.permits(&url.URL{Scheme: "https", Host: host + ":444"}); (err == nil) != want {
				t.Errorf("%s, %s: %v", list, host, err)
			}
		}
	}
}

// TestFetchRoom: nothing is read that there is no room for, and memory is taken as bytes come.
func TestFetchRoom(t *testing.T) {
	f, at := site(t, FetchOptions{}, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		_, _ = w.Write(make([]byte, 300_000))
	})
	for _, most := range []int64{0, firstFetched, 2 * firstFetched, 1 << 20} {
		held := int64(0)
		file, err := f.Fetch(t.Context(), at, func(n int64) bool {
			if held+n > most {
				return false
			}
			held += n
			return true
		})
		if fits := most == 1<<20; fits && (err != nil || len(file) != 300_000 || held < 300_000) || !fits && !errors.Is(err, wire.ErrNoRoom) {
			t.Errorf("room for %d: %d bytes, %d held, %v", most, len(file), held, err)
		}
	}
}

// TestFetchEnds: a server that says nothing holds nobody up: its time ends, and so does that of who waits for a place behind it,
// and a client that leaves waits no more.
func TestFetchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFetcher(FetchOptions{Hosts: []string{"*"}, Bytes: 9})
		f.client.Transport = mute{}
		began := time.Now()
		results := make(chan error)
		for range mostFetches + 1 {
			go func() {
				_, err := f.Fetch(t.Context(), "http://a.example/", room)
				results <- err
			}()
		}
		synctest.Wait()
		if len(f.slots) != mostFetches {
			t.Errorf("%d run, want %d", len(f.slots), mostFetches)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := f.Fetch(ctx, "http://a.example/", room); !errors.Is(err, context.Canceled) {
			t.Errorf("a client that has left: %v", err)
		}
		for range mostFetches + 1 {
			if err := <-results; err == nil || !strings.Contains(err.Error(), `at "a.example" cannot be fetched: it did not come within 20 seconds`) {
				t.Errorf("%v", err)
			}
		}
		if took := time.Since(began); took != fetchTimeout || len(f.slots) != 0 {
			t.Errorf("it took %v, %d places are taken", took, len(f.slots))
		}
	})
}

// mute never answers.
type mute struct{}

func (mute) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// FuzzFetchURL: whatever a URL is, nothing is reached that is not allowed, and the error is one line of bounded length.
func FuzzFetchURL(f *testing.F) {
	for _, u := range []string{"http://a.example/x", "https://[::1]:443/", "http://a@b/", "HTTP://%31", "http://a\nb/", "//x", "http://x:99999/", "http://\xff/"} {
		f.Add(u)
	}
	fetcher := NewFetcher(FetchOptions{Hosts: []string{"a.example"}, Bytes: 9})
	fetcher.client.Transport = refusing{}
	f.Fuzz(func(t *testing.T, u string) {
		if len(u) > 4096 {
			u = u[:4096]
		}
		_, err := fetcher.Fetch(t.Context(), u, room)
		if err == nil || len(err.Error()) > 600 || strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("%q: %v", u, err)
		}
	})
}

// refusing fails if it is asked for another host than the one that may be.
type refusing struct{}

func (refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.EqualFold(r.URL.Hostname(), "a.example") {
		panic("asked for " + r.URL.Host)
	}
	return nil, errors.New("nothing here")
}
