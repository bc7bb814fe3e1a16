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
	key := func(name, plain, known string, operator bool) Key {
		k := PlainKey(plain)
		k.Name, k.Operator, k.Plain = name, operator, known
		return k
	}
	carol := key("carol", strings.ToUpper(sumOf("k-c")[7:]), strings.ToUpper(sumOf("k-c")[7:]), false) // no prefix: it is the key
	for _, tc := range []struct {
		args     []string
		want     []Key
		first    string
		isolated bool
	}{
		{nil, nil, "", false},
		{[]string{"--api-key=a"}, []Key{key("", "a", "a", true)}, "a", false},
		{[]string{"--operator-key=o"}, []Key{key("", "o", "o", true)}, "o", false},
		{[]string{"--api-key=a", "--operator-key=a"}, []Key{key("", "a", "a", true)}, "a", false},
		{[]string{"--api-key=a,b,a"}, []Key{key("", "a", "a", false), key("", "b", "b", false)}, "a", true},
		{[]string{"--api-key=o,a", "--operator-key=o"}, []Key{key("", "o", "o", true), key("", "a", "a", false)}, "a", true},
		{[]string{"--api-key=k-a", "--api-key-file=" + file}, []Key{key("alice", "k-a", "k-a", false), key("", "plain", "plain", false), key("bob", "k-b", "", true),
			key("", "sha256:short", "sha256:short", false), carol}, "k-a", true},
		{[]string{"--api-key-file=" + keysIn(t, "x user "+sumOf("x"))}, []Key{key("x", "x", "", true)}, "", false},
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
		"alice user topsecret again":               "there are 4 words",
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
		if err == nil || !strings.Contains(err.Error(), "line 3: want ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "topsecret") ||
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

// No error about the settings file has a key in it.
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
		if k := &Knobs[i]; (strings.HasSuffix(k.Flag, "-key") || strings.HasSuffix(k.Flag, "-token")) != k.Secret {
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
