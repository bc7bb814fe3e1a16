//go:build !unix

package remote

import (
	"errors"
	"io"
	"os/exec"
)

// Possible says whether this system can run engines in processes of their own.
const Possible = false

var errImpossible = errors.New("engines do not run in processes of their own on this system")

// Exec cannot start anything here.
func Exec(*exec.Cmd, func(string)) (Process, error) { return nil, errImpossible }

// Inherit finds nothing here.
func Inherit() (io.ReadWriteCloser, error) { return nil, errImpossible }
