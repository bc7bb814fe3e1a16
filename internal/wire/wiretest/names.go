package wiretest

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	asked     = regexp.MustCompile(`\bGet\("([^"]*)"\)`)
	ofHeaders = regexp.MustCompile(`Header(\(\))?\.Get\(|Query\(\)\.Get\(|\bh\.Get\(`)
)

// Names checks that the fields that the package in the working folder asks bodies for are declared in its names.go.
func Names(t *testing.T) {
	t.Helper()
	declared, err := os.ReadFile("names.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(src)) {
			if ofHeaders.MatchString(line) {
				continue
			}
			for _, m := range asked.FindAllStringSubmatch(line, -1) {
				if n++; !strings.Contains(string(declared), strconv.Quote(m[1])) {
					t.Errorf("%s: %q is not declared in names.go", file, m[1])
				}
			}
		}
	}
	if n == 0 {
		t.Errorf("%d names were found", n)
	}
}
