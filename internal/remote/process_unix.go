//go:build unix

package remote

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Possible says whether this system can run engines in processes of their own.
const Possible = true

// workerFD is where a worker process finds its connection, behind the three standard files.
const workerFD = 3

// Exec starts a program that is to call Inherit and Serve, as a Process. It has no input, and its output goes to lines: a
// line a call, from another goroutine. Signals of the terminal do not reach it.
func Exec(cmd *exec.Cmd, lines func(string)) (Process, error) {
	ours, theirs, err := pair()
	if err != nil {
		return nil, err
	}
	t := &tail{pass: lines}
	cmd.Stdout, cmd.Stderr = t, t
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second // for output that something else still holds open
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		ours.Close()
		return nil, err
	}
	p := &process{ReadWriteCloser: ours, cmd: cmd}
	p.wait = sync.OnceValue(func() string { return ending(cmd.Wait(), cmd.ProcessState, t.last()) })
	return p, nil
}

// pair makes two ends of a connection, the second of which a worker process can inherit.
func pair() (ours, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket pair: %w", err)
	}
	if err := syscall.SetNonblock(fds[0], true); err != nil { // so that closing it ends a read
		_ = syscall.Close(fds[0])
		_ = syscall.Close(fds[1])
		return nil, nil, fmt.Errorf("make a socket pair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "parent's end"), os.NewFile(uintptr(fds[1]), "worker's end"), nil
}

// Inherit is the connection that Exec has given to this process.
func Inherit() (io.ReadWriteCloser, error) {
	var st syscall.Stat_t
	if err := syscall.Fstat(workerFD, &st); err != nil || st.Mode&syscall.S_IFMT != syscall.S_IFSOCK {
		return nil, errors.New("this process was not started by a server: it has no connection to one")
	}
	syscall.CloseOnExec(workerFD)
	if err := syscall.SetNonblock(workerFD, true); err != nil {
		return nil, fmt.Errorf("take the connection to the server: %w", err)
	}
	return os.NewFile(workerFD, "server"), nil
}

type process struct {
	io.ReadWriteCloser
	cmd  *exec.Cmd
	wait func() string
}

func (p *process) Kill()        { _ = p.cmd.Process.Kill() } // it may have ended
func (p *process) Wait() string { return p.wait() }
func (p *process) PID() int     { return p.cmd.Process.Pid }

// ending says in words how a process ended.
func ending(err error, state *os.ProcessState, last string) string {
	how := "exit status 0"
	switch {
	case state != nil:
		how = state.String()
	case err != nil:
		how = err.Error()
	}
	if last != "" {
		how += ": " + last
	}
	return how
}
