package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTemplateRefuses: what a template raises reaches the client as its own fault, in the template's words, on both APIs.
func TestTemplateRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	if err := writeDemo(dir); err != nil {
		t.Fatal(err)
	}
	const src = "{% for m in messages %}{% if 'parrot' in m.content %}{{ raise_exception('No \"parrots\", <please>!') }}{% endif %}{{ m.content }}{% endfor %}"
	if err := os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	p := start(t, nil, "--model", dir)
	for _, path := range []string{"/v1/messages", "/v1/chat/completions"} {
		for content, want := range map[string]int{"a parrot": 400, "a cat": 200} {
			status, body := request(t, "POST", p.url+path, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"`+content+`"}]}`)
			refused := strings.Contains(string(body), `No \"parrots\", <please>!`)
			if status != want || refused != (want == 400) {
				t.Errorf("%s, %q: %d %s", path, content, status, body)
			}
		}
	}
}
