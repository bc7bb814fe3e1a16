//go:build unix

package cli

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/websocket"
)

// trusting is a client that trusts the certificate in a file, and speaks one of protocols.
func trusting(t *testing.T, file string, protocols ...string) *http.Client {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		t.Fatal("no certificate")
	}
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, NextProtos: protocols, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: protocols[0] == "h2"}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// A server with a certificate of its own making is served to who trusts it, over both versions of HTTP and by WebSocket; programs
// of this machine find it and know it again, agents are told to trust it; SIGHUP has it show another one, and keep what it has if
// that is broken.
func TestServeTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := pairFiles(t, dir, "a", nil)
	runtimeDir := t.TempDir()
	p := startPiped(t, "export XDG_RUNTIME_DIR="+runtimeDir, "--tls-cert", cert, "--tls-key", key, "--script", scriptFile(t, `{"raw": "Hello."}`))
	if !strings.HasPrefix(p.url, "https://127.0.0.1:") {
		t.Fatalf("url %s", p.url)
	}
	for protocol, names := range map[string][]string{"HTTP/2.0": {"h2", "http/1.1"}, "HTTP/1.1": {"http/1.1"}} {
		c := trusting(t, cert, names...)
		res, err := c.Post(p.url+"/v1/messages", "application/json", strings.NewReader(strings.Replace(hello, "{", `{"stream": true, `, 1)))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.Proto != protocol || !bytes.Contains(body, []byte("message_stop")) {
			t.Errorf("%s: %s %v %s", protocol, res.Proto, err, body)
		}
		// A WebSocket begins as a request of HTTP/1.1, for which a client that speaks HTTP/2 as well makes another
		// connection.
		conn, _, err := websocket.Dial(t.Context(), p.url+"/v1/responses", &websocket.DialOptions{HTTPClient: c}) //nolint:bodyclose // of an upgrade
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(`{"type": "response.create", "model": "demo", "input": "Hello"}`)); err != nil {
			t.Fatal(err)
		}
		for done := false; !done; {
			_, event, err := conn.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			done = bytes.Contains(event, []byte(`"response.completed"`))
		}
		_ = conn.CloseNow()
		if protocol == "HTTP/1.1" {
			continue
		}
		// One that does not is told so.
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/v1/responses", nil)
		r.Header.Set("Sec-WebSocket-Version", "13")
		if res, err = c.Do(r); err != nil {
			t.Fatal(err)
		}
		body, _ = io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusUpgradeRequired || !bytes.Contains(body, []byte("HTTP/1.1")) {
			t.Errorf("asked for a WebSocket over %s: %s %s", protocol, res.Status, body)
		}
	}
	ps := func() string {
		t.Helper()
		cmd := command(t, []string{"XDG_RUNTIME_DIR=" + runtimeDir}, "ps")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("ps: %v", err)
		}
		return string(out)
	}
	if got := ps(); !strings.Contains(got, p.url) || !strings.Contains(got, "demo") {
		t.Errorf("ps: %s", got)
	}
	out, errs, code := launch(t, runtimeDir, "--demo", "--print")
	if code != 0 || !strings.Contains(out, "NODE_EXTRA_CA_CERTS='"+cert+"'") || !strings.Contains(out, "ANTHROPIC_BASE_URL='"+p.url+"'") {
		t.Errorf("launch: %d %s%s", code, out, errs)
	}
	shown := func() string {
		t.Helper()
		conn, err := tls.Dial("tcp", strings.TrimPrefix(p.url, "https://"), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return mark(conn.ConnectionState().PeerCertificates[0])
	}
	first := shown()
	again := func(from, keyFrom, says string) {
		t.Helper()
		for to, file := range map[string]string{cert: from, key: keyFrom} {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(to, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_ = p.Process.Signal(syscall.SIGHUP)
		p.says(t, says)
	}
	next, nextKey := pairFiles(t, dir, "b", func(c *x509.Certificate) { c.NotAfter = c.NotBefore.AddDate(1, 0, 0) })
	again(next, key, "the TLS certificate stays as it is: the key "+key)
	if shown() != first {
		t.Error("a broken pair has taken the certificate's place")
	}
	if got := ps(); !strings.Contains(got, p.url) {
		t.Errorf("ps, while the file is broken: %s", got)
	}
	again(next, nextKey, "is valid until 2000-01-01 only, and clients refuse it")
	p.says(t, "what can change is read again")
	if shown() == first {
		t.Error("the certificate is the old one")
	}
	if got := ps(); !strings.Contains(got, p.url) {
		t.Errorf("ps, after the certificate has changed: %s", got)
	}
	_ = p.Process.Signal(syscall.SIGTERM)
	p.ends(t, "SIGTERM")
}

// A bad file ends the start by an error that is all that is said.
func TestServeTLSMistake(t *testing.T) {
	cert, _ := pairFiles(t, t.TempDir(), "a", nil)
	cmd := command(t, nil, "serve", "--port", "0", "--tls-cert", cert, "--tls-key", filepath.Join(t.TempDir(), "none"))
	out, err := cmd.CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("cannot be read: no such file")) || bytes.Contains(out, []byte("listening")) {
		t.Errorf("%v: %s", err, out)
	}
}
