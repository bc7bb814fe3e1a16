package cli

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/regular"
)

// maxPEM bounds the file of a certificate, which has those that lead to its issuer too, and that of its key.
const maxPEM = 1 << 20

// certificate is the TLS certificate of a server with its key, as two files have them.
type certificate struct {
	file, keyFile string
	current       atomic.Pointer[tls.Certificate]
}

// newCertificate reads the files of the settings; nil: there are none.
func newCertificate(cfg *config.Config) (*certificate, error) {
	alone := func(flag, file, other string) error {
		return console.Hintf(fmt.Errorf("%s names %s, and there is no --%s", cfg.Origin(flag), regular.Clip(file), other),
			"TLS needs a certificate and its key: --%s FILE; both may be in one file", other)
	}
	switch {
	case cfg.TLSCert == "" && cfg.TLSKey == "":
		return nil, nil
	case cfg.TLSKey == "":
		return nil, alone("tls-cert", cfg.TLSCert, "tls-key")
	case cfg.TLSCert == "":
		return nil, alone("tls-key", cfg.TLSKey, "tls-cert")
	}
	c := &certificate{file: cfg.TLSCert, keyFile: cfg.TLSKey}
	return c, c.load()
}

// load reads the files. What is wrong with them leaves the certificate as it was.
func (c *certificate) load() error {
	cert, err := regular.Read(c.file, maxPEM)
	if err != nil {
		return unreadable("certificate", "--tls-cert", c.file, err)
	}
	key, err := regular.Read(c.keyFile, maxPEM)
	if err != nil {
		return unreadable("key", "--tls-key", c.keyFile, err)
	}
	if err := c.checkPEM(cert, key); err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return c.explain(err, cert)
	}
	if pair.Leaf == nil { // by a setting of Go's
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return c.explain(err, cert)
		}
	}
	c.current.Store(&pair)
	return nil
}

func unreadable(what, flag, file string, err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return console.Hintf(fmt.Errorf("the TLS %s %s cannot be read: %w", what, regular.Clip(file), err), "%s takes a file in PEM that this account may read", flag)
}

// checkPEM tells what the files are instead of what they should be, where that is easily said.
func (c *certificate) checkPEM(cert, key []byte) error {
	types, keyTypes := blocks(cert), blocks(key)
	switch {
	case len(types) == 0:
		return console.Hintf(fmt.Errorf("the TLS certificate %s has nothing in PEM", regular.Clip(c.file)),
			"it begins with -----BEGIN CERTIFICATE-----; from DER: openssl x509 -inform der -in FILE -out FILE.pem")
	case !types["CERTIFICATE"] && keyTypes["CERTIFICATE"]:
		return console.Hintf(fmt.Errorf("%s has no certificate, and %s has one", regular.Clip(c.file), regular.Clip(c.keyFile)), "--tls-cert and --tls-key are the wrong way round")
	case !types["CERTIFICATE"]:
		return console.Hintf(fmt.Errorf("the TLS certificate %s has no certificate", regular.Clip(c.file)), "--tls-cert takes the file that begins with -----BEGIN CERTIFICATE-----")
	}
	private, sealed := false, strings.Contains(string(key), "Proc-Type: 4,ENCRYPTED")
	for kind := range keyTypes {
		private = private || strings.HasSuffix(kind, "PRIVATE KEY")
		sealed = sealed || kind == "ENCRYPTED PRIVATE KEY"
	}
	switch {
	case !private:
		return console.Hintf(fmt.Errorf("the TLS key %s has no private key in PEM", regular.Clip(c.keyFile)), "--tls-key takes the file with -----BEGIN PRIVATE KEY-----, or RSA or EC PRIVATE KEY")
	case sealed:
		return console.Hintf(fmt.Errorf("the TLS key %s is encrypted", regular.Clip(c.keyFile)),
			"hearth asks for no passphrase: openssl pkey -in FILE -out OTHER, and keep OTHER from others by its mode")
	}
	return nil
}

// blocks are the kinds of what is in a file in PEM.
func blocks(text []byte) map[string]bool {
	kinds := map[string]bool{}
	for {
		var b *pem.Block
		if b, text = pem.Decode(text); b == nil {
			return kinds
		}
		kinds[b.Type] = true
	}
}

// explain names the files in an error of crypto/tls.
func (c *certificate) explain(err error, cert []byte) error {
	said := strings.TrimPrefix(err.Error(), "tls: ")
	if !strings.HasPrefix(said, "private key") {
		return console.Hintf(fmt.Errorf("the TLS certificate %s with the key %s: %s", regular.Clip(c.file), regular.Clip(c.keyFile), said), "openssl x509 -text -noout -in FILE shows a certificate")
	}
	hint := "openssl x509 -pubkey -noout -in CERTIFICATE and openssl pkey -pubout -in KEY print the same for two that belong together"
	if strings.Count(string(cert), "-----BEGIN CERTIFICATE-----") > 1 {
		hint += "; of several certificates in a file the server's own is the first"
	}
	return console.Hintf(fmt.Errorf("the key %s is not that of the TLS certificate %s: %s", regular.Clip(c.keyFile), regular.Clip(c.file), said), "%s", hint)
}

// get is the certificate that handshakes get.
func (c *certificate) get() *tls.Certificate { return c.current.Load() }

// names are whom the certificate is for.
func (c *certificate) names() []string {
	leaf := c.get().Leaf
	names := append([]string{}, leaf.DNSNames...)
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// warnings say for what clients will refuse it.
func (c *certificate) warnings(now time.Time) (lines []string) {
	leaf := c.get().Leaf
	switch {
	case now.After(leaf.NotAfter):
		lines = append(lines, fmt.Sprintf("the TLS certificate %s is valid until %s only, and clients refuse it: renew it, then SIGHUP has it read again", c.file, leaf.NotAfter.Format(time.DateOnly)))
	case now.Before(leaf.NotBefore):
		lines = append(lines, fmt.Sprintf("the TLS certificate %s is valid from %s on, and clients refuse it until then", c.file, leaf.NotBefore.Format(time.DateOnly)))
	case leaf.NotAfter.Sub(now) < soon:
		lines = append(lines, fmt.Sprintf("the TLS certificate %s is valid until %s only", c.file, leaf.NotAfter.Format(time.DateOnly)))
	}
	if len(c.names()) == 0 {
		lines = append(lines, fmt.Sprintf("the TLS certificate %s is for no name or address (subjectAltName), and clients refuse it", c.file))
	}
	return lines
}

// soon is how long before its end a certificate is worth a line.
const soon = 7 * 24 * time.Hour

// about is a line about it.
func (c *certificate) about() string {
	names := c.names()
	if len(names) > mostURLs {
		names = append(names[:mostURLs:mostURLs], "others")
	}
	return fmt.Sprintf("%s, for %s, until %s", c.file, strings.Join(names, ", "), c.get().Leaf.NotAfter.Format(time.DateOnly))
}

// host is the first of hosts that the certificate is for, or else a name that it has; "": it has none.
func (c *certificate) host(hosts ...string) string {
	for _, h := range hosts {
		if c.get().Leaf.VerifyHostname(h) == nil {
			return h
		}
	}
	for _, name := range c.get().Leaf.DNSNames {
		if !strings.HasPrefix(name, "*") {
			return name
		}
	}
	return ""
}

// trusted reports whether clients of this machine trust it for host without being told to.
func (c *certificate) trusted(host string) bool {
	between := x509.NewCertPool()
	for _, der := range c.get().Certificate[1:] {
		if more, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(more)
		}
	}
	_, err := c.get().Leaf.Verify(x509.VerifyOptions{DNSName: host, Intermediates: between})
	return err == nil
}

// mark tells a certificate from others.
func mark(leaf *x509.Certificate) string {
	sum := sha256.Sum256(leaf.Raw)
	return hex.EncodeToString(sum[:])
}

// pinned are the settings of a client that takes the certificate with such a mark, whoever it is for, and no other.
func pinned(of string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // VerifyConnection is stricter
		VerifyConnection: func(s tls.ConnectionState) error {
			if of == "" || mark(s.PeerCertificates[0]) != of {
				return errors.New("the server shows another certificate than the one that it said it has")
			}
			return nil
		},
	}
}
