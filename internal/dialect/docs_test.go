package dialect

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"
)

const dialects = "../../docs/dialects.md"

// TestDocs: the table and the transcripts in docs/dialects.md are what the tests count and the parsers say.
func TestDocs(t *testing.T) {
	b, err := os.ReadFile(dialects)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	for name, text := range map[string]string{"numbers": numbers(t), "transcripts": transcripts(t), "damage": damageSummary(t)} {
		open, end := "<!-- "+name+": go test ./internal/dialect -run TestDocs -update -->\n", "<!-- /"+name+" -->"
		before, rest, ok := strings.Cut(doc, open)
		old, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("%s has no place for the %s", dialects, name)
		}
		if old != text && !*update {
			t.Errorf("the %s in %s are not what they would be now; run with -update", name, dialects)
		}
		doc = before + open + text + end + after
	}
	if *update {
		if err := os.WriteFile(dialects, []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// numbers is the table of what is tested, family by family. What takes minutes to measure comes from
// testdata/measured.txt.
func numbers(t *testing.T) string {
	cases, cuts := map[string]int{}, map[string]int{}
	for _, file := range caseFiles(t) {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		for i := 0; i < len(ar.Files); i += 2 {
			cases[name]++
			cuts[name] += len(caseOutput(ar.Files[i].Data)) - 1
		}
	}
	written := map[string]int{}
	for _, w := range writings {
		for _, c := range conversations {
			written[w.family] += len(arounds(w, c.void))
		}
	}
	var b strings.Builder
	b.WriteString("| Family | Cases | Cuts in two | Written and read back | Fuzz executions | ns a token |\n|---|--:|--:|--:|--:|--:|\n")
	measured := measurements(t)
	for _, f := range families {
		if f.Force != nil {
			m := measured[f.Name]
			fmt.Fprintf(&b, "| %s | %d | %d | %d | %s | %s |\n", f.Name, cases[f.Name], cuts[f.Name], written[f.Name], m[0], m[1])
		}
	}
	fmt.Fprintf(&b, "| all together | | | | %s | |\n", measured["all"][0])
	return b.String()
}

// damageSummary is a table of families by kinds of damage, from what TestDamage found.
func damageSummary(t *testing.T) string {
	text, err := os.ReadFile(damageFile)
	if err != nil {
		t.Fatal(err)
	}
	counts, mended := map[string]*[3]int{}, map[string][]string{}
	family := ""
	for _, line := range strings.Split(string(text), "\n") {
		fields := strings.Fields(line)
		switch indent := len(line) - len(strings.TrimLeft(line, " ")); {
		case len(fields) == 0 || indent > 2:
		case indent == 0:
			family = fields[0]
		case fields[0] == "mended":
			if !slices.Contains(mended[family], fields[1]) {
				mended[family] = append(mended[family], fields[1])
			}
		default:
			key := family + " " + fields[0]
			if counts[key] == nil {
				counts[key] = &[3]int{}
			}
			for i := 1; i+1 < len(fields); i += 2 {
				n, err := strconv.Atoi(fields[i+1])
				if err != nil {
					t.Fatalf("%s: %q", damageFile, line)
				}
				counts[key][damageColumn(fields[i])] += n
			}
		}
	}
	var b strings.Builder
	b.WriteString("| Family | " + strings.Join(damageKinds, " | ") + " | Mended by |\n|---|" + strings.Repeat("--:|", len(damageKinds)) + "---|\n")
	for _, f := range families {
		if f.Force == nil {
			continue
		}
		fmt.Fprintf(&b, "| %s |", f.Name)
		for _, kind := range damageKinds {
			if c := counts[f.Name+" "+kind]; c != nil && *c != [3]int{} {
				fmt.Fprintf(&b, " %d·%d·%d", c[0], c[1], c[2])
			}
			b.WriteString(" |")
		}
		slices.Sort(mended[f.Name])
		fmt.Fprintf(&b, " %s |\n", strings.Join(mended[f.Name], ", "))
	}
	return b.String()
}

// damageColumn is where an outcome counts: the calls that were written, fewer or none, others.
func damageColumn(became string) int {
	switch became {
	case damageSame, damageRepaired, damageStray:
		return 0
	case damageText, damageCut, damageLess:
		return 1
	}
	return 2
}

// measurements reads family, fuzz executions and nanoseconds a token from testdata/measured.txt.
func measurements(t *testing.T) map[string][2]string {
	f, err := os.Open("testdata/measured.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string][2]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if fields := strings.Fields(s.Text()); len(fields) == 3 && fields[0] != "#" {
			out[fields[0]] = [2]string{fields[1], fields[2]}
		}
	}
	return out
}

// transcripts shows replies cut into pieces like tokens, and what each piece made certain.
func transcripts(t *testing.T) string {
	var b strings.Builder
	for _, s := range []struct{ title, family, output string }{
		{"Reasoning, text and a call in JSON; the schema wants an integer and a boolean", "hermes",
			"<think>\nThe user wants\nf.\n</think>\n\nI call it.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"path\": \"C:\\dir\", \"i\": 5.0, \"b\": \"False\"}}\n</tool_call>"},
		{"Parameters in XML; a value holds its own closing tag", "qwen3_coder",
			"<tool_call>\n<function=f>\n<parameter=content>\n<a>\n</parameter> is a tag\n</parameter>\n<parameter=l>\n[1, 2]\n</parameter>\n</function>\n</tool_call>"},
		{"Channels; the reply begins inside a header that the prompt opened", "harmony",
			"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"s\": \"a<|call|>b\"}"},
		{"Keys without quotes, strings in marks; a second call inside reopened reasoning", "gemma4",
			"<|tool_call>call:f{s:<|\"|>a, {b}<|\"|>,o:{n:3,l:[<|\"|>x<|\"|>]}}<tool_call|><|channel>thought\nMore.<|tool_call>call:get_weather{city:<|\"|>Rome<|\"|>}<tool_call|>"},
		{"A list of calls, the second of a tool that does not exist; the output ends before the list does", "mistral_v3",
			"[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"i\": 1}}, {\"name\": \"rm\", \"arguments\": {}}, {\"name\": \"f\", \"arguments\": {\"i\": 2}}"},
	} {
		fmt.Fprintf(&b, "%s (%s):\n\n```\n", s.title, s.family)
		p := familyByName(t, s.family).New(Options{Tools: declared("f", "get_weather")})
		for rest := s.output; rest != ""; {
			n := min(12, len(rest))
			for n < len(rest) && !utf8.RuneStart(rest[n]) {
				n++
			}
			row(&b, rest[:n], p.Feed(nil, rest[:n]))
			rest = rest[n:]
		}
		row(&b, "(end)", p.Finish(nil))
		b.WriteString("```\n\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func row(b *strings.Builder, raw string, ps []Piece) {
	events := strings.Split(strings.TrimSpace(strings.ReplaceAll(format(ps), " \"\"\n", "\n")), "\n")
	raw = strings.ReplaceAll(raw, "\n", "⏎")
	line := raw + strings.Repeat(" ", max(0, 16-utf8.RuneCountInString(raw))) + strings.Join(events, "  ")
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}

// TestReplayDocs: the table of what publishers say of reasoning in earlier turns has every family once, with what is done; and
// a family without reasoning puts none back.
func TestReplayDocs(t *testing.T) {
	b, err := os.ReadFile(dialects)
	if err != nil {
		t.Fatal(err)
	}
	_, doc, ok := strings.Cut(string(b), "## Reasoning in earlier turns\n")
	if !ok {
		t.Fatalf("%s does not tell of reasoning in earlier turns", dialects)
	}
	doc, _, _ = strings.Cut(doc, "| Template |")
	said := map[string]string{}
	for line := range strings.Lines(doc) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || strings.Contains(line, "---") || strings.Contains(line, "Families") {
			continue
		}
		for name := range strings.SplitSeq(cells[1], ",") {
			name = strings.TrimSpace(name)
			if said[name] != "" {
				t.Errorf("%s is there twice", name)
			}
			said[name] = strings.TrimSpace(cells[3])
		}
	}
	for _, f := range append(slices.Clone(families), plain) {
		if want := map[Replay]string{ReplayNever: "never", ReplayPrinted: "put back"}[f.Replay]; said[f.Name] != want {
			t.Errorf("%s: %q, want %q", f.Name, said[f.Name], want)
		}
		if f.Think == noThink && f.Replay != ReplayNever {
			t.Errorf("%s puts reasoning back that it does not have", f.Name)
		}
		delete(said, f.Name)
	}
	for name := range said {
		t.Errorf("there is no family %s", name)
	}
}
