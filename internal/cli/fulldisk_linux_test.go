package cli

import (
	"bytes"
	"net/http"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// On a disk that is full what would be stored is refused with a reason, everything else goes on, and where there is room again
// so is storing. The prompt cache does without.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=1m,mode=0700"); err != nil {
		t.Skipf("no small disk can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	p := start(t, nil, "--store-dir", dir+"/store", "--prefix-cache-dir", dir+"/cache")
	respond := func(text string) (int, []byte) {
		return request(t, "POST", p.url+"/v1/responses", `{"input":"`+text+`","max_output_tokens":8}`)
	}
	if status, body := respond("Hello"); status != http.StatusOK {
		t.Fatalf("while there is room: %d %s", status, body)
	}
	if err := os.WriteFile(dir+"/filler", bytes.Repeat([]byte{1}, 1<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	long := strings.Repeat("Many words. ", 1000)
	status, body := respond(long)
	if status < 500 || !bytes.Contains(body, []byte("full")) {
		t.Errorf("stored on a full disk: %d %s", status, body)
	}
	if status, body := request(t, "POST", p.url+"/v1/responses", `{"input":"Hello","max_output_tokens":8,"store":false}`); status != http.StatusOK {
		t.Errorf("not stored: %d %s", status, body)
	}
	if status, body := request(t, "POST", p.url+"/v1/messages", hello); status != http.StatusOK {
		t.Errorf("messages: %d %s", status, body)
	}
	if status, _ := request(t, "GET", p.url+"/readyz", ""); status != http.StatusOK {
		t.Errorf("/readyz: %d", status)
	}
	if err := os.Remove(dir + "/filler"); err != nil {
		t.Fatal(err)
	}
	if status, body := respond("Hello again"); status != http.StatusOK {
		t.Errorf("when there is room again: %d %s", status, body)
	}
	p.end(t)
}
