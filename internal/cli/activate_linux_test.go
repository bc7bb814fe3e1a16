package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The process of a model, which the server starts, has neither the variables nor the sockets.
func TestActivatedWorker(t *testing.T) {
	tcp, _ := socketFile(t, "tcp", "127.0.0.1:0")
	socket, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(tcp.Fd())))
	if err != nil || !strings.HasPrefix(socket, "socket:") {
		t.Fatal(socket, err)
	}
	p := startWith(t, nil, []*os.File{tcp}, activated(1)+" LISTEN_FDNAMES=web LISTEN_PIDFDID=1", "--model-process", "always")
	has := func(pid string) (variables, descriptors bool) {
		t.Helper()
		env, err := os.ReadFile("/proc/" + pid + "/environ")
		if err != nil {
			t.Fatal(err)
		}
		fds, err := filepath.Glob("/proc/" + pid + "/fd/*")
		if err != nil || len(fds) == 0 {
			t.Fatal(fds, err)
		}
		for _, fd := range fds {
			to, _ := os.Readlink(fd) // it may be closed by now
			descriptors = descriptors || to == socket
		}
		return bytes.Contains(env, []byte("LISTEN_")), descriptors
	}
	own := strconv.Itoa(p.Process.Pid)
	if variables, descriptors := has(own); !variables || !descriptors {
		t.Errorf("the server was started with variables: %t, and has the socket: %t", variables, descriptors)
	}
	var workers []string
	tasks, _ := filepath.Glob("/proc/" + own + "/task/*/children")
	for _, f := range tasks {
		b, _ := os.ReadFile(f) // of a thread that has ended
		workers = append(workers, strings.Fields(string(b))...)
	}
	if len(workers) == 0 {
		t.Fatal("no process of a model")
	}
	for _, pid := range workers {
		if variables, descriptors := has(pid); variables || descriptors {
			t.Errorf("process %s has the variables: %t, the socket: %t", pid, variables, descriptors)
		}
	}
}
