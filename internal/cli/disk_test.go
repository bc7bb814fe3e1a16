package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// turns is a conversation whose prompts take a few pages; the answer to the first turn goes before the second.
const longSystem = "You are a careful assistant that answers briefly, in one sentence, and says so when it does not know. "

func turn(t *testing.T, p *process, said ...string) (answer string, cached int, header string) {
	t.Helper()
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	var messages []message
	for i, text := range said {
		messages = append(messages, message{[]string{"user", "assistant"}[i%2], text})
	}
	body, err := json.Marshal(map[string]any{"max_tokens": 60, "temperature": 0, "system": strings.Repeat(longSystem, 10), "messages": messages})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), "POST", p.url+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var m struct {
		Content []struct{ Type, Text string }
		Usage   struct {
			Cached int `json:"cache_read_input_tokens"`
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&m); err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res.Status, err)
	}
	for _, c := range m.Content {
		answer += c.Text
	}
	return answer, m.Usage.Cached, res.Header.Get("X-Hearth-Cache")
}

func stop(t *testing.T, p *process) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, p.stderr)
	}
}

// textOnDisk is the line that says which files what is said goes to.
func (p *process) textOnDisk() string {
	for _, line := range p.lines {
		if strings.HasPrefix(line, "text on disk: ") {
			return line
		}
	}
	return ""
}

// A server that was stopped and started again goes on from what it has computed, and answers the same as one that has
// to compute it; a server beside it does without.
func TestServeRestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	first := start(t, nil, "--prefix-cache-dir", dir, "--prefix-cache-disk-mb", "100")
	if !strings.Contains(first.stdout(), "prompt cache on disk up to 100 MiB (0 MiB there) in "+dir) {
		t.Errorf("stdout does not say where:\n%s", first.stdout())
	}
	beside := start(t, nil, "--prefix-cache-dir", dir, "--models", "pinned")
	if got := beside.textOnDisk(); strings.Contains(got, "prompt cache") || !strings.Contains(got, "responses and conversations in ") {
		t.Errorf("beside the owner: %s", got)
	}
	more := start(t, nil, "--prefix-cache-dir", dir)
	if got := more.textOnDisk(); !strings.Contains(got, "the prompt cache of models loaded on demand in "+dir) {
		t.Errorf("beside the owner: %s", got)
	}
	stop(t, more)
	hello := "Hello there, who are you?"
	answer, cached, _ := turn(t, first, hello)
	if cached != 0 || answer == "" {
		t.Errorf("the first turn: %q, %d cached", answer, cached)
	}
	if got, _, _ := turn(t, beside, hello); got != answer {
		t.Errorf("%q beside, %q", got, answer)
	}
	stop(t, first)
	want, warm, _ := turn(t, beside, hello, answer, "And what can you do?")
	stop(t, beside)
	if !strings.Contains(beside.stderr.String(), "nothing is kept on disk") || strings.Contains(beside.stdout(), dir) {
		t.Errorf("beside the owner:\n%s%s", beside.stdout(), beside.stderr)
	}

	second := start(t, nil, "--prefix-cache-dir", dir)
	got, cached, header := turn(t, second, hello, answer, "And what can you do?")
	if got != want {
		t.Errorf("%q after a restart, %q without", got, want)
	}
	if cached < 128 || cached < warm-64 || !strings.Contains(header, "; disk=") {
		t.Errorf("after a restart %d tokens are cached, without %d; header %q", cached, warm, header)
	}
	t.Logf("%d of %d tokens after a restart: %s", cached, warm, header)
	stop(t, second)
	if log := second.stderr.String(); !regexp.MustCompile(`spliced_tokens=[1-9]`).MatchString(log) {
		t.Errorf("the ids of the answer before the restart are not known:\n%s", log)
	}

	off := start(t, []string{"HEARTH_PREFIX_CACHE_DIR=off"})
	if strings.Contains(off.stdout(), "prompt cache on disk") {
		t.Errorf("off:\n%s", off.stdout())
	}
	home := t.TempDir()
	on := start(t, []string{"HOME=" + home, "XDG_CACHE_HOME="})
	stop(t, on)
	var found []string
	_ = filepath.WalkDir(home, func(path string, _ os.DirEntry, err error) error {
		found = append(found, path)
		return err
	})
	if !strings.Contains(strings.Join(found, "\n"), filepath.Join("hearth", "prefix-cache", "demo-")) {
		t.Errorf("as shipped, the user's cache folder has %q", found)
	}
}
