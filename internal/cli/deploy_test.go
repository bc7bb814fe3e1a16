package cli

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/hub"
)

const deploy = "../../deploy/"

func deployed(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(deploy + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// one is what the only match of a pattern has in its group.
func one(t *testing.T, pattern, text string) string {
	t.Helper()
	all := regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1)
	if len(all) != 1 {
		t.Fatalf("%d times %s", len(all), pattern)
	}
	return all[0][1]
}

// words reads a list of texts as JSON, and YAML's flow style, have it.
func words(t *testing.T, list string) (all []string) {
	t.Helper()
	if err := json.Unmarshal([]byte(list), &all); err != nil {
		t.Fatalf("%v: %s", err, list)
	}
	return all
}

// propertyList reads the keys of a plist's outer dict, with their values as XML.
func propertyList(t *testing.T, text string) map[string]string {
	t.Helper()
	var doc struct {
		Dict struct {
			Inner string `xml:",innerxml"`
		} `xml:"dict"`
	}
	if err := xml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for d, key := xml.NewDecoder(strings.NewReader(doc.Dict.Inner)), ""; ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		start, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		var e struct {
			Inner string `xml:",innerxml"`
		}
		if err := d.DecodeElement(&e, &start); err != nil {
			t.Fatal(err)
		}
		if start.Name.Local == "key" {
			key = e.Inner
		} else {
			all[key] = strings.TrimSpace(e.Inner)
		}
	}
}

// variables are NAME=VALUE with blanks between them.
func variables(text string) map[string]string {
	env := map[string]string{}
	for _, field := range strings.Fields(text) {
		name, value, _ := strings.Cut(field, "=")
		env[name] = value
	}
	return env
}

// socketOf is the .socket unit of a service.
func socketOf(service string) string { return strings.TrimSuffix(service, "service") + "socket" }

// TestDeploy: the command lines, variables and settings of all files of deploy/ are what the program takes, and lead where the
// files say.
func TestDeploy(t *testing.T) {
	cluster, compose, container := deployed(t, "kubernetes/hearth.yaml"), deployed(t, "compose/compose.yaml"), deployed(t, "container/Containerfile")
	unit, own := deployed(t, "systemd/hearth.service"), deployed(t, "systemd/user/hearth.service")
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys")
	if err := os.WriteFile(keys, []byte(one(t, `keys: \|\n    (.*)\n`, cluster)), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(settings, []byte(strings.ReplaceAll(deployed(t, "config.toml"), "/etc/hearth/keys", filepath.ToSlash(keys))), 0o600); err != nil {
		t.Fatal(err)
	}
	var agent struct {
		Strings []string `xml:"string"`
	}
	if err := xml.Unmarshal([]byte("<a>"+propertyList(t, deployed(t, "launchd/hearth.plist"))["ProgramArguments"]+"</a>"), &agent); err != nil {
		t.Fatal(err)
	}
	inside := variables(one(t, `(?m)^ENV (.*)$`, container))
	composed := maps.Clone(inside)
	composed["HEARTH_API_KEY"] = one(t, `HEARTH_API_KEY: (.*)`, compose)
	for name, tc := range map[string]struct {
		args                 []string
		env                  map[string]string
		store, cache, models string // where text and models are to be
		keys                 int
	}{
		"systemd": {strings.Fields(one(t, `(?m)^ExecStart=(.*)$`, unit))[1:], variables(one(t, `(?m)^Environment=(.*)$`, unit)),
			"/var/lib/hearth", "/var/cache/hearth/prefix-cache", "/var/lib/hearth/huggingface/hub", 1},
		"systemd, a user's": {strings.Fields(one(t, `(?m)^ExecStart=(.*)$`, own))[1:], map[string]string{"HOME": "/home/ada", "XDG_CACHE_HOME": "/home/ada/.cache", "XDG_DATA_HOME": "/home/ada/.local/share"},
			"/home/ada/.local/share/hearth", "/home/ada/.cache/hearth/prefix-cache", "/home/ada/.cache/huggingface/hub", 0},
		"launchd":    {agent.Strings[1:], inside, "/data/hearth", "/data/cache/hearth/prefix-cache", "/data/huggingface/hub", 0},
		"container":  {words(t, one(t, `(?m)^CMD (.*)$`, container)), inside, "/data/hearth", "/data/cache/hearth/prefix-cache", "/data/huggingface/hub", 0},
		"compose":    {words(t, one(t, `command: (\["serve".*\])`, compose)), composed, "/data/hearth", "/data/cache/hearth/prefix-cache", "/data/huggingface/hub", 1},
		"kubernetes": {words(t, one(t, `args: (\["serve".*\])`, cluster)), inside, "/data/hearth", "/data/cache/hearth/prefix-cache", "/data/huggingface/hub", 1},
	} {
		for i, a := range tc.args {
			tc.args[i] = strings.NewReplacer("/etc/hearth/config.toml", settings, "/keys/keys", keys).Replace(a)
		}
		cmd, rest, err := newRootCmd().Find(tc.args)
		if err != nil || cmd.Name() != "serve" {
			t.Errorf("%s: %q: %v", name, tc.args, err)
			continue
		}
		flags := &cobra.Command{}
		cfg := serverSettings(flags)
		var told []string
		err = flags.ParseFlags(rest)
		if err == nil {
			err = cfg.Load(flags.Flags(), func(n string) (string, bool) { v, ok := tc.env[n]; return v, ok }, func(line string) { told = append(told, line) })
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var env []string
		for k, v := range tc.env {
			env = append(env, k+"="+v)
		}
		for _, r := range cfg.Replies() {
			told = append(told, r.Line())
		}
		if told = append(told, config.Strays(env)...); len(told) > 0 {
			t.Errorf("%s: the program would say %q", name, told)
		}
		if n := len(cfg.Keys()); n != tc.keys {
			t.Errorf("%s: %d keys", name, n)
		}
		if filepath.Separator == '/' && (cfg.StoreFolder() != tc.store || cfg.PrefixCacheFolder() != tc.cache || cfg.HubCache != tc.models) {
			t.Errorf("%s: %s, %s, %s", name, cfg.StoreFolder(), cfg.PrefixCacheFolder(), cfg.HubCache)
		}
	}
	check := words(t, one(t, `test: (\["CMD".*\])`, compose))
	if cmd, rest, err := newRootCmd().Find(check[2:]); err != nil || cmd.Name() != "ps" || len(rest) > 0 || check[1] != "/hearth" {
		t.Errorf("the check of compose: %q: %v", check, err)
	}
	for _, m := range regexp.MustCompile(`- \.\./(\S+?):`).FindAllStringSubmatch(compose, -1) {
		if _, err := os.Stat(deploy + m[1]); err != nil {
			t.Errorf("compose mounts what is not there: %v", err)
		}
	}
}

// The .socket units open what hearth serves on, at the port where it is without them too, and a Unix socket that clients can name
// and that not everybody may open.
func TestDeploySockets(t *testing.T) {
	cfg := config.Default()
	for file, paths := range map[string]map[string]string{"systemd/hearth.socket": nil, "systemd/user/hearth.socket": {"%t": "/run/user/4294967294"}} {
		text := deployed(t, file)
		for _, m := range regexp.MustCompile(`(?m)^(Listen\w+|Accept|Service)=`).FindAllStringSubmatch(text, -1) {
			if m[1] != "ListenStream" {
				t.Errorf("%s: %s", file, m[1])
			}
		}
		if at := one(t, `(?m)^ListenStream=([^/%].*)$`, text); at != "127.0.0.1:"+strconv.Itoa(cfg.Port) {
			t.Errorf("%s: %s", file, at)
		}
		path := one(t, `(?m)^ListenStream=([/%].*)$`, text)
		for name, value := range paths {
			path = strings.ReplaceAll(path, name, value)
		}
		if len(path) > socketPathMax || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "/run/hearth/") { // which goes with the service
			t.Errorf("%s: %s", file, path)
		}
		if mode := one(t, `(?m)^SocketMode=(.*)$`, text); !strings.HasSuffix(mode, "0") {
			t.Errorf("%s: mode %s", file, mode)
		}
	}
	if settings := deployed(t, "config.toml"); one(t, `(?m)^host = "(\S*)"`, settings)+":"+one(t, `(?m)^port = (\d+)`, settings) != "127.0.0.1:"+strconv.Itoa(cfg.Port) {
		t.Errorf("the settings: %s", settings)
	}
}

// The paths that the manifest probes are there, and say that a server lives which loads.
func TestDeployProbes(t *testing.T) {
	cfg := config.Default()
	src, err := catalog.Find("demo", hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	cfg.APIKeys = []string{"k"}
	srv := httptest.NewServer(newServer(cfg, catalog.New(src, cfg), slog.New(slog.DiscardHandler)))
	defer srv.Close()
	text := deployed(t, "kubernetes/hearth.yaml")
	for probe, want := range map[string]int{"liveness": http.StatusOK, "readiness": http.StatusServiceUnavailable} {
		path := one(t, probe+`Probe:\n\s+httpGet: \{path: (\S+), port: http\}`, text)
		if status, body := request(t, "GET", srv.URL+path, ""); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// systemd takes the units, and YAML's parser the rest, where there are any.
func TestDeployParses(t *testing.T) {
	t.Run("units", func(t *testing.T) {
		analyze, err := exec.LookPath("systemd-analyze")
		if err != nil {
			t.Skip("no systemd here")
		}
		program, err := exec.LookPath("true")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"systemd/hearth.service", "systemd/user/hearth.service"} {
			unit := filepath.Join(t.TempDir(), "hearth.service")
			text := regexp.MustCompile(`(?m)^ExecStart=\S+`).ReplaceAllString(deployed(t, file), "ExecStart="+program)
			socket := socketOf(unit) // which has the service beside it
			for to, text := range map[string]string{unit: text, socket: deployed(t, socketOf(file))} {
				if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			args := []string{"verify", "--man=no", unit, socket}
			if strings.Contains(file, "user") {
				args = append([]string{"--user"}, args...)
			}
			cmd := exec.Command(analyze, args...)
			cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if err != nil || strings.Contains(string(out), "hearth.service:") || strings.Contains(string(out), "hearth.socket:") {
				t.Errorf("%s: %v\n%s", file, err, out)
			}
		}
	})
	t.Run("YAML", func(t *testing.T) {
		files, err := filepath.Glob(deploy + "*/*.y*ml")
		if more, _ := filepath.Glob(deploy + "grafana/*/*/*.yml"); err == nil {
			files = append(files, more...)
		}
		if err != nil || len(files) < 5 {
			t.Fatal(files, err)
		}
		if exec.Command("python3", "-c", "import yaml").Run() != nil {
			t.Skip("no Python with a YAML parser here")
		}
		out, err := exec.Command("python3", append([]string{"-c", `
import sys, yaml
for f in sys.argv[1:]:
    for doc in yaml.safe_load_all(open(f)):
        if not isinstance(doc, dict): sys.exit(f + ": no mapping")`}, files...)...).CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
}
