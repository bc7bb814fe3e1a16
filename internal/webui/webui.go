// Package webui has the pages that the server shows to people: plain ES modules and style sheets, embedded, which call the
// documented routes as any client does. It knows nothing of requests and models; package server mounts it.
package webui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

//go:embed static
var static embed.FS

// Prefix begins the paths of what pages are made of: style sheets, modules, pictures.
const Prefix = "/webui/"

// pages are the documents, by their paths. A page is a line here and its files in static.
var pages = map[string]string{
	"/":     "index.html",
	"/docs": "docs.html",
}

// policy is what a page may do: run modules and load what this server has, and call it. Of scripts and styles in the page itself
// those with these hashes count. No text becomes code or markup but through the one policy named here, which package-local
// markdown.js uses for what the server has made of Markdown.
func policy(scripts, styles string) string {
	return "default-src 'none'; script-src 'self'" + scripts + "; style-src" + styles + "; img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; " +
		"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types markdown"
}

// File is something that a browser gets.
type File struct {
	policy     string // of a page
	kind       string // media type
	etag       string
	body, gzip []byte // gzip is nil where that is no shorter
}

// files are all of them, by their paths. They are compressed when somebody asks for the first.
var files = sync.OnceValue(func() map[string]*File {
	all := map[string]*File{}
	list, err := static.ReadDir("static")
	if err != nil {
		panic(err) // embedded
	}
	for _, e := range list {
		body, err := static.ReadFile("static/" + e.Name())
		if err != nil {
			panic(err)
		}
		all[Prefix+e.Name()] = NewFile(e.Name(), body)
	}
	var inside []string // documents have their own paths alone, with the headers that go with them, and what is in them has none
	for at, name := range pages {
		page, parts := newPage(all, name)
		all[at], inside = page, append(append(inside, name), parts...)
	}
	for _, name := range inside {
		delete(all, Prefix+name)
	}
	return all
})

// drawn are elements that a browser must have before it draws: style sheets, and scripts that are no modules.
var drawn = regexp.MustCompile(`<(?:link rel="stylesheet" href|script src)="/webui/([\w.-]+)"(?:></script)?>`)

// newPage is a document of all with these elements in it, and their names: they come with it, and are not asked for one by one.
func newPage(all map[string]*File, name string) (page *File, parts []string) {
	hashes := map[string]string{}
	body := drawn.ReplaceAllFunc(all[Prefix+name].body, func(element []byte) []byte {
		part := string(drawn.FindSubmatch(element)[1])
		tag := "style"
		if path.Ext(part) == ".js" {
			tag = "script"
		}
		text := all[Prefix+part].body
		sum := sha256.Sum256(text)
		hashes[tag] += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
		parts = append(parts, part)
		return fmt.Appendf(nil, "<%s>%s</%s>", tag, text, tag)
	})
	page = NewFile(name, body)
	page.policy = policy(hashes["script"], hashes["style"])
	return page, parts
}

// NewFile is a file that a browser gets by that name, whose ending says what it is.
func NewFile(name string, body []byte) *File {
	sum := sha256.Sum256(body)
	// Weak: one for both encodings.
	f := &File{kind: mime.TypeByExtension(path.Ext(name)), etag: `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, body: body}
	if kind, ok := kinds[path.Ext(name)]; ok {
		f.kind = kind
	}
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // a level that there is
	if _, err := z.Write(body); err == nil && z.Close() == nil && b.Len() < len(body) {
		f.gzip = b.Bytes()
	}
	return f
}

// kinds are media types that are not left to what the machine says of extensions.
var kinds = map[string]string{".json": "application/json", ".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// Pages are the paths of documents.
func Pages() []string {
	var all []string
	for at := range pages {
		all = append(all, at)
	}
	return all
}

// Has reports paths that are this package's. They need no key: what they are is public, and a page has none before it has asked.
func Has(at string) bool {
	_, page := pages[at]
	return page || strings.HasPrefix(at, Prefix)
}

// Find is the file at a path; nil: there is none.
func Find(at string) *File { return files()[at] }

// ServeHTTP implements http.Handler, for GET and HEAD. Browsers ask each time whether what they have is still right, which costs
// nothing near the server: so a page and its modules are always of one version.
func (f *File) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", f.etag)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if f.policy != "" {
		h.Set("Content-Security-Policy", f.policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
	}
	if list := r.Header.Get("If-None-Match"); list == "*" || strings.Contains(list, f.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.body
	if f.gzip != nil && Accepts(r.Header, "Accept-Encoding", "gzip") {
		body = f.gzip
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Type", f.kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = io.Copy(w, bytes.NewReader(body))
	}
}

// Accepts reports a header that names a word, and not to refuse it (;q=0). What stands for everything does not count: browsers
// name what they are for.
func Accepts(h http.Header, name, word string) bool {
	for _, line := range h[name] {
		for item := range strings.SplitSeq(line, ",") {
			kind, q, _ := strings.Cut(item, ";")
			if !strings.EqualFold(strings.TrimSpace(kind), word) {
				continue
			}
			if weight, ok := strings.CutPrefix(strings.ReplaceAll(q, " ", ""), "q="); ok {
				if v, err := strconv.ParseFloat(weight, 64); err != nil || v == 0 {
					return false
				}
			}
			return true
		}
	}
	return false
}
