package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"hearth/internal/wire"
)

// Bounds of what is fetched for clients.
const (
	mostFetches   = 8 // at a time, of all requests
	mostRedirects = 3
	longestURL    = 8 << 10
	fetchTimeout  = 20 * time.Second // for one file, its place and all redirects included
	firstFetched  = 64 << 10         // bytes of memory before it is known how many come
)

// FetchOptions configures a Fetcher.
type FetchOptions struct {
	Hosts []string // names, *.suffix, or *: whose files are fetched
	Bytes int      // of a file
	// Own gives the addresses of this machine, which are as little for clients to reach as private ones; nil: none.
	Own func() []netip.Addr

	// allow is asked in the place of public, and roots are believed in the place of the system's; for tests.
	allow func(netip.Addr) bool
	roots *tls.Config
}

// Fetcher gets images from the web for clients. It reaches public addresses alone, whatever names lead where: they are looked at
// when a connection is made, behind the resolver. It uses no proxy and sends nothing that tells of its caller.
type Fetcher struct {
	o      FetchOptions
	client *http.Client
	slots  chan struct{}
}

var _ wire.Fetcher = (*Fetcher)(nil)

// NewFetcher makes a Fetcher.
func NewFetcher(o FetchOptions) *Fetcher {
	f := &Fetcher{o: o, slots: make(chan struct{}, mostFetches)}
	dialer := &net.Dialer{Timeout: fetchTimeout, Control: f.control}
	f.client = &http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: o.roots, DisableKeepAlives: true, DisableCompression: true,
			MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > mostRedirects {
				return fmt.Errorf("is behind more than %d redirects", mostRedirects)
			}
			r.Header.Del("Referer")
			return f.permits(r.URL)
		},
	}
	return f
}

// errAddress says that a name leads where nobody is led. It does not tell where: which names are private is not for clients to
// learn.
var errAddress = errors.New("is not at a public address")

// control looks at the address of a connection before it is made.
func (f *Fetcher) control(network, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !strings.HasPrefix(network, "tcp") || !f.reaches(at.Addr().Unmap().WithZone("")) {
		return errAddress
	}
	return nil
}

func (f *Fetcher) reaches(a netip.Addr) bool {
	if f.o.allow != nil {
		return f.o.allow(a)
	}
	return public(a) && (f.o.Own == nil || !slices.ContainsFunc(f.o.Own(), func(own netip.Addr) bool { return own.Unmap().WithZone("") == a }))
}

// notPublic are parts of the address space that lead nowhere, to this machine, to those beside it, or through others to any of
// these. https://www.iana.org/assignments/iana-ipv4-special-registry and its IPv6 twin.
var notPublic = func() (all []netip.Prefix) {
	for _, s := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24",
		"192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
		"168.63.129.16/32",                                                                       // Azure's own services
		"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3ffe::/16", "3fff::/20", // of what is global unicast
	} {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}()

// unicast is where public addresses of IPv6 are.
var unicast = netip.MustParsePrefix("2000::/3")

// public tells whether an address is one of the internet.
func public(a netip.Addr) bool {
	if a.Is6() && !unicast.Contains(a) {
		return false
	}
	return a.IsValid() && !slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(a) })
}

// permits tells what is wrong with following a URL.
func (f *Fetcher) permits(u *url.URL) error {
	switch host := strings.ToLower(u.Hostname()); {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("is at a URL of %s", clip(u.Scheme))
	case host == "":
		return errors.New("is at a URL without a host")
	case u.User != nil:
		return errors.New("is at a URL with a name and a password")
	case !matchesHost(f.o.Hosts, host):
		return fmt.Errorf("is at a host that --image-urls does not name")
	}
	return nil
}

// matchesHost tells whether a name is one of a list of names, *.suffix or *.
func matchesHost(list []string, host string) bool {
	return slices.ContainsFunc(list, func(p string) bool {
		p = strings.ToLower(p)
		suffix, wild := strings.CutPrefix(p, "*")
		return p == "*" || p == host || wild && strings.HasPrefix(suffix, ".") && strings.HasSuffix(host, suffix)
	})
}

// Fetch implements wire.Fetcher.
func (f *Fetcher) Fetch(ctx context.Context, at string, hold func(int64) bool) ([]byte, error) {
	const advice = "; send the image as base64"
	if len(at) > longestURL {
		return nil, fmt.Errorf("is at a URL of %d bytes, the limit is %d%s", len(at), longestURL, advice)
	}
	u, err := url.Parse(at)
	if err != nil {
		return nil, fmt.Errorf("is at a URL that is not valid%s", advice)
	}
	if err := f.permits(u); err != nil {
		return nil, fmt.Errorf("at %s cannot be fetched: it %w%s", wire.Quote(u.Host), err, advice)
	}
	timed, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-timed.Done():
	}
	file, err := f.get(timed, u, hold)
	var of *url.Error
	switch {
	case err == nil:
		return file, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, wire.ErrNoRoom):
		return nil, err
	case timed.Err() != nil:
		err = fmt.Errorf("did not come within %g seconds", fetchTimeout.Seconds())
	case errors.As(err, &of):
		err = plainFailure(of.Err)
	}
	return nil, fmt.Errorf("at %s cannot be fetched: it %w%s", wire.Quote(u.Host), err, advice)
}

// plainFailure says why nothing came, and nothing of where it was looked for.
func plainFailure(err error) error {
	var name *net.DNSError
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errAddress):
		return errAddress
	case errors.As(err, &name):
		return errors.New("is at a host whose name leads nowhere")
	case errors.As(err, &cert):
		return errors.New("is at a host whose certificate is not believed")
	case errors.As(err, &op):
		return errors.New("is at a host that does not answer")
	case strings.HasPrefix(err.Error(), "is "): // of CheckRedirect
		return err
	}
	return errors.New("is at a host that does not answer as a web server does")
}

// get gets a file.
func (f *Fetcher) get(ctx context.Context, u *url.URL, hold func(int64) bool) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, errors.New("is at a URL that is not valid")
	}
	r.Header.Set("Accept", "image/*")
	r.Header.Set("User-Agent", "hearth")
	res, err := f.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	tooLarge := fmt.Errorf("is larger than %d bytes", f.o.Bytes)
	switch {
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("is answered with status %d", res.StatusCode)
	case res.ContentLength > int64(f.o.Bytes):
		return nil, tooLarge
	}
	var file []byte
	for {
		if len(file) == cap(file) {
			size := min(max(2*cap(file), firstFetched), f.o.Bytes+1)
			if n := int(res.ContentLength) + 1; n > len(file) && n <= 2*size {
				size = n
			}
			if !hold(int64(size - cap(file))) {
				return nil, wire.ErrNoRoom
			}
			file = append(make([]byte, 0, size), file...)[:len(file)]
		}
		n, err := res.Body.Read(file[len(file):cap(file)])
		switch file = file[:len(file)+n]; {
		case len(file) > f.o.Bytes:
			return nil, tooLarge
		case err == io.EOF:
			return file, nil
		case err != nil:
			return nil, errors.New("broke off")
		}
	}
}
