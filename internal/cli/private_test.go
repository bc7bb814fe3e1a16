package cli

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// What is said goes to the files that the start names, and with --private to none.
func TestPrivate(t *testing.T) {
	for _, args := range [][]string{nil, {"--private"}} {
		dir := t.TempDir()
		p := start(t, []string{"XDG_CACHE_HOME=" + dir + "/cache", "XDG_DATA_HOME=" + dir + "/data", "TMPDIR=" + dir}, args...)
		for _, body := range []string{`{"input":"My name is Ada.","max_output_tokens":20}`, `{"input":"` + strings.Repeat("My name is Ada. ", 100) + `","max_output_tokens":20}`} {
			if status, got := request(t, "POST", p.url+"/v1/responses", body); status != 200 {
				t.Fatalf("%d %s", status, got)
			}
		}
		p.end(t)
		found := map[string]bool{}
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				path, _ = filepath.Rel(dir, path)
				found[strings.Join(strings.SplitN(path, string(filepath.Separator), 4)[:2], "/")] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		line := p.textOnDisk()
		want := "text on disk: responses and conversations in " + dir + "/data/hearth, those idle for 1h in " + dir + "/data/hearth/conversation_logs, the prompt cache in " +
			dir + "/cache/hearth/prefix-cache; --private keeps it in memory"
		if args != nil {
			want = "text on disk: none; what is said stays in memory"
		}
		if line != want {
			t.Errorf("%v: %s, want %s", args, line, want)
		}
		if private := args != nil; private && len(found) > 0 || !private && (!found["cache/hearth"] || !found["data/hearth"]) {
			t.Errorf("%v: files in %v", args, found)
		}
	}
}
