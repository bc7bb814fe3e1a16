package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"hearth/internal/regular"
)

// Client fetches models from a hub that speaks as Hugging Face's does, into a cache that Hugging Face's own clients share.
// Plan asks what there is, Fetch brings it. A Client may be used by several goroutines.
type Client struct {
	Endpoint string // such as https://huggingface.co
	Token    string // "" for none; only the endpoint's own origin is shown it
	Cache    Cache
	Offline  bool                                  // no call is made
	Proxy    func(*http.Request) (*url.URL, error) // as http.Transport has it
	Agent    string                                // User-Agent

	stall time.Duration                              // stallAfter, if 0
	pause func(ctx context.Context, d time.Duration) // sleep, if nil
}

const (
	// maxAttempts are made for one thing, unless bytes arrive between them.
	maxAttempts = 6
	// maxWait is the longest that a hub can make us wait before another attempt.
	maxWait = 2 * time.Minute
	// maxHops are redirects followed for one request.
	maxHops = 5
	// maxAnswer bounds the JSON of one answer; a page of the list of files has a thousand of them.
	maxAnswer = 32 << 20
	// stallAfter is how long a connection may bring nothing before another takes its place.
	stallAfter = 30 * time.Second
)

// FetchError says why something could not be had from a hub, and what to do about it.
type FetchError struct {
	ID     string // org/name
	Reason string
	Advice string // "" for none
	Status int    // of the answer that refused it; 0 without one
	Err    error
}

func (e *FetchError) Error() string { return e.ID + ": " + e.Reason }
func (e *FetchError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *FetchError) Hint() string { return e.Advice }

// ErrOffline is in the error of what a Client that is offline was asked for.
var ErrOffline = errors.New("offline")

var (
	errStalled = errors.New("nothing came for too long")
	errExpired = errors.New("the address of the file is no longer valid")
)

// session is what one call of Plan or Fetch works with.
type session struct {
	*Client
	id   string
	base *url.URL
	http *http.Client
}

func (c *Client) open(id string) (*session, error) {
	base, err := url.Parse(strings.TrimRight(c.Endpoint, "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, &FetchError{ID: id, Reason: fmt.Sprintf("the hub's address %s is no URL such as https://example.com", regular.Quote(c.Endpoint)), Err: err}
	}
	if c.Offline {
		return nil, &FetchError{ID: id, Reason: "hearth is offline and asks no hub", Advice: "leave --offline and HF_HUB_OFFLINE away to download it", Err: ErrOffline}
	}
	t := &http.Transport{
		Proxy:                 c.Proxy,
		DialContext:           (&net.Dialer{Timeout: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:   15 * time.Second,
		ResponseHeaderTimeout: c.stallLimit(),
		IdleConnTimeout:       30 * time.Second,
		DisableCompression:    true, // sizes and ranges are those of the files
	}
	return &session{Client: c, id: id, base: base, http: &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func (s *session) close() { s.http.CloseIdleConnections() }

func (c *Client) stallLimit() time.Duration { return cmp.Or(c.stall, stallAfter) }

func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	if c.pause != nil {
		c.pause(ctx, d)
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
	return ctx.Err()
}

// address is the URL of a path of the hub.
func (s *session) address(path string, query string) *url.URL {
	u := *s.base
	u.RawPath = ""
	u.Path, _ = url.PathUnescape(u.EscapedPath() + path)
	if u.EscapedPath() != s.base.EscapedPath()+path {
		u.RawPath = s.base.EscapedPath() + path
	}
	u.RawQuery = query
	return &u
}

// own reports whether u is of the hub itself, which alone may see the token.
func (s *session) own(u *url.URL) bool {
	return u.Scheme == s.base.Scheme && strings.EqualFold(u.Hostname(), s.base.Hostname()) && port(u) == port(s.base)
}

func port(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}

// answer is what came of a request and its redirects.
type answer struct {
	*http.Response
	own   bool        // the hub's own answer, not another server's that it named
	first http.Header // of the hub's last answer: what it says of the file
}

// get asks for u from a byte on, and follows redirects. The caller closes the body.
func (s *session) get(ctx context.Context, u *url.URL, from int64) (*answer, error) {
	a := &answer{}
	for range maxHops + 1 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("User-Agent", cmp.Or(s.Agent, "hearth"))
		req.Header.Set("Accept-Encoding", "identity")
		if from > 0 {
			req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
		}
		own := s.own(u)
		if own && s.Token != "" {
			req.Header.Set("Authorization", "Bearer "+s.Token)
		}
		resp, err := s.http.Do(req)
		if err != nil {
			var ue *url.Error
			if errors.As(err, &ue) {
				err = fmt.Errorf("%s: %w", u.Host, ue.Err) // the address may be signed
			}
			return nil, regular.Short(err)
		}
		a.Response, a.own = resp, own
		if own {
			a.first = resp.Header
		}
		next := resp.Header.Get("Location")
		if resp.StatusCode/100 != 3 || next == "" {
			return a, nil
		}
		drop(resp)
		to, err := u.Parse(next)
		switch {
		case err != nil || to.Host == "":
			return nil, fmt.Errorf("%s sends to an address that is none", u.Host)
		case to.Scheme != "https" && (to.Scheme != "http" || s.base.Scheme == "https"):
			return nil, fmt.Errorf("%s sends to an address of another kind, %s", u.Host, regular.Clip(to.Scheme))
		}
		to.User = nil
		u = to
	}
	return nil, fmt.Errorf("%s sends from address to address, more than %d times", s.base.Host, maxHops)
}

// drop reads a little of a body that nobody wants, so that its connection can be used again, and closes it.
func drop(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	_ = resp.Body.Close()
}

// getJSON reads the hub's answer about something into v.
func (s *session) getJSON(ctx context.Context, u *url.URL, about string, v any) (http.Header, error) {
	var header http.Header
	err := s.retry(ctx, func() (bool, error) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		stall := time.AfterFunc(2*s.stallLimit(), func() { cancel(errStalled) })
		defer stall.Stop()
		a, err := s.get(ctx, u, 0)
		if err != nil {
			return false, cmp.Or(context.Cause(ctx), err)
		}
		defer a.Body.Close()
		if a.StatusCode != http.StatusOK {
			return false, s.refusal(a, about)
		}
		body, err := io.ReadAll(io.LimitReader(a.Body, maxAnswer+1))
		switch {
		case err != nil:
			return false, cmp.Or(context.Cause(ctx), err)
		case len(body) > maxAnswer:
			return false, &FetchError{ID: s.id, Reason: fmt.Sprintf("the hub's answer about it has more than %d MiB", maxAnswer>>20)}
		}
		if err := json.Unmarshal(body, v); err != nil {
			return false, &FetchError{ID: s.id, Reason: s.base.Host + " does not answer as a Hugging Face hub does: " + regular.Short(err).Error(),
				Advice: "check HF_ENDPOINT, and whether a proxy or a login page is in between", Err: err}
		}
		header = a.Header
		return false, nil
	})
	return header, err
}

// waitError is a failure after which another attempt may do better.
type waitError struct {
	err   error
	after time.Duration // that the hub asks for, 0 if it says nothing
}

func (e *waitError) Error() string { return e.err.Error() }
func (e *waitError) Unwrap() error { return e.err }

// retry calls try until it succeeds, fails for good, or has failed too often. try reports whether it made progress, from which
// on attempts are counted anew. What the network does may pass; a *FetchError does not, unless it is in a *waitError.
func (s *session) retry(ctx context.Context, try func() (progress bool, err error)) error {
	for n := 1; ; n++ {
		progress, err := try()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var wait *waitError
		var final *FetchError
		if !errors.As(err, &wait) && errors.As(err, &final) {
			return err
		}
		if progress {
			n = 1
		}
		if n >= maxAttempts {
			if errors.As(err, &final) {
				return final
			}
			return &FetchError{ID: s.id, Reason: fmt.Sprintf("the download failed %d times in a row: %v", n, err), Advice: "try again: what has arrived is kept", Err: err}
		}
		pause := backoff(n)
		if wait != nil && wait.after > 0 {
			if pause = wait.after; pause > maxWait {
				return err
			}
		}
		if err := s.sleep(ctx, pause); err != nil {
			return context.Cause(ctx)
		}
	}
}

// backoff is the wait after the nth attempt in a row: 0.25 s, twice as much each time, and a little by chance so that files that
// failed together do not come back together.
func backoff(n int) time.Duration {
	d := 250 * time.Millisecond << (n - 1)
	return d + rand.N(d/4)
}

// refusal is the error of an answer that is not what was asked for. about says what that was.
func (s *session) refusal(a *answer, about string) error {
	code, said := a.Header.Get("X-Error-Code"), a.Header.Get("X-Error-Message")
	e := &FetchError{ID: s.id, Status: a.StatusCode}
	page, tokens := s.base.String()+"/"+s.id, s.base.String()+"/settings/tokens"
	switch status := a.StatusCode; {
	case !a.own && (status == http.StatusUnauthorized || status == http.StatusForbidden):
		return errExpired // signed, and too old: the hub gives another
	case status == http.StatusTooManyRequests:
		after := retryAfter(a.Header)
		e.Reason = "the hub takes no more requests for now"
		if after > 0 {
			e.Reason = fmt.Sprintf("the hub takes no more requests for %v", after)
		}
		e.Advice = "try again later"
		if s.Token == "" {
			e.Advice += "; with a token (HF_TOKEN) it takes more"
		}
		return &waitError{e, after}
	case status == http.StatusRequestTimeout || status >= 500 && status != http.StatusNotImplemented:
		e.Reason, e.Advice = "the hub answers "+a.Status, "try again later: what has arrived is kept"
		return &waitError{e, retryAfter(a.Header)}
	case code == "GatedRepo" && s.Token == "":
		e.Reason = "is gated: the hub gives it to accounts that have accepted its licence"
		e.Advice = fmt.Sprintf("accept it at %s, make a token at %s, and give that as HF_TOKEN or with hf auth login", page, tokens)
	case code == "GatedRepo":
		e.Reason = "is gated, and the token's account has not been let in"
		e.Advice = fmt.Sprintf("ask for access at %s with the account that the token is of", page)
	case status == http.StatusUnauthorized && s.Token != "" && code == "":
		e.Reason = "the hub does not accept the token"
		e.Advice = fmt.Sprintf("make one that may read at %s, and give it as HF_TOKEN or with hf auth login", tokens)
	case said == "Access to this resource is disabled.":
		e.Reason, e.Advice = "the hub has taken it down", "see "+page
	case status == http.StatusForbidden:
		e.Reason, e.Advice = "the hub does not allow it: "+cmp.Or(regular.Clip(said), a.Status), fmt.Sprintf("see what the token may read at %s", tokens)
	case code == "RevisionNotFound":
		e.Reason, e.Advice = "the hub has no such revision, "+about, "its branches and commits are at "+page
	case code == "EntryNotFound":
		e.Reason, e.Advice = "the hub no longer has "+about, "try again: the model may have changed meanwhile"
	case status == http.StatusNotFound || status == http.StatusUnauthorized:
		e.Reason, e.Advice = "the hub has no model of this name, or it is private", "check the name"
		if s.Token == "" {
			e.Advice += fmt.Sprintf("; for a private one make a token at %s, and give it as HF_TOKEN or with hf auth login", tokens)
		}
	default:
		e.Reason = "the hub answers " + regular.Clip(a.Status)
	}
	return e
}

// rateLimit finds the seconds until a limit is reset: "api";r=0;t=55.
var rateLimit = regexp.MustCompile(`;\s*r\s*=\s*0\s*;\s*t\s*=\s*(\d{1,9})`)

// retryAfter is how long the hub asks to wait, 0 if it does not say.
func retryAfter(h http.Header) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if n, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(time.Until(at).Round(time.Second), 0)
	}
	if m := rateLimit.FindStringSubmatch(h.Get("RateLimit")); m != nil {
		n, _ := strconv.Atoi(m[1])
		return time.Duration(n) * time.Second
	}
	return 0
}
