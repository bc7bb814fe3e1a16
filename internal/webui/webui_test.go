package webui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, at string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	f := Find(at)
	if f == nil {
		t.Fatalf("there is no %s", at)
	}
	r := httptest.NewRequest("GET", at, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w
}

// TestServe: what is sent, compressed or not, and that nothing is sent to who has it.
func TestServe(t *testing.T) {
	for at := range files() {
		plain := get(t, at)
		packed := get(t, at, "Accept-Encoding", "br, gzip;q=0.5")
		body := packed.Body.Bytes()
		if packed.Header().Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(packed.Body)
			if err != nil {
				t.Fatal(err)
			}
			if body, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		if plain.Code != 200 || plain.Body.Len() == 0 || !bytes.Equal(body, plain.Body.Bytes()) {
			t.Errorf("%s: %d, %d bytes, %d packed and unpacked", at, plain.Code, plain.Body.Len(), len(body))
		}
		if w := get(t, at, "Accept-Encoding", "gzip;q=0"); w.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s: compressed for who refuses that", at)
		}
		if w := get(t, at, "If-None-Match", `"x", `+plain.Header().Get("ETag")); w.Code != 304 || w.Body.Len() > 0 {
			t.Errorf("%s: %d for who has it", at, w.Code)
		}
		_, page := pages[at]
		if policy := plain.Header().Get("Content-Security-Policy"); page != strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q", at, policy)
		}
	}
	if Find("/webui/index.html") != nil || Find("/webui/none.js") != nil {
		t.Error("a document beside its path, or a file that is not there")
	}
}

// TestWeight: all of it, compressed, is 150,000 bytes at most.
func TestWeight(t *testing.T) {
	sum := 0
	for at, f := range files() {
		if f.policy != "" && at != "/" {
			continue
		}
		if f.gzip != nil {
			sum += len(f.gzip)
		} else {
			sum += len(f.body)
		}
	}
	if t.Logf("%d bytes", sum); sum > 150_000 {
		t.Errorf("%d bytes", sum)
	}
}

// TestText: nothing in what is sent makes markup of text, or code, but for the one place that says so; and all that it names is
// there.
func TestText(t *testing.T) {
	forbidden := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|\beval\b|new Function|srcdoc|setHTMLUnsafe|javascript:|https?://(?:[a-z0-9-]+\.)+[a-z]+/|style="|\son[a-z]+="`)
	named := regexp.MustCompile(`(?:from |import\()'\./([\w.-]+)'|"/webui/([\w.-]+)"`)
	for at, f := range files() {
		for _, m := range forbidden.FindAllString(string(f.body), -1) {
			if m != "http://www.w3.org/" { // a namespace's name
				t.Errorf("%s has %s", at, m)
			}
		}
		for _, m := range named.FindAllStringSubmatch(string(f.body), -1) {
			if name := m[1] + m[2]; Find(Prefix+name) == nil {
				t.Errorf("%s names %s, which is not there", at, name)
			}
		}
		if kinds[path.Ext(at)] == "" && f.policy == "" {
			t.Errorf("%s: no media type for it", at)
		}
	}
}

// TestInside: what a page needs to be drawn is in it, as its policy says by hashes, and not beside it.
func TestInside(t *testing.T) {
	element := regexp.MustCompile(`(?s)<(style|script)>(.*?)</(?:style|script)>`)
	for at := range pages {
		page := get(t, at)
		policy := page.Header().Get("Content-Security-Policy")
		counted := 0
		for _, m := range element.FindAllStringSubmatch(page.Body.String(), -1) {
			sum := sha256.Sum256([]byte(m[2]))
			if hash := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !regexp.MustCompile(m[1] + `-src [^;]*` + regexp.QuoteMeta(hash)).MatchString(policy) {
				t.Errorf("%s has %.60s, which its policy does not know: %s", at, m[2], policy)
			}
			counted++
		}
		if counted < 3 || strings.Count(policy, "sha256-") != counted || strings.Contains(page.Body.String(), "stylesheet") {
			t.Errorf("%s has %d elements in it: %s", at, counted, policy)
		}
	}
	if Find("/webui/theme.css") != nil {
		t.Error("a style sheet is beside the pages that have it")
	}
}

func TestAccepts(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "*/*": false, "text/html": true, "TEXT/HTML": true, "application/json, text/html;q=0.9": true, "text/html;q=0": false, "text/html; q=0.0": false,
		"text/html;q=x": false, "text/htmlx": false, "text/html;level=1": true, ",,;": false,
	} {
		if got := Accepts(http.Header{"Accept": {header}}, "Accept", "text/html"); got != want {
			t.Errorf("%q: %v", header, got)
		}
	}
}

func FuzzAccepts(f *testing.F) {
	f.Add("text/html;q=0.9, */*")
	f.Fuzz(func(t *testing.T, s string) {
		if Accepts(http.Header{"Accept": {s}}, "Accept", "text/html") && !strings.Contains(strings.ToLower(s), "text/html") {
			t.Errorf("%q accepts what it does not name", s)
		}
	})
}
