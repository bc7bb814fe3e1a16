//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package regular

import (
	"errors"
	"os"
)

// Lock takes a file for this process.
func Lock(*os.File) error { return errors.New("this system has no file locks") }

// LockShared is Lock that others who share it do not hinder.
func LockShared(*os.File) error { return errors.New("this system has no file locks") }
