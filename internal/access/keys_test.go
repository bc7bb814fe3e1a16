package access

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What add writes is read back, whatever limits there are, and revoke takes it and nothing else.
func TestAddAndRevoke(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "keys")
	if err := Revoke(file, "ada"); !errors.Is(err, ErrNoKey) {
		t.Errorf("of no file: %v", err)
	}
	ada := PlainKey("secret-a")
	ada.Name, ada.Operator, ada.Plain, ada.Created = "ada", true, "", "2026-01-31"
	ada.Limits = Limits{Models: []string{"org/*", "demo"}, Background: true, PerMinute: 60, MaxRequests: 4}
	bob := PlainKey("secret-b")
	bob.Name, bob.Plain = "bob", ""
	for _, k := range []Key{ada, bob} {
		if err := Add(file, k); err != nil {
			t.Fatal(err)
		}
	}
	if err := Add(file, bob); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a name twice: %v", err)
	}
	got, err := ReadFile(file)
	if d := cmp.Diff([]Key{ada, bob}, got); d != "" || err != nil {
		t.Errorf("%v, -want +got\n%s", err, d)
	}
	text, _ := os.ReadFile(file)
	if strings.Contains(string(text), "secret") {
		t.Errorf("a key is in the file:\n%s", text)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st.Mode(), err)
	}
	// What is not ours stays as it is, also without an end of line.
	if err := os.WriteFile(file, append(text, "# a note\nplain"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := Revoke(file, "ada"); err != nil {
		t.Fatal(err)
	}
	after, _ := os.ReadFile(file)
	if want := strings.Replace(string(text), ada.Line()+"\n", "", 1) + "# a note\nplain"; string(after) != want {
		t.Errorf("got\n%s\nwant\n%s", after, want)
	}
	if err := Add(file, ada); err != nil {
		t.Fatal(err)
	}
	if got, err = ReadFile(file); err != nil || len(got) != 3 || got[1].Plain != "plain" {
		t.Errorf("%+v %v", got, err)
	}
	if st, _ := os.Stat(file); st.Mode().Perm() != 0o640 {
		t.Errorf("mode %v", st.Mode())
	}
	// A link stays a link.
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if err := Revoke(link, "bob"); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Lstat(link); err != nil || st.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("%v %v", st.Mode(), err)
	}
}

// Words behind a key that say nothing are refused, by their place: they may be a key.
func TestWords(t *testing.T) {
	for words, want := range map[string]string{
		"topsecret":               "line 1: word 4: want models, rate-limit",
		"rate-limit=5 topsecret=": "line 1: word 5: want models, rate-limit",
		"topsecret=3":             "line 1: word 4: want models, rate-limit, max-requests, priority or created before the =",
		"rate-limit=topsecret":    "rate-limit: want a whole number from 1",
		"max-requests=0":          "max-requests: want a whole number from 1",
		"priority=topsecret":      "priority: want interactive or background",
		"models=a,,b":             "models: want names of models",
		"models=a*b*":             "models: want names of models",
		"created=topsecret":       "created: want a day",
	} {
		_, err := Parse("ada user key " + words)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "topsecret") {
			t.Errorf("%q: %v, want %q", words, err, want)
		}
	}
}

// TestOtherFiles: no line of a file in another format is taken for a key.
func TestOtherFiles(t *testing.T) {
	for text, want := range map[string]string{
		"{\n": "line 1: want a key, or a name", "[keys]\n": "is no JSON or TOML", "# keys\n\n}": "line 3", "---": "is no JSON or TOML",
		"\x7fELF\x01": "this is no text", "sk-\xff": "this is no text", "a\x00b": "this is no text",
	} {
		if keys, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %d keys, %v, want %q", text, len(keys), err, want)
		}
	}
	for _, text := range []string{"sk-abc", "1", "sk_{a}", "ключ", "\ufeffsk-abc"} {
		if keys, err := Parse(text); err != nil || len(keys) != 1 {
			t.Errorf("%q: %d keys, %v", text, len(keys), err)
		}
	}
}

// TestTwoOfAName: two lines with one name are refused, with both places and not what is in them; many keys may have no name.
func TestTwoOfAName(t *testing.T) {
	_, err := Parse("# keys\nada user one-key\nbob user another\n\nada operator a-third\n")
	if err == nil || err.Error() != "line 5: another key of the name that line 2 has" {
		t.Error(err)
	}
	if keys, err := Parse("one\nanother\nada user a-third\nAda user a-fourth"); err != nil || len(keys) != 4 {
		t.Error(len(keys), err)
	}
}

// Keys change while they are used, and a server that has asked for keys goes on asking when there are none left.
func TestReplace(t *testing.T) {
	a, b := PlainKey("a"), PlainKey("b")
	a.Name, b.Name, b.Models = "ada", "bob", []string{"m"}
	k := NewKeys([]Key{a})
	if c := k.Client("a", ""); c == nil || !c.Operator || c.Caller != [16]byte{} || c.Salt != [16]byte{} || c.Owner == [16]byte{} {
		t.Errorf("the only key: %+v", c)
	}
	k.Replace([]Key{a, b})
	one, two := k.Client("a", ""), k.Client("b", "none")
	if one == nil || two == nil || one.Operator || one.Caller == two.Caller || one.Salt != one.Caller || two.Salt != [16]byte{} || !slices.Equal(two.Models, b.Models) {
		t.Errorf("two keys: %+v %+v", one, two)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				k.Client("a", "")
			}
		})
	}
	k.Replace(nil)
	wg.Wait()
	if c := k.Client("a", ""); c != nil || !k.Asked() {
		t.Errorf("none left: %+v, asked %t", c, k.Asked())
	}
	if NewKeys(nil).Asked() {
		t.Error("asked without keys")
	}
}

func TestNewKey(t *testing.T) {
	a, b := NewKey(), NewKey()
	if a == b || len(a) < 50 || strings.ContainsFunc(a, func(r rune) bool { return r < '-' || r > 'z' }) {
		t.Errorf("%s, %s", a, b)
	}
	if all, err := Parse(a); err != nil || all[0].Plain != a {
		t.Errorf("%v", err)
	}
}

// No text of a file panics, and what is read and has a name is read again from its line.
func FuzzParse(f *testing.F) {
	f.Add("ada user key rate-limit=3 models=a,b* created=2026-01-31\n# note\nplain\r\n")
	f.Add("sha256:00 user sha256:11")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := Parse(text)
		if err != nil {
			return
		}
		for i := range all {
			k := all[i]
			if k.Name == "" {
				continue
			}
			k.Plain = ""
			again, err := Parse(k.Line())
			if err != nil {
				t.Fatalf("%q: %v", k.Line(), err)
			}
			if d := cmp.Diff(k, again[0]); d != "" {
				t.Fatal(d)
			}
		}
	})
}
