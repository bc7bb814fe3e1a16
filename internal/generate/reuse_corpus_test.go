package generate

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/engine"
	"hearth/internal/tokenizer"
)

// demoTokenizer is the demo model's tokenizer with more special tokens.
func demoTokenizer(t testing.TB, special ...string) *tokenizer.Tokenizer {
	t.Helper()
	data, err := os.ReadFile(demoFolder + "/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	added := file["added_tokens"].([]any)
	first := len(file["model"].(map[string]any)["vocab"].(map[string]any)) // of the ids behind the vocabulary
	for _, s := range special {
		if !slices.ContainsFunc(added, func(a any) bool { return a.(map[string]any)["content"] == s }) {
			added = append(added, map[string]any{"id": first + len(added), "content": s, "special": true})
		}
	}
	file["added_tokens"] = added
	if data, err = json.Marshal(file); err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Parse(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

var looksSpecial = regexp.MustCompile(`<[|｜][^|｜<>{}\s']+[|｜]>|<[a-z]+_of_[a-z]+>|<turn\|>|<\|turn>|</?s>|</?(assistant|user|sep)>|\[/?(INST|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS|ARGS|CALL_ID|SYSTEM_PROMPT|THINK)\]`)

// talkOver is a conversation with a template's model.
func talkOver(t *testing.T, name, src string, plain bool) *talk {
	t.Helper()
	tmpl, err := NewTemplate("test", src)
	if err != nil {
		t.Fatal(err)
	}
	tmpl.tokens.Set("bos_token", "<BOS>")
	tmpl.tokens.Set("eos_token", "<EOS>")
	special := append(append([]string{"<BOS>", "<EOS>"}, vocabularies[name]...), looksSpecial.FindAllString(src, -1)...)
	turnEnds := slices.Concat(ends, []string{"<seed:eos>", "<｜hy_eos:opensource｜>", "<|tool_response>", "<|calls|>"})
	for _, e := range turnEnds {
		if strings.Contains(src, e) {
			special = append(special, e)
		}
	}
	tok := demoTokenizer(t, special...)
	var stops []int32
	for _, e := range append(turnEnds, turnEnd(t, tmpl, tok)) {
		if id, ok := tok.ID(e); ok && tok.Special(id) && (strings.Contains(src, e) || e == "<EOS>") {
			stops = append(stops, id)
		}
	}
	m := &memory{script: script{finish: engine.Stop, context: 1 << 20}}
	g, err := New(Config{Engine: m, Tokenizer: tok, Template: tmpl, StopIDs: stops, PlainHistory: plain})
	if err != nil {
		t.Fatal(err)
	}
	g.stops = slices.DeleteFunc(g.stops, func(s string) bool { return s == g.family.Close }) // ends a part of an answer
	return &talk{t: t, g: g, m: m, whole: plain, rand: rand.New(rand.NewPCG(7, 8)), r: chat.Request{Tools: spokenTools, Messages: []chat.Message{text(chat.User, "QUESTION")}}}
}

// turnEnd is the special token that a template writes after an answer, "" if there is none.
func turnEnd(t *testing.T, tmpl *Template, tok *tokenizer.Tokenizer) string {
	g, err := New(Config{Engine: &script{context: 1 << 20}, Tokenizer: tok, Template: tmpl})
	if err != nil {
		t.Fatal(err)
	}
	out, err := g.Render(t.Context(), &chat.Request{Messages: []chat.Message{text(chat.User, "QUESTION"), text(chat.Assistant, "ANSWER"), text(chat.User, "RESULT")}})
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(out, "ANSWER")
	rest = strings.TrimSpace(rest)
	if rest == "" {
		return ""
	}
	return rest[:startsSpecial(tok, rest)]
}

// utterance is what a model would generate to say parts: what the template writes for them, continued from the prompt.
func (k *talk) utterance(parts []chat.Part) (string, bool) {
	history := slices.Concat(k.r.Messages, []chat.Message{says(parts...)})
	var calls []chat.Part
	for _, p := range parts {
		if p.Kind == chat.PartToolCall {
			calls = append(calls, resultPart(p.Call.ID, "RESULT"))
		}
	}
	if len(calls) > 0 {
		history = append(history, answers(calls...))
	} else {
		history = append(history, text(chat.User, "RESULT"))
	}
	cfg := k.g.cfg
	cfg.PlainHistory = true
	g, err := New(cfg)
	if err != nil {
		k.t.Fatal(err)
	}
	out, err := g.Render(k.t.Context(), &chat.Request{Messages: history, Tools: k.r.Tools, Thinking: k.r.Thinking})
	if err != nil {
		return "", false
	}
	p, err := k.g.prompt(k.t.Context(), &k.r)
	if err != nil {
		return "", false
	}
	n := commonBytes(out, p.text)
	if open := strings.LastIndexAny(out[:n], "<["); open >= 0 && !strings.ContainsAny(out[open:n], ">]") {
		n = open // a tag that begins like one of the other text
	}
	said, _, ok := strings.Cut(out[n:], "RESULT")
	if !ok {
		return "", false
	}
	for _, end := range k.g.stops {
		if i := strings.Index(said, end); i >= 0 {
			said = said[:i]
		}
	}
	said = strings.TrimRight(said, "\n")
	think := ""
	for _, x := range parts {
		if x.Kind == chat.PartReasoning {
			think = x.Text
		}
	}
	f := k.g.family
	if rest := strings.TrimSpace(p.text[n:]); f.Close != "" && strings.HasSuffix(rest, f.Close) {
		said = strings.TrimPrefix(said, f.Close)
	}
	switch {
	case p.options.InReasoning && !strings.Contains(said, f.Close):
		said = think + "\n" + f.Close + "\n\n" + strings.TrimLeft(said, "\n")
	case !strings.Contains(said, think):
		return "", false // the template leaves reasoning out of what follows it
	}
	return said, said != ""
}

// reuse has a model say parts, the conversation go on, and gives how much of what ran the next prompt takes up.
func (k *talk) reuse(parts []chat.Part, respell bool) (common, ran int, ok bool) {
	said, ok := k.utterance(parts)
	if !ok {
		return 0, 0, false
	}
	if respell {
		respelled := strings.ReplaceAll(strings.ReplaceAll(said, `": `, `":`), `, "`, `,"`)
		if respelled == said {
			return 0, 0, false
		}
		said = respelled
	}
	k.say(said)
	calls := 0
	for _, p := range k.r.Messages[len(k.r.Messages)-1].Parts {
		if p.Kind == chat.PartToolCall {
			calls++
		}
	}
	if calls > 0 {
		k.results("RESULT")
	} else {
		k.r.Messages = append(k.r.Messages, text(chat.User, "And then?"))
	}
	common, ran = k.say("Yes.")
	return common, ran, true
}

// TestReuseByTemplate measures, over published templates, how much of a turn the next one takes up. With -v it prints
// the table of docs/cache.md.
func TestReuseByTemplate(t *testing.T) {
	one := callPart("c1", "get_weather", `{"city": "Oslo"}`)
	two := callPart("c2", "mix", `{"s": "x", "i": 7, "b": true}`)
	scenarios := []struct {
		name    string
		parts   []chat.Part
		respell bool
	}{
		{"answer", []chat.Part{{Text: "It is sunny in Oslo."}}, false},
		{"thinking, answer", []chat.Part{thought("Let me see."), {Text: "It is sunny in Oslo."}}, false},
		{"call", []chat.Part{one}, false},
		{"call in other spelling", []chat.Part{one}, true},
		{"thinking, text, call", []chat.Part{thought("Let me see."), {Text: "I look."}, one}, false},
		{"two calls", []chat.Part{one, two}, false},
		{"two calls in other spelling", []chat.Part{one, two}, true},
	}
	rows, full, tried := map[string]string{}, map[string][2]int{}, map[string]int{}
	for name, src := range published(t) {
		row := ""
		for _, s := range scenarios {
			cell := ""
			for i, plain := range []bool{false, true} {
				k := talkOver(t, name, src, plain)
				if s.name != "answer" && s.name != "thinking, answer" && !k.g.forms[0].has(toolsDeclared) || strings.HasPrefix(s.name, "two") && !k.g.forms[0].has(callsParallel) ||
					strings.HasPrefix(s.name, "thinking") && k.g.family.Open == "" {
					cell = "-"
					break
				}
				common, ran, ok := k.reuse(s.parts, s.respell)
				if !ok {
					cell = "-"
					break
				}
				if i == 0 {
					tried[s.name]++
				}
				if i == 0 && common < ran {
					ran, got := k.m.seen[len(k.m.seen)-2], k.m.prompt
					t.Logf("%s, %s: ran %.250q, then %.250q", name, s.name, k.g.cfg.Tokenizer.Decode(ran[max(0, common-12):], false), k.g.cfg.Tokenizer.Decode(got[max(0, common-12):], false))
				}
				if common == ran {
					n := full[s.name]
					n[i]++
					full[s.name] = n
				}
				cell += fmt.Sprintf("%d/%d ", common, ran)
			}
			row += " | " + strings.TrimSpace(cell)
		}
		rows[name] = row
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		t.Log(name + rows[name])
	}
	for _, s := range scenarios {
		t.Logf("%s: %d of %d in full, %d as text", s.name, full[s.name][0], tried[s.name], full[s.name][1])
	}
}
