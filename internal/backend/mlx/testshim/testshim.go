//go:build darwin || linux

// Package testshim runs package mlx on real MLX in tests: it compiles a thin library with mlx-c's functions against the headers
// and the library of MLX's Python package, which HEARTH_TEST_MLX names. Only tests import it.
package testshim

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"hearth/internal/backend/mlx"
	"hearth/internal/backend/mlx/dl"
	"hearth/internal/config"
)

//go:embed src/shim.cpp
var source []byte

// Newest is the layout that Open takes: that of mlx-c 0.7.
const Newest = 7

var built = struct {
	sync.Mutex
	path map[int]string
}{path: map[int]string{}}

// Library compiles the library with the signatures of mlx-c 0.layout, once per process, or skips the test.
func Library(t testing.TB, layout int) string {
	t.Helper()
	dir, ok := config.Environ("HEARTH_TEST_MLX")
	if !ok {
		t.Skip("HEARTH_TEST_MLX is not set to the folder of MLX's Python package: see make mlx")
	}
	built.Lock()
	defer built.Unlock()
	if p := built.path[layout]; p != "" {
		return p
	}
	// The library stays loaded for the process, so it is not the test's own folder that holds it.
	tmp, err := os.MkdirTemp("", "hearth-mlxc-")
	if err != nil {
		t.Fatal(err)
	}
	src, lib := filepath.Join(tmp, "shim.cpp"), filepath.Join(tmp, "libmlxc.so")
	if err := os.WriteFile(src, source, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("g++", "-std=c++20", "-O1", "-shared", "-fPIC", "-DMLXC_LAYOUT="+strconv.Itoa(layout),
		"-I"+filepath.Join(dir, "include"), "-L"+filepath.Join(dir, "lib"), src, "-lmlx",
		"-Wl,-rpath,"+filepath.Join(dir, "lib"), "-Wl,--allow-shlib-undefined", "-o", lib).CombinedOutput()
	if err != nil {
		t.Fatalf("compile shim.cpp: %v\n%s", err, out)
	}
	built.path[layout] = lib
	return lib
}

// Config opens that library on MLX's CPU device.
func Config(t testing.TB, layout int) mlx.Config {
	t.Helper()
	return mlx.Config{Path: Library(t, layout), Device: "cpu", Link: Link}
}

// Link opens libraries on every system that tests run on.
func Link(path string) (mlx.Library, error) {
	l, err := dl.Open(path)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Open opens MLX or skips the test.
func Open(t testing.TB) *mlx.Backend {
	t.Helper()
	b, err := mlx.Open(Config(t, Newest))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
