package generate

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"hearth/internal/tokenizer"
)

// byteTokens makes a tokenizer of single bytes with added tokens, which are special but for those that begin with "plain:".
func byteTokens(t testing.TB, added []string, config string) *tokenizer.Tokenizer {
	t.Helper()
	return byteTokensAfter(t, "", added, config)
}

// byteTokensAfter is byteTokens of a tokenizer that puts a token in front of every text.
func byteTokensAfter(t testing.TB, begins string, added []string, config string) *tokenizer.Tokenizer {
	t.Helper()
	vocab := map[string]int{}
	next := rune(256)
	for b := range 256 {
		r := rune(b)
		if b < '!' || b > '~' && b < 0xA1 || b == 0xAD {
			r, next = next, next+1
		}
		vocab[string(r)] = b
	}
	var list []map[string]any
	for i, s := range added {
		text, plain := strings.CutPrefix(s, "plain:")
		list = append(list, map[string]any{"id": 256 + i, "content": text, "special": !plain})
	}
	var post any
	if i := slices.Index(added, begins); i >= 0 {
		post = map[string]any{"type": "TemplateProcessing", "single": []any{map[string]any{"SpecialToken": map[string]any{"id": begins, "type_id": 0}}, map[string]any{"Sequence": map[string]any{"id": "A", "type_id": 0}}},
			"pair": []any{}, "special_tokens": map[string]any{begins: map[string]any{"id": begins, "ids": []int{256 + i}, "tokens": []string{begins}}}}
	}
	b, err := json.Marshal(map[string]any{"post_processor": post, "added_tokens": list, "pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
		"decoder": map[string]any{"type": "ByteLevel"}, "model": map[string]any{"type": "BPE", "vocab": vocab, "merges": []string{}}})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Parse(b, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// turns writes a template in which every message is between two texts with its role, and the prompt for an answer is the third.
func turns(before, after, prompt string) string {
	role := func(s, name string) string { return strings.ReplaceAll(s, "ROLE", name) }
	quote := func(s string) string {
		return strings.ReplaceAll("'"+strings.ReplaceAll(s, "\n", `\n`)+"'", "EOS", "' + eos_token + '")
	}
	s := "{% for m in messages %}"
	for i, name := range []string{"user", "assistant", "system", "tool"} {
		s += []string{"{% if", "{% elif", "{% elif", "{% elif"}[i] + " m.role == '" + name + "' %}{{ " + quote(role(before, name)) + " + m.content + " + quote(role(after, name)) + " }}"
	}
	s += "{% endif %}{% endfor %}"
	if prompt != "" {
		s += "{% if add_generation_prompt %}{{ " + quote(prompt) + " }}{% endif %}"
	}
	return s
}

// TestTurnEnds: what a template writes behind what an assistant says ends a reply, in templates in the manner of the known
// families, whatever the files name; and nothing else does.
func TestTurnEnds(t *testing.T) {
	chatML := turns("<|im_start|>ROLE\n", "<|im_end|>\n", "<|im_start|>assistant\n")
	chatMLTokens := []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}
	system := "{% if messages[0].role != 'system' %}<|im_start|>system\nYou help.<|im_end|>\n{% endif %}"
	glm := "[gMASK]<sop>" + turns("<|ROLE|>\n", "", "<|assistant|>\n")
	const harmonyStart = "{% for m in messages %}{% if m.role == 'assistant' %}" +
		"{% if m.thinking and loop.last %}<|start|>assistant<|channel|>analysis<|message|>{{ m.thinking }}<|end|>{% endif %}" +
		"<|start|>assistant<|channel|>final<|message|>{{ m.content }}{% if loop.last and not add_generation_prompt %}<|return|>{% else %}<|end|>{% endif %}" +
		"{% else %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endif %}{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}"
	commandR := "<BOS_TOKEN>{% for m in messages %}{% if m.role == 'assistant' %}<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_RESPONSE|>{{ m.content }}<|END_RESPONSE|><|END_OF_TURN_TOKEN|>" +
		"{% else %}<|START_OF_TURN_TOKEN|><|USER_TOKEN|>{{ m.content }}<|END_OF_TURN_TOKEN|>{% endif %}{% endfor %}"
	commandTokens := []string{"<BOS_TOKEN>", "<|START_OF_TURN_TOKEN|>", "<|CHATBOT_TOKEN|>", "<|USER_TOKEN|>", "<|SYSTEM_TOKEN|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|END_OF_TURN_TOKEN|>"}
	for _, c := range []struct {
		name, template string
		added          []string
		named          string // eos_token of tokenizer_config.json, or all of it
		stops          []string
		want           []string // those of the template
	}{
		{"chatml", chatML, chatMLTokens, "", nil, []string{"<|im_end|>"}},
		{"chatml, another token named", chatML, chatMLTokens, "<|endoftext|>", nil, []string{"<|im_end|>"}},
		{"chatml, named by a config", chatML, chatMLTokens, "<|endoftext|>", []string{"<|im_end|>"}, nil},
		{"chatml, named by the tokenizer", chatML, chatMLTokens, "<|im_end|>", []string{"<|endoftext|>"}, nil},
		{"chatml with a system prompt of its own", system + chatML, chatMLTokens, "", nil, []string{"<|im_end|>"}},
		{"chatml with a generation prompt in any case", turns("<|im_start|>ROLE\n", "<|im_end|>\n", "") + "<|im_start|>assistant\n", chatMLTokens, "", nil, []string{"<|im_end|>"}},
		{"chatml of words", chatML, nil, "", nil, nil},
		{"chatml of tokens that are not special", chatML, []string{"<|endoftext|>", "plain:<|im_start|>", "plain:<|im_end|>"}, "<|endoftext|>", nil, nil},
		{"llama 3", "<|begin_of_text|>" + turns("<|start_header_id|>ROLE<|end_header_id|>\n\n", "<|eot_id|>", "<|start_header_id|>assistant<|end_header_id|>\n\n"),
			[]string{"<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}, "<|end_of_text|>", nil, []string{"<|eot_id|>"}},
		{"llama 3 with a generation prompt in any case", "<|begin_of_text|>" + turns("<|start_header_id|>ROLE<|end_header_id|>\n\n", "<|eot_id|>", "") + "<|start_header_id|>assistant<|end_header_id|>\n\n",
			[]string{"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}, "", nil, []string{"<|eot_id|>"}},
		{"gemma", "<bos>" + turns("<start_of_turn>ROLE\n", "<end_of_turn>\n", "<start_of_turn>model\n"), []string{"<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"}, "<eos>", nil, []string{"<end_of_turn>"}},
		{"phi", turns("<|ROLE|>\n", "<|end|>\n", "") + "{% if add_generation_prompt %}<|assistant|>\n{% else %}{{ eos_token }}{% endif %}",
			[]string{"<|user|>", "<|assistant|>", "<|system|>", "<|end|>", "<|endoftext|>"}, "<|endoftext|>", nil, []string{"<|end|>"}},
		{"mistral", "<s>{% for m in messages %}{% if m.role == 'assistant' %}{{ m.content }}</s>{% else %}[INST]{{ m.content }}[/INST]{% endif %}{% endfor %}",
			[]string{"<s>", "</s>", "[INST]", "[/INST]"}, "", nil, []string{"</s>"}},
		{"mistral, an open last turn", "<s>{% for m in messages %}{% if m.role == 'assistant' %}{{ m.content }}{% if not loop.last %}</s>{% endif %}{% else %}[INST]{{ m.content }}[/INST]{% endif %}{% endfor %}",
			[]string{"<s>", "</s>", "[INST]", "[/INST]"}, "", nil, []string{"</s>"}},
		{"mistral, only the last turn closed", "<s>{% for m in messages %}{% if m.role == 'assistant' %}{{ m.content }}{% if loop.last %}</s>{% endif %}{% else %}[INST]{{ m.content }}[/INST]{% endif %}{% endfor %}",
			[]string{"<s>", "</s>", "[INST]", "[/INST]"}, "", nil, []string{"</s>"}},
		{"turns that only begin, another token named", "<s>{% for m in messages %}{% if m.role == 'assistant' %}{{ m.content }}{% else %}[INST]{{ m.content }}[/INST]{% endif %}{% endfor %}",
			[]string{"<s>", "</s>", "[INST]", "[/INST]"}, "</s>", nil, nil},
		{"turns that only begin, nothing named", turns("<|ROLE|>", "", "<|assistant|>"), []string{"<|user|>", "<|assistant|>", "<|system|>"}, "", nil, []string{"<|user|>"}},
		{"turns that only begin, a generation prompt in any case", turns("<|start|>ROLE\n", "\n", "") + "<|start|>assistant\n", []string{"<|start|>", "</s>"}, "</s>", nil, nil},
		{"every turn begins a text, by a token that is named", turns("<s>ROLE: ", "\n", "<s>assistant: "), []string{"<s>"}, `{"bos_token": "<s>"}`, nil, nil},
		{"every turn begins a text", turns("<s>ROLE: ", "\n", "<s>assistant: "), []string{"<s>"}, "", nil, []string{"<s>"}},
		{"glm", glm, []string{"[gMASK]", "<sop>", "<|user|>", "<|assistant|>", "<|system|>", "<|observation|>", "<|endoftext|>"}, "<|endoftext|>", nil, []string{"<|user|>", "<|observation|>"}},
		{"glm, all named", glm, []string{"[gMASK]", "<sop>", "<|user|>", "<|assistant|>", "<|system|>", "<|observation|>", "<|endoftext|>"}, "<|endoftext|>", []string{"<|user|>", "<|observation|>"}, nil},
		{"deepseek", "<｜begin▁of▁sentence｜>{% for m in messages %}{% if m.role == 'assistant' %}<｜Assistant｜>{{ m.content }}<｜end▁of▁sentence｜>{% else %}<｜User｜>{{ m.content }}{% endif %}{% endfor %}{% if add_generation_prompt %}<｜Assistant｜>{% endif %}",
			[]string{"<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>"}, "", nil, []string{"<｜end▁of▁sentence｜>"}},
		{"harmony", harmonyStart, []string{"<|start|>", "<|end|>", "<|channel|>", "<|message|>", "<|return|>", "<|call|>", "<|constrain|>", "<|endoftext|>"}, "<|endoftext|>", nil, []string{"<|return|>", "<|call|>"}},
		{"harmony, one named", harmonyStart, []string{"<|start|>", "<|end|>", "<|channel|>", "<|message|>", "<|return|>", "<|call|>", "<|constrain|>"}, "<|return|>", nil, []string{"<|call|>"}},
		{"messages with thoughts of their own", "{% for m in messages %}{% if m.role == 'assistant' %}{% if m.reasoning_content and loop.last %}<|begin|>think {{ m.reasoning_content }}<|end|>{% endif %}{% endif %}" +
			"<|begin|>{{ m.role }} {{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|begin|>assistant {% endif %}", []string{"<|begin|>", "<|end|>", "<|eos|>"}, "<|eos|>", nil, nil},
		{"cohere", "<BOS_TOKEN>" + turns("<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"), commandTokens, "", nil, []string{"<|END_OF_TURN_TOKEN|>"}},
		{"cohere, answers marked", commandR + "{% if add_generation_prompt %}<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>{% endif %}", commandTokens, "", nil, []string{"<|END_OF_TURN_TOKEN|>"}},
		{"cohere, answers marked, a generation prompt in any case", commandR + "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>", commandTokens, "", nil, []string{"<|END_OF_TURN_TOKEN|>"}},
		{"cohere, a system prompt at the end", "<BOS_TOKEN>" + turns("<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "") + "<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>Answer.<|END_OF_TURN_TOKEN|>{% if add_generation_prompt %}<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>{% endif %}",
			commandTokens, "", nil, []string{"<|END_OF_TURN_TOKEN|>"}},
		{"granite", turns("<|start_of_role|>ROLE<|end_of_role|>", "<|end_of_text|>\n", "<|start_of_role|>assistant<|end_of_role|>"), []string{"<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>"}, "", nil, []string{"<|end_of_text|>"}},
		{"exaone", turns("[|ROLE|]", "[|endofturn|]\n", "[|assistant|]"), []string{"[|user|]", "[|assistant|]", "[|system|]", "[|endofturn|]"}, "", nil, []string{"[|endofturn|]"}},
		{"olmo, one token for beginning and end", "<|endoftext|>" +
			"{% for m in messages %}{% if m.role == 'assistant' %}<|assistant|>\n{{ m.content }}<|endoftext|>{% if not loop.last %}\n{% endif %}{% else %}<|user|>\n{{ m.content }}\n{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}",
			[]string{"<|endoftext|>", "<|user|>", "<|assistant|>", "<|pad|>"}, "<|pad|>", nil, []string{"<|endoftext|>"}},
		{"apertus, an open last turn", "<s>{% for m in messages %}{% if m.role == 'assistant' %}<|assistant_start|>{{ m.content }}{% if not loop.last %}<|assistant_end|>{% endif %}{% else %}<|user_start|>{{ m.content }}<|user_end|>{% endif %}{% endfor %}",
			[]string{"<s>", "</s>", "<|assistant_start|>", "<|assistant_end|>", "<|user_start|>", "<|user_end|>"}, "</s>", nil, []string{"<|assistant_end|>"}},
		{"solar, whose thoughts end as its turns do", turns("<|begin|>ROLE<|content|>", "<|end|>", "<|begin|>assistant") + "{% if false %}<|think|><|tool_calls|><|tool_call:begin|><|tool_call:args|>{% endif %}",
			[]string{"<|begin|>", "<|content|>", "<|end|>", "<|eos|>"}, "<|eos|>", nil, nil},
		{"words between", turns("ROLE: ", "\n", "assistant: "), []string{"<s>", "</s>"}, "</s>", nil, nil},
		{"the end named by a variable", turns("### ROLE\n", "EOS\n", "### assistant\n"), []string{"</s>", "<pad>"}, "</s>", nil, nil},
		{"a text too long to look at", strings.Repeat("x", mostTrial) + chatML, chatMLTokens, "", nil, nil},
		{"assistants refused", "{% for m in messages %}{% if m.role != 'user' %}{{ raise_exception('no') }}{% endif %}<|u|>{{ m.content }}<|e|>{% endfor %}", []string{"<|u|>", "<|e|>"}, "", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := "{}"
			if strings.HasPrefix(c.named, "{") {
				config, c.named = c.named, ""
			} else if c.named != "" {
				config = `{"eos_token": "` + c.named + `"}`
			}
			tok := byteTokens(t, c.added, config)
			tmpl, err := NewTemplate("x", c.template)
			if err != nil {
				t.Fatal(err)
			}
			if c.named != "" {
				tmpl.tokens.Set("eos_token", c.named)
			}
			cfg := Config{Engine: &script{context: 100}, Tokenizer: tok, Template: tmpl}
			for _, name := range c.stops {
				id, _ := tok.ID(name)
				cfg.StopIDs = append(cfg.StopIDs, id)
			}
			before := slices.Clone(cfg.StopIDs)
			var named, found []string
			for _, e := range cfg.Summary().Ends {
				if e.Template {
					found = append(found, e.Token)
				} else {
					named = append(named, e.Token)
				}
			}
			if !slices.Equal(found, c.want) {
				t.Errorf("the template tells of %q, want %q", found, c.want)
			}
			want := slices.Clone(c.stops)
			if c.named != "" && !slices.Contains(want, c.named) {
				want = append(want, c.named)
			}
			if !slices.Equal(named, want) {
				t.Errorf("the files name %q, want %q", named, want)
			}
			g, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			var stops []string
			for _, id := range g.stopIDs {
				text, _ := tok.Token(id)
				stops = append(stops, text)
			}
			if all := append(want, c.want...); !slices.Equal(stops, all) || !slices.Equal(g.stops, all) {
				t.Errorf("replies end with %q, %q, want %q", stops, g.stops, all)
			}
			if !slices.Equal(cfg.StopIDs, before) {
				t.Errorf("the configuration was changed: %v", cfg.StopIDs)
			}
		})
	}
}
