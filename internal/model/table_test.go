package model_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hearth/internal/golden"
	"hearth/internal/model"
)

// missing says why a type of mlx-lm's is not here yet.
var missing = map[string]string{
	"needs recurrent states": "baichuan_m1 gear " +
		"olmo_hybrid prism_hadamard_qwen35 recurrent_gemma rwkv7",
	"needs latent attention":                             "deepseek_v32 glm_moe_dsa longcat_flash",
	"needs latent attention and recurrent states":        "bailing_hybrid bailing_moe_v3 kimi_k3 longcat_flash_ngram",
	"needs its own kind of attention":                    "deepseek_v41 deepseek_v41_text iquestloopcoder minimax_m3_vl muse_glimmer muse_spark spark2_5",
	"needs layers with LayerNorm":                        "dbrx olmo phi3small phimoe phixtral phi-msft",
	"needs an activation, norm or bias that is not here": "afm7 openelm talkie",
	"has experts, lacks its file":                        "Klear hunyuan",
	"lacks its file": "lille-130m nanbeige " +
		"plamo plamo3 qwen",
}

// Marks around the part of docs/models.md that the test writes.
// docEnd ends the part of a document that a test writes.
const docEnd = "<!-- end -->\n"

// TestModelTable holds docs/models.md against the registry and the list of mlx-lm's types: every type is here, or there is a
// reason. With -update it writes the table.
func TestModelTable(t *testing.T) {
	file := filepath.Join("testdata", "types.json")
	golden.Update(t, filepath.FromSlash("../../tools/golden/model_types.py"), file)
	var theirs struct {
		Types    []string          `json:"types"`
		Remapped map[string]string `json:"remapped"`
	}
	golden.Load(t, file, &theirs)
	why := map[string]string{}
	for reason, types := range missing {
		for _, typ := range strings.Fields(types) {
			if why[typ] != "" {
				t.Errorf("%s has two reasons", typ)
			}
			why[typ] = reason
		}
	}
	all := slices.AppendSeq(slices.Clone(theirs.Types), maps.Keys(theirs.Remapped))
	slices.Sort(all)
	all = slices.Compact(all)
	here := model.Types()
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d of mlx-lm %s's %d types.\n\n| model_type | here |\n|---|---|\n", len(here), golden.Pinned.MLXLM, len(all))
	for _, typ := range all {
		yes := slices.Contains(here, typ)
		switch as := theirs.Remapped[typ]; {
		case yes == (why[typ] != ""):
			t.Errorf("%s: registered is %v, the reason for its absence is %q", typ, yes, why[typ])
		case yes && as != "":
			fmt.Fprintf(&b, "| %s | yes, as %s |\n", typ, as)
		case yes:
			fmt.Fprintf(&b, "| %s | yes |\n", typ)
		default:
			fmt.Fprintf(&b, "| %s | not yet: %s |\n", typ, why[typ])
		}
		delete(why, typ)
	}
	for typ := range why {
		t.Errorf("mlx-lm has no type %s", typ)
	}
	for _, typ := range here {
		if !slices.Contains(all, typ) {
			t.Errorf("mlx-lm has no type %s, which is registered", typ)
		}
	}
	compareDoc(t, filepath.FromSlash("../../docs/models.md"), b.String())
}

// compareDoc compares, or with -update replaces, the part of a document between the marks of the test that runs.
func compareDoc(t *testing.T, path, want string) {
	t.Helper()
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin := "<!-- written by " + t.Name() + " -->\n"
	before, rest, ok := strings.Cut(string(doc), begin)
	got, after, ok2 := strings.Cut(rest, docEnd)
	if !ok || !ok2 {
		t.Fatalf("%s: the marks are missing", path)
	}
	if got == want {
		return
	}
	if flag.Lookup("update").Value.String() != "true" {
		t.Errorf("%s is stale: go test ./internal/model -run %s -update", path, t.Name())
		return
	}
	if err := os.WriteFile(path, []byte(before+begin+want+docEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
