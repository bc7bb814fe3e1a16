package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// newTerminal is a terminal of its own, without anybody before it.
func newTerminal(t *testing.T) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	return slave
}

// SIGHUP, which a terminal sends when it goes away, and not only once, ends a server on it as SIGTERM does: what runs may end. A
// second SIGTERM is final.
func TestHangup(t *testing.T) {
	p := startOn(t, newTerminal(t), "")
	res, err := http.Post(p.url+"/v1/messages", "application/json",
		strings.NewReader(`{"stream": true, "max_tokens": 40, "messages": [{"role": "user", "content": "Tell me about yourself"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Process.Signal(syscall.SIGHUP)
	p.says(t, "hearth: stopping")
	_ = p.Process.Signal(syscall.SIGHUP)
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil || !bytes.Contains(body, []byte("message_stop")) {
		t.Errorf("the reply was cut: %v: %s", err, body)
	}
	p.ends(t, "SIGHUP")

	p = startOn(t, newTerminal(t), "", "--drain-timeout", "10m")
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") { // it runs
		t.Fatal(line, err)
	}
	_ = p.Process.Signal(syscall.SIGHUP)
	p.says(t, "hearth: stopping")
	_ = p.Process.Signal(syscall.SIGTERM)
	if err := p.Wait(); p.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("a second signal: %v", err)
	}
}
