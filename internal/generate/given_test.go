package generate

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"hearth/internal/chat"
	"hearth/internal/dialect"
	"hearth/internal/engine"
	"hearth/internal/regular"
	"hearth/internal/tokenizer"
)

// givenTo is a generator of a model with these tokens and a template that a person gave.
func givenTo(t testing.TB, tok *tokenizer.Tokenizer, folder, template string) (*Generator, *script, error) {
	t.Helper()
	tmpl, err := LoadTemplate(os.DirFS(folder), template)
	if err != nil {
		return nil, nil, err
	}
	if tmpl.builtin {
		tmpl.tokens.Set("bos_token", textPrefix(tok))
	}
	s := &script{finish: engine.Stop, context: 4096}
	g, err := New(Config{Engine: s, Tokenizer: tok, Template: tmpl})
	return g, s, err
}

// folderWith is a folder whose tokenizer_config.json is this.
func folderWith(t testing.TB, config string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, configFile), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestBuiltinTemplates: what the common forms write, as their families publish them, and what ends a reply then.
func TestBuiltinTemplates(t *testing.T) {
	marks := []string{"<s>", "</s>", "<bos>", "<eos>", "<|begin_of_text|>", "<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
		"<start_of_turn>", "<end_of_turn>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"}
	texts := map[string]struct{ text, ends, endText string }{
		"chatml": {"<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello!<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n", "<|im_end|>", ""},
		"llama3": {"<|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nHello!<|eot_id|>" +
			"<|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>", ""},
		"gemma":   {"<start_of_turn>user\nBe kind.\n\nHi<end_of_turn>\n<start_of_turn>model\nHello!<end_of_turn>\n<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n", "<end_of_turn>", ""},
		"phi3":    {"<|system|>\nBe kind.<|end|>\n<|user|>\nHi<|end|>\n<|assistant|>\nHello!<|end|>\n<|user|>\nBye<|end|>\n<|assistant|>\n", "<|end|>", ""},
		"zephyr":  {"<|system|>\nBe kind.</s>\n<|user|>\nHi</s>\n<|assistant|>\nHello!</s>\n<|user|>\nBye</s>\n<|assistant|>\n", "</s>", ""},
		"llama2":  {"[INST] <<SYS>>\nBe kind.\n<</SYS>>\n\nHi [/INST] Hello! </s><s>[INST] Bye [/INST]", "</s>", ""},
		"mistral": {"[INST] Be kind.\n\nHi [/INST] Hello!</s>[INST] Bye [/INST]", "</s>", ""},
		"vicuna":  {"Be kind. USER: Hi ASSISTANT: Hello!</s>USER: Bye ASSISTANT:", "</s>", ""},
		"alpaca":  {"Be kind.\n\n### Instruction:\nHi\n\n### Response:\nHello!\n\n### Instruction:\nBye\n\n### Response:\n", "", "\n### Instruction:"},
		"plain":   {"Be kind.\n\nUser: Hi\nAssistant: Hello!\nUser: Bye\nAssistant:", "", "\nUser:"},
	}
	r := &chat.Request{Messages: []chat.Message{text(chat.System, "Be kind."), text(chat.User, "Hi"), text(chat.Assistant, "Hello!"), text(chat.User, "Bye")}}
	for _, b := range dialect.Builtins {
		want, ok := texts[b.Name]
		if !ok && !slices.Contains([]string{"harmony", "deepseek_v32"}, b.Name) { // have tests of their own
			t.Errorf("%s: no test says what it writes", b.Name)
		}
		for _, begins := range []string{"", "<s>"} {
			folder := folderWith(t, `{"bos_token": "<|im_start|>", "eos_token": "</s>"}`) // as a folder may call a token that begins turns
			tok := byteTokensAfter(t, begins, marks, `{}`)
			g, _, err := givenTo(t, tok, folder, b.Name)
			if err != nil || b.About == "" {
				t.Fatalf("%s: %v", b.Name, err)
			}
			if !ok {
				continue
			}
			wantText := begins + want.text
			if b.Name == "llama2" {
				wantText = strings.ReplaceAll(begins+want.text, "</s><s>", "</s>"+begins)
			}
			if got, err := g.Render(t.Context(), r); err != nil || got != wantText {
				t.Errorf("%s: %v\n%q, want\n%q", b.Name, err, got, wantText)
			}
			ends := ""
			for _, id := range g.stopIDs {
				name, _ := tok.Token(id)
				ends += name
			}
			if ends != want.ends || strings.Join(g.endTexts, "") != want.endText {
				t.Errorf("%s: replies end with %q and %q, want %q and %q", b.Name, ends, g.endTexts, want.ends, want.endText)
			}
			if len(g.Warnings()) > 0 {
				t.Errorf("%s: %q", b.Name, g.Warnings())
			}
		}
	}
}

// TestGivenTemplate: where a template that a person gives may come from, and what is said of one that does not work.
func TestGivenTemplate(t *testing.T) {
	tok := byteTokens(t, []string{"<|im_start|>", "<|im_end|>"}, `{}`)
	const works = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}"
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("other/chat_template.jinja", works)
	write("gpt/config.json", `{"model_type": "gpt_oss"}`)
	write("base/tokenizer_config.json", `{}`)
	own := folderWith(t, `{"chat_template": "own {{ messages[0].content }}"}`)
	for _, c := range []struct{ given, want string }{
		{"", "own Hi"},
		{works, "[user] Hi\n"},
		{write("t.jinja", works), "[user] Hi\n"},
		{write("llama3.jinja", works), "[user] Hi\n"},
		{write("tokenizer_config.json", `{"chat_template": "file {{ messages[0].content }}"}`), "file Hi"},
		{write("list.json", `{"chat_template": [{"name": "default", "template": "list {{ messages[0].content }}"}]}`), "list Hi"},
		{filepath.Join(dir, "other"), "[user] Hi\n"},
		{"ChatML", "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"},
		{"chat-ml", "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"},
	} {
		g, _, err := givenTo(t, tok, own, c.given)
		if err != nil {
			t.Errorf("%q: %v", c.given, err)
			continue
		}
		if got, err := g.Render(t.Context(), &chat.Request{Messages: []chat.Message{text(chat.User, "Hi")}}); err != nil || got != c.want {
			t.Errorf("%q: %v %q, want %q", c.given, err, got, c.want)
		}
	}
	for _, c := range []struct{ given, says, hint string }{
		{"chatmll", `"chatmll": there is neither a built-in one of that name nor such a file`, "built in are alpaca, chatml, "},
		{"something else", "there is neither", "built in are alpaca"},
		{filepath.Join(dir, "nowhere.jinja"), "there is no such file", "built in are alpaca"},
		{filepath.Join(dir, "chatml.jinja"), "there is no such file", "built in are alpaca"},
		{strings.Repeat("long", 5000), "longlong", "built in are"},
		{filepath.Join(dir, "base"), "the folder has none", "chat_template.jinja"},
		{write("a.json", `{"model_type": "x"}`), "a.json: it has no chat_template", ""},
		{write("b.json", `{`), "b.json: is no valid JSON", ""},
		{write("bad.jinja", "{% for m in messages %}\n{{ m.content }\n"), "bad.jinja: line 2: unexpected", ""},
		{"{% for m in messages %}\n\n{{ m.content", "given as text: line 3: ", ""},
		{write("fails.jinja", "{% for m in messages %}\n{{ m.nothing.at_all }}{{ m.content }}{% endfor %}"), "fails on every trial conversation: render template " + filepath.Join(dir, "fails.jinja") + ": line 2: ", "messages"},
		{write("raises.jinja", "\n\n{{ raise_exception('never') }}"), "raises.jinja refuses the conversation at line 3: never", "messages"},
		{write("lists.jinja", "{% if messages[0].content is string %}{{ nothing.at.all }}{% endif %}"), "fails on every trial conversation: render template " + filepath.Join(dir, "lists.jinja") + ": line 1: ", "messages"},
		{write("silent.jinja", "Hello!"), "silent.jinja leaves out what the user says", "messages"},
		{write("empty.jinja", ""), "leaves out what the user says", "messages"},
		{"{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}", "given as text: line 1: ", ""},
		{"{{" + strings.Repeat(" ", maxTemplateBytes) + "}}", "more than the", ""},
		{write("huge.jinja", strings.Repeat("x", maxTemplateBytes+1)), "huge.jinja", ""},
	} {
		_, _, err := givenTo(t, tok, own, c.given)
		var e *GivenError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.says) || !strings.Contains(e.Hint(), c.hint) || len(err.Error()) > 2000 {
			t.Errorf("%.80q: %.300v, hint %q; want %q, %q", c.given, err, hintOf(e), c.says, c.hint)
		}
	}
	if _, err := LoadTemplate(os.DirFS(own), NoTemplate); !errors.Is(err, ErrNoTemplate) {
		t.Errorf("none: %v", err)
	}
}

func hintOf(e *GivenError) string {
	if e == nil {
		return ""
	}
	return e.Hint()
}

// TestGivenEnds: what ends a turn in a template that is given ends replies: its token, special or not, and where the vocabulary
// has none, its text.
func TestGivenEnds(t *testing.T) {
	for _, c := range []struct {
		name, template string
		added          []string
		ids, texts     []string
		warns          string
	}{
		{"chatml", "chatml", []string{"<|im_start|>", "<|im_end|>"}, []string{"<|im_end|>"}, nil, ""},
		{"chatml, not special", "chatml", []string{"plain:<|im_start|>", "plain:<|im_end|>"}, []string{"<|im_end|>"}, nil, ""},
		{"chatml of words", "chatml", nil, nil, []string{"<|im_end|>"}, "the vocabulary has no <|im_start|>, <|im_end|>, so the model reads that as plain text; a reply ends where it writes \"<|im_end|>\""},
		{"chatml of words, a prompt in any case", turns("<|im_start|>ROLE\n", "<|im_end|>\n", "") + "<|im_start|>assistant\n", nil, nil, []string{"<|im_end|>"}, "ends where it writes \"<|im_end|>\""},
		{"chatml, half of it", "chatml", []string{"<|im_end|>"}, []string{"<|im_end|>"}, nil, "the vocabulary has no <|im_start|>, so"},
		{"phi, not special", "phi3", []string{"plain:<|user|>", "plain:<|assistant|>", "plain:<|system|>", "plain:<|end|>"}, []string{"<|end|>"}, nil, ""},
		{"gemma of words", "gemma", nil, nil, []string{"<end_of_turn>"}, "no <start_of_turn>, <end_of_turn>,"},
		{"vicuna without an end", "vicuna", nil, nil, []string{"</s>"}, "no </s>,"},
		{"lines", "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:", nil, nil, []string{"\nuser:"}, ""},
		{"many marks", "<|a|><|b|><|c|><|d|><|e|><|f|><|g|><|h|><|i|>{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:", nil, nil, []string{"\nuser:"},
			"the vocabulary has no <|a|>, <|b|>, <|c|>, <|d|>, <|e|>, <|f|>, <|g|>, <|h|>, so"},
		{"short lines", "{% for m in messages %}{{ 'Q: ' if m.role == 'user' else 'A: ' }}{{ m.content }}\n{% endfor %}A:", nil, nil, []string{"\nQ:"}, ""},
		{"brackets", "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}", nil, nil, []string{"][user:"}, ""},
		{"nothing between turns", "{% for m in messages %}{{ m.content }} {% endfor %}", nil, nil, nil, ""},
	} {
		tok := byteTokens(t, c.added, `{}`)
		g, _, err := givenTo(t, tok, t.TempDir(), c.template)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var ids []string
		for _, id := range g.stopIDs {
			name, _ := tok.Token(id)
			ids = append(ids, name)
		}
		if !slices.Equal(ids, c.ids) || !slices.Equal(g.endTexts, c.texts) {
			t.Errorf("%s: %q and %q, want %q and %q", c.name, ids, g.endTexts, c.ids, c.texts)
		}
		if w := strings.Join(g.Warnings(), "\n"); !strings.Contains(w, c.warns) || (w == "") != (c.warns == "") {
			t.Errorf("%s: warnings %q, want %q", c.name, w, c.warns)
		}
	}
}

// TestTextEnd: a text that ends a turn is no part of the reply and no stop string of the client's; of raw prompts it is text.
func TestTextEnd(t *testing.T) {
	tok := byteTokens(t, nil, `{}`)
	for _, c := range []struct {
		name string
		r    chat.Request
		want string
	}{
		{"chat", chat.Request{Messages: []chat.Message{text(chat.User, "Hi")}}, "text \" Hello.\"\nfinish stop \"\"\n"},
		{"chat, the client's own", chat.Request{Messages: []chat.Message{text(chat.User, "Hi")}, Stop: []string{"lo"}}, "text \" Hel\"\nfinish stop_text \"lo\"\n"},
		{"raw", chat.Request{Prompt: &chat.Prompt{Text: "Hi"}}, "text \" Hello.\\nUser: Go on.\"\nfinish stop \"\"\n"},
	} {
		g, s, err := givenTo(t, tok, t.TempDir(), "plain")
		if err != nil {
			t.Fatal(err)
		}
		s.reply = tok.Encode(" Hello.\nUser: Go on.", tokenizer.EncodeOptions{})
		seq, err := g.Generate(t.Context(), &c.r)
		if err != nil {
			t.Fatal(err)
		}
		said, end := "", ""
		for e, err := range seq {
			switch {
			case err != nil:
				t.Fatal(err)
			case e.Kind == chat.EventText:
				said += e.Text
			case e.Kind == chat.EventFinish:
				end = string(e.Finish) + " " + quote(e.Stop)
			}
		}
		if got := "text " + quote(said) + "\nfinish " + end + "\n"; got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if s.closed == 0 {
			t.Errorf("%s: the sequence goes on", c.name)
		}
	}
}

func quote(s string) string { return `"` + strings.ReplaceAll(s, "\n", `\n`) + `"` }

// FuzzGivenTemplate: whatever a person gives is a template that renders or an error that names it, within bounds.
func FuzzGivenTemplate(f *testing.F) {
	for _, s := range []string{"chatml", "{{ messages }}", "{% for m in messages %}{{ m.content }}<|x|>{% endfor %}", "none", "~/x", "{{ bos_token * 1000000 }}{{ messages }}", "\x00", "{% if %}"} {
		f.Add(s)
	}
	tok := byteTokens(f, []string{"<|im_start|>", "<|im_end|>", "</s>"}, `{"eos_token": "</s>"}`)
	f.Fuzz(func(t *testing.T, s string) {
		if !isTemplateText(s) && strings.ContainsAny(s, "/.~") {
			return // what is on this machine is not the test's
		}
		tmpl, err := LoadTemplate(os.DirFS(t.TempDir()), s)
		if err == nil {
			_, err = New(Config{Engine: &script{context: 64}, Tokenizer: tok, Template: tmpl})
		}
		if err != nil && (len(err.Error()) > 3000 || err.Error() == "") {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	})
}

// FuzzTemplateFiles: whatever the files of a folder have that may name a template or tokens, there is a template or an error
// that is no longer than a few lines, and so are the warnings.
func FuzzTemplateFiles(f *testing.F) {
	f.Add(`{"chat_template": "{{ messages }}", "bos_token": {"content": "<s>"}, "eos_token": "</s>"}`, `{"chat_template": "c"}`, `{"pad_token": null}`, "", "")
	f.Add(`{"chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]}`, "", "", "", "{% if tools %}")
	f.Add(`{"chat_template": 3, "chat_template_type": "deepseek_v32"}`, `{`, `[]`, `{"model_type":"deepseek_v32"}`, "{{ x }}")
	f.Add(`{"chat_template": [{"name": 3}]}`, `{"chat_template": "a",}`, `{"eos_token": {"content": 3}}`, `{"model_type": {}}`, "")
	f.Add("\ufeff{}", "null", "", `{"model_type":"\u0000"}`, "")
	f.Fuzz(func(t *testing.T, config, old, specials, model, tools string) {
		files := fstest.MapFS{}
		for name, text := range map[string]string{configFile: config, oldTemplateFile: old, "special_tokens_map.json": specials, "config.json": model, toolTemplateFile: tools} {
			if text != "" {
				files[name] = &fstest.MapFile{Data: []byte(text)}
			}
		}
		tmpl, err := LoadTemplate(files, "")
		if (tmpl == nil) == (err == nil) || err != nil && (len(err.Error()) > 3000 || err.Error() == "") {
			t.Errorf("template %v, error %v", tmpl, err)
		}
		if tmpl != nil {
			for _, w := range tmpl.warnings {
				if len(w) > 4*regular.Line {
					t.Errorf("a warning of %d bytes", len(w))
				}
			}
		}
	})
}
