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
	"slices"
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
	completed map[string][]byte   // as the last event had it
	turns     map[string][]turn   // on each conversation
	events    map[string][]string // of responses in the background, as they came
}

// turn is a response on a conversation, as its client knows it.
type turn struct {
	id, text string // id is "" if it is not stored, or was not told
	done     bool
}

func newSeen() *seen {
	return &seen{begun: map[string]bool{}, completed: map[string][]byte{}, turns: map[string][]turn{}, events: map[string][]string{}}
}

// talk makes responses, each building on the one before, until the server is gone, half of them in the background.
func (n *seen) talk(ctx context.Context, url string) {
	previous := ""
	for ctx.Err() == nil {
		id, ok := n.one(ctx, url, map[string]any{"input": words(), "previous_response_id": orNull(previous), "background": rand.IntN(2) == 0})
		if !ok {
			return
		}
		previous = id
	}
}

// converse makes responses on a conversation until the server is gone, a quarter of them without storing them.
func (n *seen) converse(ctx context.Context, url string) {
	resp, err := post(ctx, url+"/v1/conversations", map[string]any{})
	if err != nil {
		return
	}
	var c struct{ ID string }
	err = json.NewDecoder(resp.Body).Decode(&c)
	resp.Body.Close()
	for i := 0; err == nil && ctx.Err() == nil; i++ {
		t, store := turn{text: fmt.Sprint(i, " ", words())}, i%4 < 3
		var id string
		id, t.done = n.one(ctx, url, map[string]any{"input": t.text, "conversation": c.ID, "store": store, "background": i%4 == 1})
		if store {
			t.id = id
		}
		n.mu.Lock()
		n.turns[c.ID] = append(n.turns[c.ID], t)
		n.mu.Unlock()
		if !t.done {
			return
		}
	}
}

func words() string { return "Hi " + strings.Repeat("there ", rand.IntN(200)) }

func post(ctx context.Context, url string, body map[string]any) (*http.Response, error) {
	text, _ := json.Marshal(body)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	return http.DefaultClient.Do(r)
}

func (n *seen) one(ctx context.Context, url string, ask map[string]any) (id string, ok bool) {
	ask["stream"] = true
	resp, err := post(ctx, url+"/v1/responses", ask)
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
			n.begun[id] = ask["store"] != false
		case "response.completed":
			n.completed[id] = e.Response
			ok = true
		}
		if ask["background"] == true {
			n.events[id] = append(n.events[id], data)
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

// said is what each response of the script says.
var said = strings.Repeat("one two three ", 20)

// TestKilled: whatever was told to be complete is there, whole, after the server was killed at any time; what was in progress or
// queued has failed; events of responses in the background are those that came, and end; a conversation has the items of each
// response that is complete and nothing of others; and the database is sound.
func TestKilled(t *testing.T) {
	if *hearth == "" {
		t.Skip("run by hand: make crash")
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "script.jsonl")
	if err := os.WriteFile(script, []byte(`{"raw": "<think>Well.</think>`+said+`"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, whole, missing := newSeen(), 0, 0
	statuses, apart := map[string]int{}, map[string]int{}
	for k := range *kills {
		s := start(t, dir, script)
		now := newSeen()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		var wg sync.WaitGroup
		for range clients / 2 {
			wg.Go(func() { now.talk(ctx, s.url) })
			wg.Go(func() { now.converse(ctx, s.url) })
		}
		wg.Go(func() { now.poll(ctx, s.url) })
		life := time.NewTimer(time.Duration(20+rand.IntN(250)) * time.Millisecond) // from before the first commit on
		<-life.C
		s.kill()
		wg.Wait()
		cancel()
		sound(t, dir)
		s = start(t, dir, script)
		for id, stored := range now.begun {
			if all.begun[id] = true; !stored {
				continue
			}
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
			if came := now.events[id]; came != nil {
				apart[status]++
				if err := again(s.url, id, status, came); err != nil {
					t.Errorf("kill %d: the events of %s, which is %s: %v", k, id, status, err)
				}
			}
		}
		for id, last := range now.completed {
			all.completed[id] = last
		}
		for id, turns := range now.turns {
			w, m := compare(t, k, s.url, id, turns)
			whole, missing = whole+w, missing+m
		}
		s.kill()
	}
	t.Logf("%d kills with %d clients each: %d responses begun, %d told to be complete; found %v; of those in the background with events %v; conversations have %d of their turns whole and %d not at all",
		*kills, clients, len(all.begun), len(all.completed), statuses, apart, whole, missing)
	if len(all.completed) < *kills || statuses["failed"] < *kills/4 || apart["completed"] < *kills || apart["failed"] < *kills/8 || whole < *kills || missing < *kills/4 {
		t.Errorf("the kills did not meet what they are for: %v, %v", statuses, apart)
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

// compare looks whether a conversation has the items of those turns that are complete, and tells how many it has and has not.
func compare(t *testing.T, kill int, url, id string, turns []turn) (whole, missing int) {
	t.Helper()
	var got []string // input and output in short
	for after := ""; ; {
		resp, err := http.Get(url + "/v1/conversations/" + id + "/items?order=asc&limit=100&after=" + after)
		if err != nil {
			t.Fatal(err)
		}
		var page struct {
			Data []struct {
				Type, Role string
				Content    []struct{ Text string }
			}
			Last string `json:"last_id"`
			More bool   `json:"has_more"`
		}
		err = json.NewDecoder(resp.Body).Decode(&page)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("kill %d: conversation %s: %s, %v", kill, id, resp.Status, err)
			return 0, 0
		}
		for _, i := range page.Data {
			got = append(got, i.Type+i.Role+":"+i.Content[0].Text)
		}
		if after = page.Last; !page.More {
			break
		}
	}
	for _, turn := range turns {
		want := []string{"messageuser:" + turn.text, "reasoning:Well.", "messageassistant:" + said}
		is := len(got) >= len(want) && slices.Equal(got[:len(want)], want)
		status := "" // not known
		if turn.id != "" {
			status, _ = get(t, url, turn.id)
		}
		switch {
		case turn.done && !is, status == "completed" && !is, status == "failed" && is:
			t.Errorf("kill %d: conversation %s: turn %.10q, told to be done: %t, %s, and the conversation goes on with %.200q", kill, id, turn.text, turn.done, status, got)
			return whole, missing
		case is:
			got = got[len(want):]
			whole++
		default:
			missing++
		}
	}
	if len(got) > 0 {
		t.Errorf("kill %d: conversation %s has more: %.200q", kill, id, got)
	}
	return whole, missing
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
