package model_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/stub"
	"hearth/internal/jsonc"
	"hearth/internal/model"
	"hearth/internal/quant"
)

// publishedConfig is a config.json that a model was published with, out of its table in testdata/published.
type publishedConfig struct {
	Name, Source, Type string
	Config             []byte
}

// publishedConfigs reads all tables.
func publishedConfigs(t *testing.T) []publishedConfig {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "published", "*.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	var all []publishedConfig
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		p, err := publishedTable(string(text))
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		if want := strings.ReplaceAll(p.Name, "/", "--") + ".tsv"; filepath.Base(f) != want {
			t.Errorf("%s is the table of %s, whose file should be %s", f, p.Name, want)
		}
		all = append(all, p)
	}
	return all
}

// publishedTable makes a table into a config.json again.
func publishedTable(text string) (p publishedConfig, err error) {
	cfg, last := map[string]any{}, ""
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if rest, ok := strings.CutPrefix(line, "# source: "); ok {
			p.Source = rest
			continue
		}
		if rest, ok := strings.CutPrefix(line, "# model: "); ok {
			p.Name = rest
			continue
		}
		key, value, ok := strings.Cut(line, "\t")
		plain := jsonc.Tagged([]byte(value))
		if !ok || !json.Valid(plain) {
			return p, fmt.Errorf("line %d is no key, tab and JSON value", i+1)
		}
		if key <= last {
			return p, fmt.Errorf("line %d: %s should come before %s", i+1, key, last)
		}
		last = key
		path := dotted(key)
		in := cfg
		for _, k := range path[:len(path)-1] {
			if in[k] == nil {
				in[k] = map[string]any{}
			}
			if in, ok = in[k].(map[string]any); !ok {
				return p, fmt.Errorf("line %d: %s has a value of its own", i+1, k)
			}
		}
		k := path[len(path)-1]
		if _, twice := in[k]; twice {
			return p, fmt.Errorf("line %d: %s is here twice", i+1, key)
		}
		in[k] = json.RawMessage(plain)
	}
	if p.Name == "" || p.Source == "" {
		return p, fmt.Errorf("there is no source or no model")
	}
	if p.Config, err = json.Marshal(cfg); err != nil {
		return p, err
	}
	var typ struct {
		Type string `json:"model_type"`
	}
	err = json.Unmarshal(p.Config, &typ)
	p.Type = typ.Type
	return p, err
}

// dotted splits a path at its dots, save those behind a backslash.
func dotted(path string) []string {
	keys := []string{""}
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c == '\\' && i+1 < len(path):
			i++
			keys[len(keys)-1] += string(path[i])
		case c == '.':
			keys = append(keys, "")
		default:
			keys[len(keys)-1] += string(c)
		}
	}
	return keys
}

// TestPublishedTable rebuilds nested and escaped keys, and refuses tables that are none.
func TestPublishedTable(t *testing.T) {
	p, err := publishedTable("# source: s\n# model: a/b\n" +
		"a\t[1, {\"x\": 2}]\nb.c\t1e-06\nb.d.e\t{}\nb.m\\.0\\\\\tnull\nc\t[Infinity]\nmodel_type\t\"llama\"\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"a":[1,{"x":2}],"b":{"c":1e-06,"d":{"e":{}},"m.0\\":null},"c":[{"__float__":"Infinity"}],"model_type":"llama"}`; string(p.Config) != want || p.Type != "llama" {
		t.Errorf("type %s, config %s, want %s", p.Type, p.Config, want)
	}
	for name, text := range map[string]string{
		"no value": "# source: s\n# model: m\nkey\n", "no JSON": "# source: s\n# model: m\nkey\tTrue\n", "no source": "# model: m\nkey\t1\n",
		"unsorted": "# source: s\n# model: m\nb\t1\na\t1\n", "value and object": "# source: s\n# model: m\na\t1\na.b\t1\n",
	} {
		if _, err := publishedTable(text); err == nil {
			t.Errorf("%s: was read", name)
		}
	}
}

// refusedPublished are the published configurations that New refuses, with a word of why.
var refusedPublished = map[string]string{
	"XiaomiMiMo/MiMo-V2.5-Pro": `attention_projection_layout is fused_qkv with weights in fp8`}

// readPublished is what the type makes of a published config.
func readPublished(p publishedConfig) (*model.Reading, error) {
	if !slices.Contains(model.EncoderTypes(), p.Type) {
		_, r, err := model.New(p.Type, p.Config, 1)
		return r, err
	}
	m, err := model.Synthetic{Config: p.Config, Type: quant.BF16, Blank: true}.LoadEncoder(stub.New(1), backend.Options{}, model.Pooling{Kind: model.Embeds})
	if err != nil {
		return nil, err
	}
	return m.Reading, m.Close()
}

// TestPublishedRead makes every published configuration into a model.
func TestPublishedRead(t *testing.T) {
	all := publishedConfigs(t)
	types, met := map[string]int{}, 0
	for _, p := range all {
		types[p.Type]++
		r, err := readPublished(p)
		if err == nil {
			for _, u := range r.Unread {
				t.Errorf("%s (%s): %s %s is not read", p.Name, p.Type, u.Key, u.Value)
			}
		}
		why, refused := refusedPublished[p.Name]
		if refused {
			met++
		}
		switch {
		case refused && (err == nil || !strings.Contains(err.Error(), why)):
			t.Errorf("%s (%s): got %v, should be refused because of %s", p.Name, p.Type, err, why)
		case !refused && err != nil:
			t.Errorf("%s (%s): %v", p.Name, p.Type, err)
		}
	}
	t.Logf("%d configurations of %d types: %v", len(all), len(types), slices.Sorted(maps.Keys(types)))
	if met != len(refusedPublished) {
		t.Errorf("%d of the %d configurations that should be refused are there", met, len(refusedPublished))
	}
	if len(all) < 60 {
		t.Errorf("there are %d published configurations, fewer than 60", len(all))
	}
}
