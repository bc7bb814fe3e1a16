//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hearth/internal/config"
)

// activated has the shell that startWith goes through say to hearth, into which it turns, that n sockets are for it.
func activated(n int) string {
	return "export LISTEN_PID=$$ LISTEN_FDS=" + strconv.Itoa(n)
}

// socketFile is a listener on loopback or a Unix socket, as a file for another process.
func socketFile(t *testing.T, network, address string) (*os.File, net.Addr) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	defer l.Close()
	f, err := l.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, l.Addr()
}

// says posts a message to the server at url, and is what came back.
func says(url string) (string, error) {
	s := &state{URL: url}
	res, err := s.client().Post(s.base()+"/v1/messages", "application/json", strings.NewReader(hello))
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res.Status + " " + string(body), err
}

// A server that is started with sockets, as systemd does it, serves on all of them and on nothing else, is found there by
// programs of this machine, and leaves them to whoever opened them: the next one answers who asked between the two.
func TestServeActivated(t *testing.T) {
	path, runtimeDir := filepath.Join(t.TempDir(), "s"), t.TempDir()
	tcp, at := socketFile(t, "tcp", "127.0.0.1:0")
	local, _ := socketFile(t, "unix", path)
	url := "http://" + at.String()
	script := scriptFile(t, `{"raw": "Hello."}`)
	begin := func(more ...string) *piped {
		return startWith(t, nil, []*os.File{local, tcp}, activated(2)+" LISTEN_FDNAMES=web:local XDG_RUNTIME_DIR="+runtimeDir,
			append([]string{"--listen", "127.0.0.1:0", "--script", script}, more...)...)
	}
	p := begin()
	if want := "listening on unix:" + path + " and " + url; p.banner[1] != want {
		t.Errorf("%q, want %q", p.banner[1], want)
	}
	if want := "sockets: descriptors 3, 4 (web, local), passed to hearth as LISTEN_FDS says, in the place of --host, --port and --listen"; p.banner[2] != want {
		t.Errorf("%q, want %q", p.banner[2], want)
	}
	for _, at := range []string{url, "unix:" + path} {
		if got, err := says(at); err != nil || !strings.HasPrefix(got, "200 ") || !strings.Contains(got, "Hello.") {
			t.Errorf("%s: %v: %s", at, err, got)
		}
	}
	if out, err := command(t, []string{"XDG_RUNTIME_DIR=" + runtimeDir}, "ps").CombinedOutput(); err != nil || !bytes.Contains(out, []byte(url)) {
		t.Errorf("ps: %v: %s", err, out)
	}
	if out, errs, code := launch(t, runtimeDir, "--demo", "--print"); code != 0 || !strings.Contains(out, "ANTHROPIC_BASE_URL='"+url+"'") {
		t.Errorf("launch: %d %s%s", code, out, errs)
	}
	_ = p.Process.Signal(syscall.SIGTERM)
	p.ends(t, "SIGTERM")
	if st, err := os.Lstat(path); err != nil || st.Mode().Type() != os.ModeSocket {
		t.Errorf("the socket: %v", err)
	}
	type reply struct {
		text string
		err  error
	}
	waiting := make(chan reply, 2)
	for _, at := range []string{url, "unix:" + path} {
		go func() {
			got, err := says(at)
			waiting <- reply{got, err}
		}()
	}
	cert, key := pairFiles(t, t.TempDir(), "a", nil)
	p = begin()
	for range 2 {
		if r := <-waiting; r.err != nil || !strings.HasPrefix(r.text, "200 ") {
			t.Errorf("who asked while no server ran: %v: %s", r.err, r.text)
		}
	}
	_ = p.Process.Signal(syscall.SIGTERM)
	p.ends(t, "SIGTERM")

	// TLS is spoken on TCP, here as elsewhere.
	p = begin("--tls-cert", cert, "--tls-key", key)
	if !strings.HasPrefix(p.banner[1], "listening on unix:"+path+" and https://") {
		t.Errorf("with TLS: %q", p.banner[1])
	}
	res, err := trusting(t, cert, "h2").Get("https://" + at.String() + "/health")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK || res.ProtoMajor != 2 {
		t.Errorf("TLS: %s %s", res.Proto, res.Status)
	}
	if got, err := says("unix:" + path); err != nil || !strings.HasPrefix(got, "200 ") {
		t.Errorf("with TLS, on the Unix socket: %v: %s", err, got)
	}
}

// Sockets that are for another process are left alone.
func TestActivatedAnother(t *testing.T) {
	tcp, at := socketFile(t, "tcp", "127.0.0.1:0")
	p := startWith(t, nil, []*os.File{tcp}, "export LISTEN_PID=1 LISTEN_FDS=1", "--script", scriptFile(t, `{"raw": "Hello."}`))
	if strings.HasSuffix(p.url, at.String()) || strings.HasPrefix(p.banner[2], "sockets:") {
		t.Errorf("%q", p.banner)
	}
	if got, err := says(p.url); err != nil || !strings.HasPrefix(got, "200 ") {
		t.Errorf("%v: %s", err, got)
	}
}

// --listen-fd takes over the socket that it names, beside others of --listen or alone.
func TestListenFD(t *testing.T) {
	tcp, at := socketFile(t, "tcp", "127.0.0.1:0")
	path := filepath.Join(t.TempDir(), "s")
	script := scriptFile(t, `{"raw": "Hello."}`)
	for want, args := range map[string][]string{
		"http://" + at.String():                            {"--listen-fd", "3"},
		"unix:" + path + " and http://" + at.String():      {"--listen", "unix:" + path, "--listen", "fd:3"},
		"http://" + at.String() + " and " + "unix:" + path: {"--listen", "fd:3,unix:" + path},
	} {
		p := startWith(t, nil, []*os.File{tcp}, "", append(args, "--script", script)...)
		if p.banner[1] != "listening on "+want || p.banner[2] != "sockets: descriptor 3, passed to hearth as "+args[0]+" says" {
			t.Errorf("%q: %q", args, p.banner[1:3])
		}
		if got, err := says("http://" + at.String()); err != nil || !strings.HasPrefix(got, "200 ") {
			t.Errorf("%q: %v: %s", args, err, got)
		}
		_ = p.Process.Signal(syscall.SIGTERM)
		p.ends(t, "SIGTERM")
	}
}

// What is passed and is no socket that listens ends the start with its number, its name, what it is and what to do.
func TestActivatedMistakes(t *testing.T) {
	tcp, _ := socketFile(t, "tcp", "127.0.0.1:0")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for want, args := range map[string][]string{
		"hearth: error: descriptor 4 (hearth.socket) of LISTEN_FDS is a pipe, not a socket\n" +
			"hearth: hint: a .socket unit of hearth has ListenStream= lines alone, and no Accept=yes\n": {"export LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=hearth.socket:hearth.socket", "serve"},
		"hearth: error: descriptor 4 of --listen-fd is a pipe, not a socket\n" +
			"hearth: hint: it has to be a TCP or Unix socket that listens, and open in the process that starts hearth\n": {":", "serve", "--listen-fd", "4"},
		"hearth: error: descriptor 9 of --listen is not open, or was not passed to hearth\n": {":", "serve", "--listen", "fd:3,fd:9"},
		"hearth: error: descriptor 3 of --listen is not open, or was not passed to hearth\n": {":", "serve", "--listen", "fd:3,fd:3"},
		`hearth: error: environment variable LISTEN_FDS="none" is no number`:                 {"export LISTEN_PID=$$ LISTEN_FDS=none", "serve"},
	} {
		cmd := command(t, nil, args[1:]...)
		cmd.Args = append([]string{"sh", "-c", args[0] + `; exec "$@"`, "sh", cmd.Path}, cmd.Args[1:]...)
		cmd.Path, cmd.ExtraFiles = "/bin/sh", []*os.File{tcp, r}
		if out, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.ExitCode() != 1 || !bytes.HasPrefix(out, []byte(want)) {
			t.Errorf("%q: %v: %s\nwant %s", args, err, out, want)
		}
	}
}

// inherited is a descriptor like those that a process is started with.
func inherited(t *testing.T, fd int) int {
	t.Helper()
	own, err := unix.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	return own
}

// Of all that a descriptor may be, sockets of TCP and Unix that listen are taken over; of several, all or none.
func TestTakeOver(t *testing.T) {
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	folder, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	tcp, at := socketFile(t, "tcp", "127.0.0.1:0")
	conn, err := net.Dial("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	connection, err := conn.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	socket := func(domain, kind int, at unix.Sockaddr) int {
		fd, err := unix.Socket(domain, kind, 0)
		if err == nil && at != nil {
			err = unix.Bind(fd, at)
		}
		if err != nil {
			t.Fatal(err)
		}
		return fd // its receiver closes it
	}
	loopback := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	bound := errNotListening.Error()
	if runtime.GOOS == "darwin" {
		bound = "" // it does not say which listen, so this one begins to
	}
	for _, tc := range []struct {
		what string
		fd   int
		want string
	}{
		{"TCP", inherited(t, int(tcp.Fd())), ""},
		{"file", inherited(t, int(file.Fd())), "is a file, not a socket"},
		{"folder", inherited(t, int(folder.Fd())), "is a folder, not a socket"},
		{"device", inherited(t, int(null.Fd())), "is a device, not a socket"},
		{"connection", inherited(t, int(connection.Fd())), "is a connection, not a socket that listens"},
		{"UDP", socket(unix.AF_INET, unix.SOCK_DGRAM, loopback), "is a socket of messages, not one of streams"},
		{"bound", socket(unix.AF_INET, unix.SOCK_STREAM, loopback), bound},
		{"new", socket(unix.AF_INET, unix.SOCK_STREAM, nil), errNotListening.Error()},
		{"new, of Unix", socket(unix.AF_UNIX, unix.SOCK_STREAM, nil), errNotListening.Error()},
		{"its own", int(file.Fd()), errNotPassed.Error()},
		{"closed", 1 << 20, errNotPassed.Error()},
	} {
		good, at := socketFile(t, "unix", filepath.Join(dir, "s"))
		ls, err := takeAll([]passed{{fd: inherited(t, int(good.Fd())), from: "--listen"}, {fd: tc.fd, from: "--listen"}})
		good.Close()
		got := ""
		if err != nil {
			got = strings.TrimPrefix(err.Error(), "descriptor "+strconv.Itoa(tc.fd)+" of --listen ")
		}
		if got != tc.want || (err == nil) != (len(ls) == 2) {
			t.Errorf("%s: %q, want %q", tc.what, got, tc.want)
		}
		closeAll(ls)
		if _, err := net.Dial("unix", at.String()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: the good one is still open: %v", tc.what, err)
		}
		if err := os.Remove(at.String()); err != nil {
			t.Errorf("%s: the file of the socket: %v", tc.what, err)
		}
		if tc.what != "its own" && tc.what != "closed" {
			if _, err := unix.FcntlInt(uintptr(tc.fd), unix.F_GETFD, 0); !errors.Is(err, unix.EBADF) {
				t.Errorf("%s: descriptor %d is still open: %v", tc.what, tc.fd, err)
				unix.Close(tc.fd)
			}
		}
	}
	if _, err := file.Stat(); err != nil {
		t.Errorf("a file of this process: %v", err)
	}
}

// A passed socket on all addresses is public, and called by the addresses of its own IP version: nobody accepts on these here.
func TestActivatedPublic(t *testing.T) {
	for network, version := range map[string]int{"tcp4": 4, "tcp6": 6} {
		f, at := socketFile(t, network, ":0")
		s, err := openSockets(config.Default(), []passed{{fd: inherited(t, int(f.Fd()))}})
		if err != nil {
			t.Fatal(err)
		}
		var to state
		s.describe(&to)
		port := strconv.Itoa(at.(*net.TCPAddr).Port)
		if got := ipVersion(s.listeners[0]); got != version || !s.public() || to.URL != "http://"+net.JoinHostPort(loopback(version), port) {
			t.Errorf("%s: version %d, public %t, %s", network, got, s.public(), to.URL)
		}
		for _, url := range s.urls() {
			if strings.Contains(url, "[") != (version == 6) {
				t.Errorf("%s: %s", network, url)
			}
		}
		closeAll(s.listeners)
	}
}

// The program that systemd has for trying this starts hearth as systemd does, at the first connection.
func TestSystemdSocketActivate(t *testing.T) {
	systemd, err := exec.LookPath("systemd-socket-activate")
	if err != nil {
		t.Skip("no systemd here")
	}
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	cmd := command(t, nil, "serve", "--script", scriptFile(t, `{"raw": "Hello."}`))
	cmd.Args = append([]string{systemd, "-l", one, "-l", two, "--fdname=web:local", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = systemd
	var stderr lockedBuffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{one, two} {
		got, err := says("unix:" + path)
		for deadline := time.Now().Add(30 * time.Second); err != nil && time.Now().Before(deadline); { // it opens them first
			got, err = says("unix:" + path)
		}
		if err != nil || !strings.HasPrefix(got, "200 ") {
			t.Errorf("%s: %v: %s", path, err, got)
		}
	}
	var banner strings.Builder // it may answer before it has said where
	for lines := bufio.NewScanner(stdout); lines.Scan() && !strings.HasPrefix(lines.Text(), "ready in "); {
		banner.WriteString(lines.Text() + "\n")
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, stderr.String())
	}
	for _, want := range []string{"listening on unix:" + one + " and unix:" + two, "sockets: descriptors 3, 4 (web, local), passed"} {
		if !strings.Contains(banner.String(), want) {
			t.Errorf("no %q in\n%s%s", want, banner.String(), stderr.String())
		}
	}
}
