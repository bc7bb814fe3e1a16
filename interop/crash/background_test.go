package crash

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// poll makes responses in the background and asks for each until it has ended, until the server is gone.
func (n *seen) poll(ctx context.Context, url string) {
	for ctx.Err() == nil {
		resp, err := post(ctx, url+"/v1/responses", map[string]any{"input": words(), "background": true})
		for done := false; !done; {
			if err != nil {
				return
			}
			var r struct{ ID, Status string }
			var b bytes.Buffer
			_, err = b.ReadFrom(resp.Body)
			resp.Body.Close()
			if err != nil || json.Unmarshal(b.Bytes(), &r) != nil || r.ID == "" {
				return
			}
			n.mu.Lock()
			n.begun[r.ID] = true
			if done = r.Status == "completed"; done {
				n.completed[r.ID] = bytes.TrimSpace(b.Bytes())
			}
			n.mu.Unlock()
			if !done {
				resp, err = http.Get(url + "/v1/responses/" + r.ID)
			}
		}
	}
}

// again reads the events of a response once more. They are numbered without a gap, are those that came before the kill as far as
// there are both, and end as the response did; where it has ended none is missing. So they go on where the client was cut off.
func again(url, id, status string, came []string) error {
	url += "/v1/responses/" + id + "?stream=true"
	all, err := follow(url)
	if err != nil {
		return err
	}
	end := `{"type":"response.` + status + `"`
	for i, e := range all {
		if !strings.HasSuffix(e, fmt.Sprintf(`,"sequence_number":%d}`, i)) || strings.HasPrefix(e, end) != (i == len(all)-1) {
			return fmt.Errorf("number %d is %s", i, e)
		}
	}
	both := min(len(came), len(all)-1)
	if !slices.Equal(came[:both], all[:both]) || status == "completed" && len(came) > len(all) {
		return fmt.Errorf("%q came, and now %q", came, all)
	}
	n := len(came) - 1
	if strings.HasPrefix(came[n], end) {
		return nil
	}
	rest, err := follow(fmt.Sprintf("%s&starting_after=%d", url, n))
	switch {
	case err != nil:
		return err
	case n+1 < len(all) && !slices.Equal(rest, all[n+1:]), n+1 >= len(all) && (len(rest) != 1 || !strings.HasPrefix(rest[0], end)):
		return fmt.Errorf("after number %d come %q", n, rest)
	}
	return nil
}

// follow reads events to their end.
func follow(url string) (events []string, err error) {
	resp, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			events = append(events, data)
		}
	}
	if err = lines.Err(); err == nil && len(events) == 0 {
		err = errors.New("there are none: " + resp.Status)
	}
	return events, err
}
