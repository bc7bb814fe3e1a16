package cli

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

// TestMemoryOfBodies: whatever a body is made of, the process takes a small multiple of its bytes from reading it to its
// tokens.
func TestMemoryOfBodies(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what a process took at most is read from /proc")
	}
	const turn = `{"role":"user","content":"a"}`
	talk := func(messages string) string { return `{"model":"demo","messages":[` + messages + `]}` }
	exchanges := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,{"role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"f","input":{}}]},`+
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":"r"}]}`, i, i)
		}
		return b.String()
	}
	for _, tc := range []struct {
		name, body, want string
		status           int
	}{
		{"fields that nobody knows", `{` + strings.Repeat(`"a":1,`, 2_000_000) + talk(turn)[1:], `"input_tokens"`, 200},
		{"too many messages", talk(strings.Repeat(turn+",", 1_000_000) + turn), "messages: too many messages: at most 100000", 400},
		{"as many messages as may be", talk(strings.Repeat(turn+",", 99_999) + turn), `"input_tokens"`, 200},
		{"as many calls as may be", talk(turn + exchanges(20_000)), `"input_tokens"`, 200},
		{"many parts", talk(`{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"abcdefghijklmnopqrst"},`, 79_999) + `{"type":"text","text":"a"}]}`), `"input_tokens"`, 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := start(t, nil, "--prefix-cache-dir", "off")
			peak := func() int64 {
				status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
				if err != nil {
					t.Fatal(err)
				}
				_, after, _ := strings.Cut(string(status), "VmHWM:")
				var kib int64
				if _, err := fmt.Sscan(after, &kib); err != nil {
					t.Fatal(err)
				}
				return kib << 10
			}
			count := func(body string) (int, []byte) { return request(t, "POST", p.url+"/v1/messages/count_tokens", body) }
			if status, body := count(talk(turn)); status != 200 {
				t.Fatalf("%d %s", status, body)
			}
			before := peak()
			if status, body := count(tc.body); status != tc.status || !strings.Contains(string(body), tc.want) {
				t.Fatalf("%d %s", status, body)
			}
			// Eight times the body and 64 MB; the collector lets garbage be for as much again.
			if took, most := peak()-before, int64(8*len(tc.body)+128<<20); took > most {
				t.Errorf("a body of %d bytes takes %d MiB, at most %d", len(tc.body), took>>20, most>>20)
			} else {
				t.Logf("a body of %d bytes takes %d MiB", len(tc.body), took>>20)
			}
		})
	}
}
