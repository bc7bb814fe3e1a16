package access

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hearth/internal/regular"
)

// header begins a file that is made here.
const header = "# Keys of hearth, a line each: name, operator or user, the key's hash, limits. hearth keys add, list and revoke change it.\n"

// Add writes a key with a name to a file, which is made where there is none.
func Add(file string, k Key) error {
	return change(file, func(lines []string) ([]string, error) {
		if len(lines) == 0 {
			lines = []string{header}
		}
		for _, line := range lines {
			if old, err := parseLine(line); err == nil && old != nil && old.Name == k.Name {
				return nil, fmt.Errorf("%s has a key of the name %s already", file, k.Name)
			}
		}
		if last := len(lines) - 1; !strings.HasSuffix(lines[last], "\n") {
			lines[last] += "\n"
		}
		return append(lines, k.Line()+"\n"), nil
	})
}

// ErrNoKey is of a name that no key of a file has.
var ErrNoKey = errors.New("has no key of the name")

// Revoke takes the keys of a name out of a file. All else stays as it is.
func Revoke(file, name string) error {
	return change(file, func(lines []string) ([]string, error) {
		var rest []string
		for _, line := range lines {
			if k, err := parseLine(line); err == nil && k != nil && k.Name == name {
				continue
			}
			rest = append(rest, line)
		}
		if len(rest) == len(lines) {
			return nil, fmt.Errorf("%s %w %s", file, ErrNoKey, name)
		}
		return rest, nil
	})
}

// change writes what f makes of the lines of a file in its place: a reader sees one or the other. Who changes it meanwhile waits
// for nobody: it is told that the file is in use.
func change(file string, f func(lines []string) ([]string, error)) (err error) {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target // the link stays one
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	lock, err := regular.Take(filepath.Dir(file))
	if err != nil {
		return fmt.Errorf("%s is being changed: %w", file, err)
	}
	defer func() { err = cmp.Or(err, lock.Close()) }()
	mode := fs.FileMode(0o600)
	text, err := regular.Read(file, mostFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if st, err := os.Stat(file); err == nil {
			mode = st.Mode().Perm()
		}
	}
	var lines []string
	if len(text) > 0 {
		lines = strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
	}
	if lines, err = f(lines); err != nil {
		return err
	}
	return regular.Replace(file, 0o600, func(f *os.File) error {
		_, err := f.WriteString(strings.Join(lines, ""))
		return cmp.Or(err, f.Chmod(mode)) // whatever the umask
	})
}
