package generate

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/dialect"
	"hearth/internal/schema"
	"hearth/internal/tokenizer"
)

// Published chat templates are not part of the tree: tests over them run with -templates, a folder of *.jinja files such
// as vendor/llama.cpp/models/templates of the llama-cpp-python sdist.
var templatesDir = flag.String("templates", "", "folder of chat templates for TestEveryTemplate and TestCallsSurvive")

// published gives the templates by name, without .jinja.
func published(t *testing.T) map[string]string {
	t.Helper()
	if *templatesDir == "" {
		t.Skip("no -templates given")
	}
	files, err := filepath.Glob(filepath.Join(*templatesDir, "*.jinja"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no templates in %s, %v", *templatesDir, err)
	}
	out := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(f), ".jinja")] = string(b)
	}
	return out
}

// byteTokenizer is a tokenizer with a token for every byte and the given special tokens.
func byteTokenizer(t testing.TB, special ...string) *tokenizer.Tokenizer {
	t.Helper()
	vocab, next := map[string]int{}, rune(256)
	for b := range 256 {
		r := rune(b)
		if !(b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae) {
			r, next = next, next+1
		}
		vocab[string(r)] = b
	}
	added := []map[string]any{}
	for i, s := range special {
		added = append(added, map[string]any{"id": 256 + i, "content": s, "special": true})
	}
	data, err := json.Marshal(map[string]any{
		"model":         map[string]any{"type": "BPE", "vocab": vocab, "merges": []string{}},
		"pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
		"decoder":       map[string]any{"type": "ByteLevel"}, "added_tokens": added,
	})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Parse(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// withTemplate is a generator for a template's text.
func withTemplate(t testing.TB, src string, special ...string) (*Generator, error) {
	t.Helper()
	tmpl, err := NewTemplate("test", src)
	if err != nil {
		t.Fatal(err)
	}
	tmpl.tokens.Set("bos_token", "<BOS>")
	tmpl.tokens.Set("eos_token", "<EOS>")
	return New(Config{Engine: &script{context: 1 << 20}, Tokenizer: byteTokenizer(t, append(special, "<BOS>", "<EOS>")...), Template: tmpl})
}

func callPart(id, name, args string) chat.Part {
	return chat.Part{Kind: chat.PartToolCall, Call: &chat.ToolCall{ID: id, Name: name, Arguments: json.RawMessage(args)}}
}

func resultPart(id, text string) chat.Part {
	return chat.Part{Kind: chat.PartToolResult, Result: &chat.ToolResult{CallID: id, Parts: []chat.Part{{Text: text}}}}
}

func says(parts ...chat.Part) chat.Message { return chat.Message{Role: chat.Assistant, Parts: parts} }

func answers(parts ...chat.Part) chat.Message { return chat.Message{Role: chat.ToolRole, Parts: parts} }

func thought(s string) chat.Part { return chat.Part{Kind: chat.PartReasoning, Text: s} }

// shapes are conversations that a client may send, legal by the rules of the APIs. Words in capitals must be in the prompt.
var shapes = map[string][]chat.Message{
	"user":                      {text(chat.User, "UA")},
	"system alone":              {text(chat.System, "SA")},
	"system":                    {text(chat.System, "SA"), text(chat.User, "UA")},
	"two systems":               {text(chat.System, "SA"), text(chat.System, "SB"), text(chat.User, "UA")},
	"late system at the end":    {text(chat.System, "SA"), text(chat.User, "UA"), text(chat.System, "SB")},
	"late system":               {text(chat.User, "UA"), text(chat.Assistant, "AA"), text(chat.System, "SB"), text(chat.User, "UB")},
	"system after a result":     {text(chat.User, "UA"), says(callPart("call_1", "f", `{}`)), answers(resultPart("call_1", "RA")), text(chat.System, "SB")},
	"two users":                 {text(chat.User, "UA"), text(chat.User, "UB")},
	"empty user":                {{Role: chat.User}},
	"assistant first":           {text(chat.Assistant, "AA"), text(chat.User, "UA")},
	"system, assistant first":   {text(chat.System, "SA"), text(chat.Assistant, "AA"), text(chat.User, "UA")},
	"two assistants":            {text(chat.User, "UA"), text(chat.Assistant, "AA"), text(chat.Assistant, "AB"), text(chat.User, "UB")},
	"empty assistant":           {text(chat.User, "UA"), {Role: chat.Assistant}, text(chat.User, "UB")},
	"prefill":                   {text(chat.User, "UA"), text(chat.Assistant, "AA")},
	"calls, no text":            {text(chat.User, "UA"), says(callPart("toolu_0123456789abcdef01234567", "f", `{"k": "CA"}`)), answers(resultPart("toolu_0123456789abcdef01234567", "RA"))},
	"text in a turn of its own": {text(chat.User, "UA"), text(chat.Assistant, "AA"), says(callPart("call_1", "f", `{"k": "CA"}`)), answers(resultPart("call_1", "RA"))},
	"text and calls":            {text(chat.User, "UA"), says(chat.Part{Text: "aa"}, callPart("call_1", "f", `{"k": "CA"}`)), answers(resultPart("call_1", "RA")), text(chat.Assistant, "AB"), text(chat.User, "UB")},
	"reasoning, text and calls": {text(chat.User, "UA"), says(thought("TA"), chat.Part{Text: "aa"}, callPart("call_1", "f", `{"k": "CA"}`)), answers(resultPart("call_1", "RA"))},
	"reasoning":                 {text(chat.User, "UA"), says(thought("ta"), chat.Part{Text: "AA"}), text(chat.User, "UB")},
	"reasoning alone":           {text(chat.User, "UA"), says(thought("ta")), text(chat.User, "UB")},
	"parallel": {text(chat.User, "UA"), says(callPart("call_1", "f", `{"k": "CA"}`), callPart("call_2", "g", `{"k": "CB"}`)),
		answers(resultPart("call_1", "RA")), answers(resultPart("call_2", "RB"))},
	"parallel, results in one message, reversed": {text(chat.User, "UA"), says(callPart("call_1", "f", `{"k": "CA"}`), callPart("call_2", "g", `{"k": "CB"}`)),
		{Role: chat.User, Parts: []chat.Part{resultPart("call_2", "RB"), resultPart("call_1", "RA")}}},
	"result and text":         {text(chat.User, "UA"), says(callPart("call_1", "f", `{"k": "CA"}`)), {Role: chat.User, Parts: []chat.Part{resultPart("call_1", "RA"), {Text: "UB"}}}},
	"result, text, go on":     {text(chat.User, "UA"), says(callPart("call_1", "f", `{"k": "CA"}`)), {Role: chat.User, Parts: []chat.Part{resultPart("call_1", "RA"), {Text: "UB"}}}, text(chat.Assistant, "AB"), text(chat.User, "UC")},
	"text and result":         {text(chat.User, "UA"), says(callPart("call_1", "f", `{"k": "CA"}`)), {Role: chat.User, Parts: []chat.Part{{Text: "UB"}, resultPart("call_1", "RA")}}},
	"ids rewritten":           {text(chat.User, "UA"), says(callPart("call_1", "f", `{"k": "CA"}`)), answers(resultPart("call1", "RA"))},
	"no ids":                  {text(chat.User, "UA"), says(callPart("", "f", `{"k": "CA"}`)), answers(resultPart("", "RA"))},
	"result without a call":   {text(chat.User, "UA"), answers(resultPart("call_1", "RA")), text(chat.Assistant, "AA"), text(chat.User, "UB")},
	"begins with a result":    {answers(resultPart("call_1", "RA")), text(chat.User, "UB")},
	"call without a result":   {text(chat.User, "UA"), says(callPart("call_1", "f", `{"k": "CA"}`)), text(chat.User, "UB")},
	"calls, one result":       {text(chat.User, "UA"), says(callPart("call_1", "f", `{"k": "CA"}`), callPart("call_2", "g", `{"k": "CB"}`)), answers(resultPart("call_2", "RB")), text(chat.User, "UB")},
	"ends with a call":        {text(chat.User, "UA"), says(callPart("call_1", "f", `{"k": "ca"}`))},
	"broken arguments":        {text(chat.User, "UA"), says(callPart("call_1", "f", `{"k": "CA`)), answers(resultPart("call_1", "RA"))},
	"odd arguments":           {text(chat.User, "UA"), says(callPart("call_1", "f", `["CA"]`), callPart("call_2", "f", ``), callPart("call_3", "f", `null`)), answers(resultPart("call_1", "RA"))},
	"empty result":            {text(chat.User, "UA"), says(callPart("call_1", "f", `{}`)), answers(resultPart("call_1", ""))},
	"result of several parts": {text(chat.User, "UA"), says(callPart("call_1", "f", `{}`)), answers(chat.Part{Kind: chat.PartToolResult, Result: &chat.ToolResult{CallID: "call_1", Parts: []chat.Part{{Text: "RA"}, {Kind: chat.PartMedia, Media: &chat.Media{Kind: chat.Image, Type: "image/png", Bytes: 1}}, {Text: "RB"}}}})},
	"undeclared tool":         {text(chat.User, "UA"), says(callPart("call_1", "gone", `{"k": "CA"}`)), answers(resultPart("call_1", "RA")), text(chat.User, "UB")},
	"two rounds": {text(chat.System, "SA"), text(chat.User, "UA"), says(callPart("call_1", "f", `{"k": "CA"}`)), answers(resultPart("call_1", "RA")),
		says(callPart("call_2", "f", `{"k": "CB"}`)), answers(resultPart("call_2", "RB")), text(chat.Assistant, "AA"), text(chat.User, "UB")},
	"JSON result": {text(chat.User, "UA"), says(callPart("call_1", "f", `{"k": "CA"}`)), answers(resultPart("call_1", `{"temp": 20, "name": "RA"}`))},
	"names":       {{Role: chat.User, Name: "Ann", Parts: []chat.Part{{Text: "UA"}}}, {Role: chat.Assistant, Name: "Bot", Parts: []chat.Part{{Text: "AA"}}}, text(chat.User, "UB")},
}

var shapeTools = []chat.Tool{
	{Name: "f", Description: "Does f.", Parameters: json.RawMessage(`{"type": "object", "properties": {"k": {"type": "string", "description": "A key"}}, "required": ["k"]}`)},
	{Name: "g"},
}

// TestEveryTemplate: no template fails on a legal conversation, nothing that was said is lost, and a conversation that
// goes on begins as it was.
func TestEveryTemplate(t *testing.T) {
	for name, src := range published(t) {
		t.Run(name, func(t *testing.T) {
			g, err := withTemplate(t, src)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v %+v", g.forms[0], g.switches)
			rnd := rand.New(rand.NewPCG(1, 2))
			for range 100 {
				actions := make([]byte, 1+rnd.IntN(12))
				for i := range actions {
					actions[i] = byte(rnd.IntN(12))
				}
				for _, r := range requests(conversation(actions)) {
					if _, err := g.Render(t.Context(), r); err != nil {
						t.Errorf("%v, %d tools, thinking %v: %v", actions, len(r.Tools), r.Thinking, err)
					}
				}
			}
			for shape, messages := range shapes {
				for _, r := range requests(messages) {
					out, err := g.Render(t.Context(), r)
					if err != nil {
						t.Errorf("%s, %d tools, thinking %v: %v", shape, len(r.Tools), r.Thinking, err)
						continue
					}
					for _, word := range words(messages) {
						if word == "AA" && !g.forms[0].has(callsWithText) && !g.forms[0].has(callsAfterText) && !g.forms[0].has(assistantsInRow) {
							continue // the template has no place for what is said beside a call
						}
						if !strings.Contains(out, word) {
							t.Errorf("%s, %d tools: %s is lost in %q", shape, len(r.Tools), word, out)
						}
					}
				}
			}
		})
	}
}

// requests asks for an answer in several ways.
func requests(messages []chat.Message) []*chat.Request {
	var out []*chat.Request
	for _, tools := range [][]chat.Tool{nil, shapeTools} {
		for _, think := range []chat.Thinking{{}, {Mode: chat.On, Budget: 100}, {Mode: chat.Off}, {Effort: "xhigh"}, {Effort: "minimal"}, {Mode: chat.On, Effort: "medium"}} {
			out = append(out, &chat.Request{Messages: messages, Tools: tools, Thinking: think})
		}
	}
	return out
}

// words are the two capital letters that texts, results and arguments hold.
func words(messages []chat.Message) []string {
	var out []string
	for _, m := range messages {
		for _, p := range m.Parts {
			texts := []string{p.Text}
			if p.Call != nil {
				texts = append(texts, string(p.Call.Arguments))
			}
			if p.Result != nil {
				for _, q := range p.Result.Parts {
					texts = append(texts, q.Text)
				}
			}
			for _, s := range texts {
				for i := range len(s) - 1 {
					if w := s[i : i+2]; strings.ContainsAny(w[:1], "SUARC") && w[1] >= 'A' && w[1] <= 'C' && !slices.Contains(out, w) {
						out = append(out, w)
					}
				}
			}
		}
	}
	return out
}

// called are calls that models make: a list of turns, each a list of a name and its arguments.
var called = []struct {
	name  string
	calls [][2]string
}{
	{"string", [][2]string{{"get_weather", `{"city": "Paris"}`}}},
	{"no arguments", [][2]string{{"now", `{}`}}},
	{"types", [][2]string{{"mix", `{"s": "x", "i": 7, "n": -1.5, "b": true, "l": [1, "a"], "o": {"k": false}}`}}},
	{"false and null", [][2]string{{"mix", `{"b": false, "l": [null]}`}}},
	{"strings like other types", [][2]string{{"mix", `{"s": "123"}`}}},
	{"list in a string", [][2]string{{"mix", `{"s": "[1, 2]"}`}}},
	{"unicode", [][2]string{{"get_weather", `{"city": "日本語 é 😀"}`}}},
	{"quotes", [][2]string{{"get_weather", `{"city": "say \"hi\", it's C:\\new\\x and \\d+"}`}}},
	{"lines", [][2]string{{"get_weather", `{"city": "func main() {\n\tif a < b && c > d {\n\t}\n}"}`}}},
	{"markup", [][2]string{{"get_weather", `{"city": "<b>x</b> </p> &amp; {\"a\": 1}"}`}}},
	{"empty string", [][2]string{{"get_weather", `{"city": ""}`}}},
	{"two", [][2]string{{"get_weather", `{"city": "Rome"}`}, {"mix", `{"i": 1}`}}},
	{"three of one", [][2]string{{"get_weather", `{"city": "A"}`}, {"get_weather", `{"city": "B"}`}, {"now", `{}`}}},
}

var spokenTools = []chat.Tool{
	{Name: "get_weather", Description: "Weather.", Parameters: json.RawMessage(`{"type": "object", "properties": {"city": {"type": "string", "description": "City"}}, "required": ["city"]}`)},
	{Name: "now", Description: "Time.", Parameters: json.RawMessage(`{"type": "object", "properties": {}}`)},
	{Name: "mix", Description: "All.", Parameters: json.RawMessage(`{"type": "object", "properties": {"s": {"type": "string", "description": "S"}, "i": {"type": "integer", "description": "I"}, "n": {"type": "number", "description": "N"},
		"b": {"type": "boolean", "description": "B"}, "l": {"type": "array", "items": {"type": ["integer", "string", "null"]}, "description": "L"}, "o": {"type": "object", "description": "O", "additionalProperties": {"type": "boolean"}}}}`)},
}

// vocabularies are the special tokens that decide where a template shows no call.
var vocabularies = map[string][]string{
	"LFM2.5-Instruct": {"<|tool_call_start|>", "<|tool_call_end|>"},
}

// lossy are the templates whose calls do not come back as they were, with the reason.
var lossy = map[string]string{
	"deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "ends the turn after the second call of several",
	"LFM2.5-8B-A1B": "prints a text with both kinds of quotation marks without escaping them",
	"MiniMax-M3":    "prints null inside a list as nothing",
}

// ends are what ends a turn in published templates; a model that writes one is done.
var ends = []string{"<EOS>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|END_OF_TURN_TOKEN|>", "<turn|>", "<|return|>", "<|call|>", "<end_of_turn>",
	"<｜end▁of▁sentence｜>", "<|observation|>", "[e~[", "<|end_of_msg|>", "<|im_user|>", "<SPECIAL_12>", "<SPECIAL_11>"}

// TestCallsSurvive renders what was said and called and reads it back from the assistant's part of the prompt. With -v it
// prints the table of docs/dialects.md, a line for each family.
func TestCallsSurvive(t *testing.T) {
	type row struct {
		templates, good, all int
		lossy                []string
	}
	table := map[string]*row{}
	for name, src := range published(t) {
		g, err := withTemplate(t, src, vocabularies[name]...)
		if err != nil {
			t.Fatal(err)
		}
		if !g.forms[0].has(toolsDeclared) && !g.forms[0].has(callsPrinted) {
			continue
		}
		good, all, bad := 0, 0, ""
		for _, c := range called {
			for _, around := range []string{"", "text", "reasoning"} {
				if around == "text" && !g.forms[0].has(callsWithText) && !g.forms[0].has(callsAfterText) {
					continue // not in one turn with a call
				}
				all++
				problem := survives(t, g, c.calls, around)
				if problem == "" {
					good++
				} else if bad == "" {
					bad = c.name + " " + around + ": " + problem
				}
			}
		}
		r := table[g.family.Name]
		if r == nil {
			r = &row{}
			table[g.family.Name] = r
		}
		r.templates, r.good, r.all = r.templates+1, r.good+good, r.all+all
		if why, ok := lossy[name]; ok {
			r.lossy = append(r.lossy, name+" "+why)
		}
		if (good == all) != (lossy[name] == "") {
			t.Errorf("%s, %s: %d of %d come back; %s", name, g.family.Name, good, all, bad)
		}
	}
	for _, family := range slices.Sorted(maps.Keys(table)) {
		r := table[family]
		t.Logf("| %s | %d | %d | %d | %s |", family, r.templates, r.all, r.good, strings.Join(r.lossy, "; "))
	}
}

// survives says what is wrong with calls that were rendered and read back, "" if nothing is.
func survives(t *testing.T, g *Generator, calls [][2]string, around string) string {
	t.Helper()
	if !g.forms[0].has(callsParallel) && len(calls) > 1 {
		for _, c := range calls {
			if problem := survives(t, g, [][2]string{c}, around); problem != "" {
				return problem
			}
		}
		return ""
	}
	var parts []chat.Part
	switch around {
	case "text":
		parts = append(parts, chat.Part{Text: "I look."})
	case "reasoning":
		parts = append(parts, thought("Let me see."))
	}
	var results []chat.Message
	var want []string
	for i, c := range calls {
		id := fmt.Sprintf("call_%024x", i)
		parts = append(parts, callPart(id, c[0], c[1]))
		results = append(results, answers(resultPart(id, "RESULT")))
		want = append(want, c[0]+canonicalJSON(c[1]))
	}
	history := append([]chat.Message{text(chat.User, "QUESTION"), says(parts...)}, results...)
	out, err := g.Render(t.Context(), &chat.Request{Messages: history, Tools: spokenTools})
	if err != nil {
		return err.Error()
	}
	from := strings.LastIndex(out, "QUESTION") + len("QUESTION")
	for _, mode := range []chat.Toggle{chat.Default, chat.On, chat.Off} {
		asked, err := g.Render(t.Context(), &chat.Request{Messages: history[:1], Tools: spokenTools, Thinking: chat.Thinking{Mode: mode}})
		if err != nil {
			return err.Error()
		}
		n := 0
		for n < min(len(asked), len(out)) && asked[n] == out[n] {
			n++
		}
		from = max(from, n)
	}
	if open := strings.LastIndexAny(out[:from], "<["); !strings.ContainsAny(out[open:from], ">]") {
		from = open // a tag that begins like one of the other prompts
	}
	said, _, ok := strings.Cut(out[from:], "RESULT")
	if !ok {
		return "the result is lost in " + out
	}
	for _, end := range ends {
		said, _, _ = strings.Cut(said, end)
	}
	head := out[strings.LastIndex(out, "QUESTION"):from]
	inside := g.family.Open != "" && strings.LastIndex(head, g.family.Open) > strings.LastIndex(head, g.family.Close)
	if got := readBack(g.family, said, inside); !slices.Equal(got, want) {
		return fmt.Sprintf("got %q, want %q from %q (inside %v)", got, want, said, inside)
	}
	return ""
}

// readBack gives the calls in what a model wrote, each as its name and its arguments.
func readBack(f *dialect.Family, said string, inReasoning bool) []string {
	o := dialect.Options{InReasoning: inReasoning}
	for _, t := range spokenTools {
		o.Tools = append(o.Tools, dialect.Tool{Name: t.Name, Schema: &schema.Document{Raw: t.Parameters}})
	}
	p := f.New(o)
	var calls []string
	name, args := "", ""
	for _, piece := range p.Finish(p.Feed(nil, said)) {
		switch piece.Kind {
		case dialect.ToolStart:
			name, args = piece.Text, ""
		case dialect.ToolArgs:
			args += piece.Text
		case dialect.ToolEnd:
			calls = append(calls, name+canonicalJSON(args))
		}
	}
	return calls
}

// canonicalJSON is JSON with sorted keys, or the text if it is none.
func canonicalJSON(s string) string {
	var v any
	if json.Unmarshal([]byte(s), &v) != nil {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return s
	}
	return string(b)
}
