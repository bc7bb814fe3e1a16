package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// RuntimeDir makes and returns the folder for what a running server tells other programs of the same user: hearth in
// XDG_RUNTIME_DIR, else a folder in the one for temporary files. Nobody else may read it.
func RuntimeDir(env Env) (string, error) {
	dir := filepath.Join(os.TempDir(), "hearth-"+strconv.Itoa(os.Getuid()))
	if base, _ := env("XDG_RUNTIME_DIR"); base != "" {
		dir = filepath.Join(base, "hearth")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the runtime folder: %w", err)
	}
	// In a folder for everybody, somebody else may have been first.
	st, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("make the runtime folder: %w", err)
	}
	if !st.IsDir() || st.Mode().Perm()&0o077 != 0 && os.Getuid() >= 0 {
		return "", fmt.Errorf("runtime folder %s: is not a folder of this user alone", dir)
	}
	return dir, nil
}

// ChildEnv is the process's environment for a program that is started, with the variables of set added or replaced.
func ChildEnv(set [][2]string) []string {
	env := os.Environ()
	for _, kv := range set {
		env = append(env, kv[0]+"="+kv[1]) // of several, exec takes the last
	}
	return env
}
