//go:build !darwin

package mlx

import (
	"errors"
	"runtime"
)

// system refuses: calling a C library would tie the program to the C library of one distribution.
func system(string) (Library, error) {
	return nil, errors.New("hearth does not load libraries on " + runtime.GOOS + ": MLX runs on macOS")
}
