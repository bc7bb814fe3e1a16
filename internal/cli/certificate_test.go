package cli

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hearth/internal/config"
	"hearth/internal/server/servertest"
)

// pairFiles writes a certificate and its key to dir.
func pairFiles(t *testing.T, dir, name string, change func(*x509.Certificate)) (cert, key string) {
	t.Helper()
	c, k := servertest.Pair(t, change)
	cert, key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+"-key.pem")
	for file, text := range map[string][]byte{cert: c, key: k} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// What is wrong with a certificate or a key ends the start, before a port is open, with an error that names the file and a hint
// that says what to do.
func TestCertificateMistakes(t *testing.T) {
	dir := t.TempDir()
	cert, key := pairFiles(t, dir, "a", nil)
	other, otherKey := pairFiles(t, dir, "b", nil)
	write := func(name string, text []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	read := func(file string) []byte {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	der, _ := pem.Decode(read(cert))
	empty, huge := write("empty", nil), write("huge", make([]byte, maxPEM+1))
	sealed := write("sealed", pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")}))
	broken := write("broken", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der.Bytes[:100]}))
	odd := write("odd", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}))
	chain := write("chain", append(read(other), read(cert)...))
	for _, tc := range []struct{ cert, key, file, says, hint string }{
		{cert, "", cert, "there is no --tls-key", "--tls-key FILE"},
		{"", key, key, "there is no --tls-cert", "--tls-cert FILE"},
		{dir + "/none", key, dir + "/none", "no such file", "--tls-cert takes a file"},
		{cert, dir + "/none", dir + "/none", "no such file", "--tls-key takes a file"},
		{dir, key, dir, "is a folder", "--tls-cert"},
		{huge, key, huge, "1048577 bytes", "--tls-cert"},
		{empty, key, empty, "nothing in PEM", "BEGIN CERTIFICATE"},
		{write("der", der.Bytes), key, "der", "nothing in PEM", "-inform der"},
		{cert, empty, empty, "no private key in PEM", "BEGIN PRIVATE KEY"},
		{key, cert, key, "has no certificate", "the wrong way round"},
		{key, key, key, "has no certificate", "BEGIN CERTIFICATE"},
		{cert, cert, cert, "no private key in PEM", "BEGIN PRIVATE KEY"},
		{cert, sealed, sealed, "is encrypted", "openssl pkey"},
		{cert, otherKey, otherKey, "is not that of the TLS certificate " + cert, "openssl"},
		{chain, key, key, "is not that of", "the first"},
		{broken, key, broken, "x509", "openssl x509"},
		{cert, odd, odd, "failed to parse private key", "openssl"},
	} {
		cfg := config.Default()
		cfg.TLSCert, cfg.TLSKey = tc.cert, tc.key
		s, err := openSockets(cfg, nil)
		var h interface{ Hint() string }
		if s != nil || err == nil || !errors.As(err, &h) || !strings.Contains(err.Error(), tc.file) || !strings.Contains(err.Error(), tc.says) || !strings.Contains(h.Hint(), tc.hint) {
			t.Errorf("%s, %s: %v, %v", tc.cert, tc.key, err, h)
		}
	}
	both := write("both", append(read(key), read(cert)...))
	for _, pair := range [][2]string{{cert, key}, {both, both}, {write("full", append(read(cert), read(other)...)), key}} {
		cfg := config.Default()
		cfg.TLSCert, cfg.TLSKey = pair[0], pair[1]
		if c, err := newCertificate(cfg); err != nil || c.get().Leaf == nil {
			t.Errorf("%v: %v", pair, err)
		}
	}
}

// For what clients would refuse a certificate is a line.
func TestCertificateWarnings(t *testing.T) {
	now := time.Now()
	for name, tc := range map[string]struct {
		change func(c *x509.Certificate)
		says   []string
	}{
		"good":     {nil, nil},
		"expired":  {func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Hour) }, []string{"only, and clients refuse it"}},
		"early":    {func(c *x509.Certificate) { c.NotBefore = now.Add(time.Hour) }, []string{"until then"}},
		"soon":     {func(c *x509.Certificate) { c.NotAfter = now.Add(time.Hour) }, []string{"only"}},
		"nameless": {func(c *x509.Certificate) { c.DNSNames, c.IPAddresses = nil, nil }, []string{"for no name"}},
	} {
		cfg := config.Default()
		cfg.TLSCert, cfg.TLSKey = pairFiles(t, t.TempDir(), "a", tc.change)
		c, err := newCertificate(cfg)
		if err != nil {
			t.Fatal(err)
		}
		got := c.warnings(now)
		if len(got) != len(tc.says) {
			t.Errorf("%s: %q", name, got)
			continue
		}
		for i, want := range tc.says {
			if !strings.Contains(got[i], want) || !strings.Contains(got[i], cfg.TLSCert) {
				t.Errorf("%s: %q, want %q", name, got[i], want)
			}
		}
	}
}

// People and agents are told a name that the certificate is for, and programs of this machine where it leads.
func TestCertificateURL(t *testing.T) {
	at := func(ip string) []net.Listener {
		return []net.Listener{&elsewhere{&net.TCPAddr{IP: net.ParseIP(ip), Port: 8443}}}
	}
	for _, tc := range []struct {
		ip, url, dial string
		names         []string
		ips           []net.IP
	}{
		{"127.0.0.1", "https://127.0.0.1:8443", "", []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}},
		{"127.0.0.1", "https://localhost:8443", "127.0.0.1:8443", []string{"localhost"}, nil},
		{"0.0.0.0", "https://chat.example.com:8443", "127.0.0.1:8443", []string{"*.example.com", "chat.example.com"}, nil},
		{"192.0.2.1", "https://chat.example.com:8443", "192.0.2.1:8443", []string{"chat.example.com"}, nil},
		{"192.0.2.1", "https://192.0.2.1:8443", "", []string{"*.example.com"}, nil},
	} {
		cfg := config.Default()
		cfg.TLSCert, cfg.TLSKey = pairFiles(t, t.TempDir(), "a", func(c *x509.Certificate) { c.DNSNames, c.IPAddresses = tc.names, tc.ips })
		c, err := newCertificate(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var got state
		if (&sockets{listeners: at(tc.ip), certificate: c}).describe(&got); got.URL != tc.url || got.Dial != tc.dial || got.Certificate != cfg.TLSCert || got.Mark != mark(c.get().Leaf) {
			t.Errorf("%+v: %+v", tc, got)
		}
	}
}

// elsewhere is a listener at an address that this machine may not have.
type elsewhere struct{ at net.Addr }

func (*elsewhere) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (*elsewhere) Close() error              { return nil }
func (e *elsewhere) Addr() net.Addr          { return e.at }

// No file of a certificate or a key makes the program fail otherwise than by an error.
func FuzzCertificate(f *testing.F) {
	cert, key := servertest.Pair(f, nil)
	f.Add(cert, key)
	f.Add(key, cert)
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), key)
	f.Fuzz(func(t *testing.T, cert, key []byte) {
		c := &certificate{file: filepath.Join(t.TempDir(), "c"), keyFile: filepath.Join(t.TempDir(), "k")}
		if os.WriteFile(c.file, cert, 0o600) != nil || os.WriteFile(c.keyFile, key, 0o600) != nil {
			t.Skip("no room")
		}
		if c.load() != nil {
			if c.get() != nil {
				t.Error("what is wrong is shown")
			}
			return
		}
		_, _ = c.about(), c.host("localhost")
		_ = c.warnings(time.Now())
		if c.get().PrivateKey == nil || mark(c.get().Leaf) == "" || pinned("").MinVersion != tls.VersionTLS12 {
			t.Error("a pair without a key")
		}
	})
}
