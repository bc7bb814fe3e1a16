package config

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"hearth/internal/access"
)

func keysIn(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func sumOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// A file has plain keys, keys with names and roles, and keys of which it knows the hash alone.
func TestKeyRoles(t *testing.T) {
	file := keysIn(t, "# ours\n\nplain\nalice user k-a\n\tbob   operator\t"+sumOf("k-b")+"\r\nsha256:short\ncarol user "+strings.ToUpper(sumOf("k-c")[7:])+"\n")
	key := func(name, plain, known string, operator bool) access.Key {
		k := access.PlainKey(plain)
		k.Name, k.Operator, k.Plain = name, operator, known
		return k
	}
	carol := key("carol", strings.ToUpper(sumOf("k-c")[7:]), strings.ToUpper(sumOf("k-c")[7:]), false) // no prefix: it is the key
	for _, tc := range []struct {
		args     []string
		want     []access.Key
		first    string
		isolated bool
	}{
		{nil, nil, "", false},
		{[]string{"--api-key=a"}, []access.Key{key("", "a", "a", true)}, "a", false},
		{[]string{"--operator-key=o"}, []access.Key{key("", "o", "o", true)}, "o", false},
		{[]string{"--api-key=a", "--operator-key=a"}, []access.Key{key("", "a", "a", true)}, "a", false},
		{[]string{"--api-key=a,b,a"}, []access.Key{key("", "a", "a", false), key("", "b", "b", false)}, "a", true},
		{[]string{"--api-key=o,a", "--operator-key=o"}, []access.Key{key("", "o", "o", true), key("", "a", "a", false)}, "a", true},
		{[]string{"--api-key=k-a", "--api-key-file=" + file}, []access.Key{key("alice", "k-a", "k-a", false), key("", "plain", "plain", false), key("bob", "k-b", "", true),
			key("", "sha256:short", "sha256:short", false), carol}, "k-a", true},
		{[]string{"--api-key-file=" + keysIn(t, "x user "+sumOf("x"))}, []access.Key{key("x", "x", "", true)}, "", false},
	} {
		c, _, err := load(t, nil, tc.args...)
		if err != nil {
			t.Errorf("%v: %v", tc.args, err)
			continue
		}
		if d := cmp.Diff(tc.want, c.Keys()); d != "" || c.APIKey() != tc.first || c.Isolated() != tc.isolated {
			t.Errorf("%v: first %q, isolated %t, -want +got\n%s", tc.args, c.APIKey(), c.Isolated(), d)
		}
	}
}

// A line that cannot be meant as it is written ends the start, by its number: it may hold a key.
func TestKeyFileMistakes(t *testing.T) {
	for line, want := range map[string]string{
		"alice topsecret":                          "there are 2 words",
		"alice user topsecret again":               "word 4: want models, rate-limit",
		"alice admin topsecret":                    "operator or user",
		"topsecret user a":                         "", // a name may be anything
		"a/topsecret user b":                       "a name of at most 64",
		"alice user sha256:topsecret":              "64 hexadecimal digits",
		sumOf("topsecret"):                         "want a key, or",
		strings.Repeat("topsecret", 9) + " user b": "a name of at most 64",
	} {
		_, _, err := load(t, nil, "--api-key-file="+keysIn(t, "# one\nfine\n"+line+"\n"))
		if want == "" {
			if err != nil {
				t.Errorf("%q: %v", line, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "line 3: ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "topsecret") ||
			strings.Contains(err.Error(), sumOf("topsecret")[10:20]) {
			t.Errorf("%q: %v, want line 3 and %q", line, err, want)
		}
	}
}

// A setting that was made and has no key in it, as of a shell variable that is not set, never opens a server, not even where a
// weaker source has a key. A variable of other programs is none of ours.
func TestNoKey(t *testing.T) {
	for _, tc := range []struct {
		env  map[string]string
		args []string
		file string
		want string // in the error
	}{
		{nil, []string{"--api-key="}, "", "--api-key"},
		{nil, []string{"--api-key", " , "}, "", "--api-key"},
		{map[string]string{"HEARTH_API_KEY": "k"}, []string{"--api-key="}, "", "--api-key"},
		{nil, []string{"--operator-key="}, "", "--operator-key"},
		{map[string]string{"HEARTH_API_KEY": ","}, nil, "", "HEARTH_API_KEY"},
		{map[string]string{"HEARTH_OPERATOR_KEY": " "}, nil, "", "HEARTH_OPERATOR_KEY"},
		{nil, nil, "api_key = ''", ":1: api_key: "},
		{nil, nil, "\noperator-key = ' '", ":2: operator-key: "},
	} {
		_, _, err := load(t, tc.env, append(tc.args, "--config="+written(t, tc.file))...)
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "there is no key in it") {
			t.Errorf("%v %v %q: %v", tc.env, tc.args, tc.file, err)
		}
	}
	c, warns, err := load(t, map[string]string{"ANTHROPIC_AUTH_TOKEN": " ", "HEARTH_API_KEY": ""}, "--config=off")
	if err != nil || len(c.Keys()) != 0 || len(warns) != 1 || !strings.Contains(warns[0], "ANTHROPIC_AUTH_TOKEN") {
		t.Errorf("%v, %v, %v", c.Keys(), warns, err)
	}
}

// No error about the settings file has a key in it. What --tls-key has is the name of a file.
func TestSecretsInFiles(t *testing.T) {
	for _, text := range []string{
		"api_key = {a = 'topsecret'}", "api-key = ['a', {b = 'topsecret'}]", "operator_key = ['topsecret']", "api_key = 'topsecret", "api_key = [\n'topsecret', 'a\n]",
		"api_keys = topsecret", "\"api_key\" = topsecret", "api_key = 'a'\napi-key = 'topsecret'", "[models.a]\napi_key = 'topsecret'",
	} {
		if _, _, err := load(t, nil, "--config="+written(t, text)); err == nil || strings.Contains(err.Error(), "topsecret") || !strings.Contains(err.Error(), "settings file ") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for i := range Knobs {
		if k := &Knobs[i]; k.Flag != "tls-key" && (strings.HasSuffix(k.Flag, "-key") || strings.HasSuffix(k.Flag, "-keys") || strings.HasSuffix(k.Flag, "-token")) != k.Secret {
			t.Errorf("--%s: secret %t", k.Flag, k.Secret)
		}
	}
}

// The file of keys is read where it is, in the home folder too, and by commands that ask for keys alone.
func TestKeyFileHome(t *testing.T) {
	file := keysIn(t, "k\n")
	env := map[string]string{"HOME": filepath.Dir(file), "HEARTH_API_KEY_FILE": "~/keys"}
	if c, _, err := load(t, env); err != nil || len(c.Keys()) != 1 {
		t.Errorf("%v %v", c, err)
	}
	env["HEARTH_API_KEY_FILE"] = "~/none"
	if _, _, err := load(t, env); err == nil || !strings.Contains(err.Error(), "environment variable HEARTH_API_KEY_FILE: ") {
		t.Error(err)
	}
	c := Default()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	c.Register(fs, Sampling)
	if err := c.Load(fs, func(name string) (string, bool) { v, ok := env[name]; return v, ok }, nil); err != nil {
		t.Error(err)
	}
}

// Without --api-key-file the file is keys beside the settings file, if it is there; one without a key must not open the server.
func TestUsualKeyFile(t *testing.T) {
	dir := t.TempDir()
	env := map[string]string{"XDG_CONFIG_HOME": dir}
	if c, _, err := load(t, env); err != nil || c.KeyFile() != "" || len(c.Keys()) != 0 {
		t.Errorf("%v %v", c, err)
	}
	file := filepath.Join(dir, "hearth", "keys")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("ada user k rate-limit=5\n")
	c, _, err := load(t, env, "--api-keys=bob user b;plain")
	if err != nil || c.KeyFile() != file || len(c.Keys()) != 3 || c.Keys()[2].PerMinute != 5 || c.Keys()[0].Name != "bob" {
		t.Fatalf("%+v %v", c.Keys(), err)
	}
	for _, s := range c.Settings() {
		if s.Flag == "api-keys" && *s.Value != "(2 keys)" {
			t.Errorf("shown as %s", *s.Value)
		}
	}
	write("# none\n")
	if list, err := c.Reread(); err != nil || len(list) != 2 {
		t.Errorf("emptied: %v %v", list, err)
	}
	if _, _, err := load(t, env); err == nil || !strings.Contains(err.Error(), file+" has no lines: hearth keys add") {
		t.Errorf("emptied, at the start: %v", err)
	}
	if c, _, err := load(t, env, "--api-key-file=off"); err != nil || len(c.Keys()) != 0 {
		t.Errorf("off: %v", err)
	}
	write("ada admin k\n")
	if list, err := c.Reread(); err == nil || !strings.Contains(err.Error(), "line 1: want operator or user") {
		t.Errorf("broken: %v %v", list, err)
	}
	if _, _, err := load(t, nil, "--api-keys= ; "); err == nil || !strings.Contains(err.Error(), "there is no key in it") {
		t.Errorf("no lines: %v", err)
	}
}
