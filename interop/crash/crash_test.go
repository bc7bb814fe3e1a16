// Package crash kills a hearth that stores responses, again and again under load, and looks at what is there afterwards. It is
// run by hand: make crash.
package crash

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite" // to look at the database as it was left
)

var (
	hearth = flag.String("hearth", "", "the hearth binary under test; without it the test is skipped")
	kills  = flag.Int("kills", 200, "how often it is killed")
)

const clients = 8

// server is a hearth on a folder.
type server struct {
	url string
	cmd *exec.Cmd
}

func start(t *testing.T, dir, script string) *server {
	t.Helper()
	cmd := exec.Command(*hearth, "serve", "--port", "0", "--script", script, "--store-dir", dir, "--log-level", "error", "--prefix-cache-dir", "off")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &server{cmd: cmd}
	t.Cleanup(s.kill)
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "ready in ") {
		if rest, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			s.url, _, _ = strings.Cut(rest, " ")
		}
	}
	go func() {
		for lines.Scan() {
		}
	}()
	return s
}

// kill ends the process as nothing else does.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// seen is what a client was told of its responses.
type seen struct {
	mu        sync.Mutex
	begun     map[string]bool
	completed map[string][]byte // as the last event had it
}

// talk makes responses, each building on the one before, until the server is gone.
func (n *seen) talk(ctx context.Context, url string) {
	previous := ""
	for ctx.Err() == nil {
		id, ok := n.one(ctx, url, previous)
		if !ok {
			return
		}
		previous = id
	}
}

func (n *seen) one(ctx context.Context, url, previous string) (id string, ok bool) {
	body, _ := json.Marshal(map[string]any{"input": "Hi " + strings.Repeat("there ", rand.IntN(200)), "stream": true, "previous_response_id": orNull(previous)})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/responses", bytes.NewReader(body))
	if err != nil {
		return "", false
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", false
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		data, isData := strings.CutPrefix(lines.Text(), "data: ")
		var e struct {
			Type     string
			Response json.RawMessage
		}
		if !isData || json.Unmarshal([]byte(data), &e) != nil {
			continue
		}
		var of struct{ ID string }
		_ = json.Unmarshal(e.Response, &of)
		n.mu.Lock()
		switch e.Type {
		case "response.created":
			id = of.ID
			n.begun[id] = true
		case "response.completed":
			n.completed[id] = e.Response
			ok = true
		}
		n.mu.Unlock()
	}
	return id, ok
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// TestKilled: whatever was told to be complete is there, whole, after the server was killed at any time; what was in progress has
// failed; and the database is sound.
func TestKilled(t *testing.T) {
	if *hearth == "" {
		t.Skip("run by hand: make crash")
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "script.jsonl")
	if err := os.WriteFile(script, []byte(`{"raw": "<think>Well.</think>{{repeat 20 \"one two three \"}}"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := &seen{begun: map[string]bool{}, completed: map[string][]byte{}}
	statuses := map[string]int{}
	for k := range *kills {
		s := start(t, dir, script)
		now := &seen{begun: map[string]bool{}, completed: map[string][]byte{}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		var wg sync.WaitGroup
		for range clients {
			wg.Go(func() { now.talk(ctx, s.url) })
		}
		life := time.NewTimer(time.Duration(20+rand.IntN(250)) * time.Millisecond) // from before the first commit on
		<-life.C
		s.kill()
		wg.Wait()
		cancel()
		sound(t, dir)
		s = start(t, dir, script)
		for id := range now.begun {
			status, body := get(t, s.url, id)
			statuses[status]++
			switch last, done := now.completed[id]; {
			case done && !bytes.Equal(bytes.TrimSpace(body), last):
				t.Errorf("kill %d: %s was told to be\n%s\nand is\n%s", k, id, last, body)
			case !done && status != "failed" && status != "completed":
				t.Errorf("kill %d: %s was in progress, and is %s", k, id, body)
			case status == "failed" && !bytes.Contains(body, []byte("server_error")):
				t.Errorf("kill %d: %s", k, body)
			}
			all.begun[id] = true
		}
		for id, last := range now.completed {
			all.completed[id] = last
		}
		s.kill()
	}
	t.Logf("%d kills with %d clients each: %d responses begun, %d told to be complete; found %v", *kills, clients, len(all.begun), len(all.completed), statuses)
	if len(all.completed) < *kills || statuses["failed"] < *kills/4 {
		t.Errorf("the kills did not meet what they are for: %v", statuses)
	}
}

func get(t *testing.T, url, id string) (status string, body []byte) {
	t.Helper()
	resp, err := http.Get(url + "/v1/responses/" + id)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	_, _ = b.ReadFrom(resp.Body)
	var r struct{ Status string }
	_ = json.Unmarshal(b.Bytes(), &r)
	if resp.StatusCode != http.StatusOK {
		return fmt.Sprint(resp.StatusCode), b.Bytes()
	}
	return r.Status, b.Bytes()
}

// sound checks the database as the kill has left it.
func sound(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "responses.db")
	if _, err := os.Stat(path); err != nil {
		return // it was killed before there was one
	}
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var got string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&got); err != nil || got != "ok" {
		t.Errorf("the database: %s, %v", got, err)
	}
}
