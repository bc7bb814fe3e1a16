//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A model's file that is cut short while it is mapped fails the requests that need it, and the server goes on; when the file is
// whole again so are replies.
func TestCutWhileMapped(t *testing.T) {
	dir := t.TempDir() + "/little"
	if err := writeDemo(dir); err != nil {
		t.Fatal(err)
	}
	file := dir + "/model.safetensors"
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, nil, dir, "--low-memory", "--prefix-cache-dir", "off", "--threads", "2")
	ask := func() (int, []byte) { return request(t, "POST", p.url+"/v1/messages", hello) }
	before, said := ask()
	if before != http.StatusOK {
		t.Fatalf("%d %s", before, said)
	}
	if err := os.Truncate(file, 1<<20); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if status, body := ask(); status != http.StatusInternalServerError || !bytes.Contains(body, []byte(`"type":"error"`)) {
			t.Fatalf("%d %s", status, body)
		}
		if status, body := request(t, "GET", p.url+"/readyz", ""); status != http.StatusOK {
			t.Errorf("/readyz: %d %s", status, body)
		}
	}
	if err := os.WriteFile(file, whole, 0o600); err != nil { // the same file, not another one in its place
		t.Fatal(err)
	}
	if status, body := ask(); status != http.StatusOK {
		t.Errorf("the file is whole again: %d %s", status, body)
	}
	p.end(t)
	if n := strings.Count(p.stderr.String(), `error="internal error: run step: a file of the model can no longer be read`); n != 3 {
		t.Errorf("said %d times:\n%s", n, p.stderr)
	}
}

// Who holds all descriptors keeps new connections out and nobody who has one; when they are free again all is as before.
func TestOutOfDescriptors(t *testing.T) {
	const files = 64
	p := startPiped(t, fmt.Sprintf("ulimit -n %d", files))
	addr := strings.TrimPrefix(p.url, "http://")
	kept, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	in := bufio.NewReader(kept)
	ask := func(conn net.Conn, in *bufio.Reader) error {
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		fmt.Fprintf(conn, "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(hello), hello)
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if b := new(bytes.Buffer); res.StatusCode != http.StatusOK {
			_, _ = b.ReadFrom(res.Body)
			return fmt.Errorf("%s: %s", res.Status, b)
		}
		_, err = new(bytes.Buffer).ReadFrom(res.Body)
		return err
	}
	if err := ask(kept, in); err != nil {
		t.Fatal(err)
	}
	var held []net.Conn
	for range 2 * files {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
	}
	late, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if err := ask(kept, in); err != nil {
		t.Errorf("who was connected before: %v", err)
	}
	_ = late.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	fmt.Fprint(late, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if n, err := late.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Error("there were descriptors left")
	}
	for _, conn := range held {
		conn.Close()
	}
	late.Close()
	again, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := ask(again, bufio.NewReader(again)); err != nil {
		t.Errorf("when they are free again: %v", err)
	}
	_ = p.Process.Signal(syscall.SIGTERM)
	p.ends(t, "SIGTERM")
}
