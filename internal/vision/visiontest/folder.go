// Package visiontest makes folders of models that see, with random weights, and pictures to show them.
package visiontest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hearth/internal/safetensors"
)

// family is how a folder's text side looks.
type family struct {
	preprocessor string
	tokens       []string // in the places of the demo's reserved ones
	template     string
	text         map[string]any // what the text model's settings have instead
}

const (
	qwenTokens = "<|vision_start|> <|image_pad|> <|vision_end|>"
	qwen       = `{"image_processor_type": "Qwen2VLImageProcessorFast", "size": {"shortest_edge": 256, "longest_edge": 4096}, "patch_size": 4, "merge_size": 2, "temporal_patch_size": 2}`
	idefics    = "<image> <fake_token_around_image> <global-img> <row_1_col_1>"
)

var families = map[string]family{
	"qwen3_vl":   {qwen, strings.Fields(qwenTokens), ChatML("<|vision_start|><|image_pad|><|vision_end|>"), nil},
	"qwen3_5":    {qwen, strings.Fields(qwenTokens), ChatML("<|vision_start|><|image_pad|><|vision_end|>"), nil},
	"qwen2_vl":   {qwen, strings.Fields(qwenTokens), ChatML("<|vision_start|><|image_pad|><|vision_end|>"), nil},
	"qwen2_5_vl": {qwen, strings.Fields(qwenTokens), ChatML("<|vision_start|><|image_pad|><|vision_end|>"), nil},
	"gemma3": {`{"image_processor_type": "Gemma3ImageProcessor", "size": {"height": 16, "width": 16}}`,
		strings.Fields("<start_of_image> <image_soft_token> <end_of_image>"), turns, nil},
	// Without a window, as published: one that is shorter than a question would hide its image.
	"mistral3": {`{"image_processor_type": "PixtralImageProcessorFast", "size": {"longest_edge": 64}, "patch_size": 4}`,
		strings.Fields("[IMG] [IMG_BREAK] [IMG_END] [INST] [/INST]"), inst, map[string]any{"sliding_window": nil}},
	"gemma4": {`{"image_processor_type": "Gemma4ImageProcessor", "patch_size": 4, "pooling_kernel_size": 2, "max_soft_tokens": 16}`,
		strings.Fields("<|image> <|image|> <image|>"), ChatML("\\n\\n<|image|>\\n\\n"), nil},
	"idefics3": {`{"image_processor_type": "Idefics3ImageProcessor", "size": {"longest_edge": 48}, "max_image_size": {"longest_edge": 24}}`,
		strings.Fields(idefics), utterances, nil},
	"smolvlm": {`{"image_processor_type": "SmolVLMImageProcessor", "size": {"longest_edge": 54}, "max_image_size": {"longest_edge": 27}}`,
		strings.Fields(idefics), utterances, nil},
	"lfm2_vl": {`{"image_processor_type": "Lfm2VlImageProcessorFast", "tile_size": 16, "min_image_tokens": 2, "max_image_tokens": 8, "max_tiles": 4,
		"max_pixels_tolerance": 1}`, strings.Fields("<image> <|image_start|> <|image_end|> <|img_thumbnail|> <|img_row_1_col_1|>"), ChatML("<image>"), nil},
}

// ChatML is a template that prints a mark for images of the user's and of results of tools.
func ChatML(mark string) string {
	return `{%- macro show(content) -%}{%- if content is string -%}{{- content -}}{%- else -%}{%- for p in content -%}
{%- if p.type == 'image' -%}{{- '` + mark + `' -}}{%- else -%}{{- p.text -}}{%- endif -%}{%- endfor -%}{%- endif -%}{%- endmacro -%}
{%- if tools -%}{{- '<|im_start|>system\n# Tools\n' + tools|tojson + '<|im_end|>\n' -}}{%- endif -%}
{%- for m in messages -%}
  {%- if m.role == 'tool' -%}{{- '<|im_start|>user\n<tool_response>\n' + show(m.content) + '\n</tool_response><|im_end|>\n' -}}
  {%- else -%}{{- '<|im_start|>' + m.role + '\n' + show(m.content) -}}
    {%- for c in m.tool_calls or [] -%}{{- '<tool_call>\n{"name": "' + c.function.name + '", "arguments": ' + c.function.arguments|tojson + '}\n</tool_call>' -}}{%- endfor -%}
    {{- '<|im_end|>\n' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}`
}

// turns is a template without tools and without a system message of its own, which trims texts.
const turns = `{%- for m in messages -%}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) -%}{{- raise_exception('user and assistant must alternate') -}}{%- endif -%}
{{- '<|im_start|>' + m.role + '\n' -}}
{%- if m.content is string -%}{{- m.content|trim -}}{%- else -%}{%- for p in m.content -%}
{%- if p.type == 'image' -%}{{- '<start_of_image>' -}}{%- else -%}{{- p.text|trim -}}{%- endif -%}{%- endfor -%}{%- endif -%}
{{- '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}`

// inst is a template with marks around the user's turns alone, and no tools.
const inst = `{{- bos_token -}}{%- for m in messages -%}
{%- if m.role == 'user' -%}{{- '[INST]' -}}{%- if m.content is string -%}{{- m.content -}}{%- else -%}{%- for p in m.content -%}
{%- if p.type == 'text' -%}{{- p.text -}}{%- elif p.type in ['image', 'image_url'] -%}{{- '[IMG]' -}}{%- endif -%}{%- endfor -%}{%- endif -%}{{- '[/INST]' -}}
{%- elif m.role == 'assistant' -%}{{- m.content + eos_token -}}
{%- else -%}{{- raise_exception('only user and assistant') -}}{%- endif -%}
{%- endfor -%}`

// utterances is a template that takes contents as lists of parts alone.
const utterances = `<|im_start|>{% for m in messages %}{{ m['role']|capitalize }}{% if m['content'][0]['type'] == 'image' %}{{ ':' }}{% else %}{{ ': ' }}{% endif %}
{%- for p in m['content'] %}{% if p['type'] == 'text' %}{{ p['text'] }}{% elif p['type'] == 'image' %}{{ '<image>' }}{% endif %}{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}`

// root is the folder of the module.
func root(t testing.TB) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
}

func read(t testing.TB, parts ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{root(t), "internal"}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// context is how long the models' prompts may be.
const context = 2048

// Folder writes a model of a type with a tower: the sizes of the golden of package model, random weights, and the demo's
// vocabulary.
func Folder(t testing.TB, typ string) string {
	t.Helper()
	return folder(t, typ, nil, 0)
}

// folder is Folder, with a processor's file of its own and patches of that size if there is one.
func folder(t testing.TB, typ string, preprocessor []byte, patch int) string {
	t.Helper()
	f, ok := families[typ]
	if !ok {
		t.Fatalf("no folder of a %s", typ)
	}
	if preprocessor == nil {
		preprocessor = []byte(f.preprocessor)
	}
	dir := t.TempDir()
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tok := read(t, "demo", "model", "tokenizer.json")
	named := read(t, "demo", "model", "tokenizer_config.json")
	for i, name := range f.tokens {
		old := fmt.Appendf(nil, `"<|reserved_%d|>"`, i)
		tok, named = bytes.ReplaceAll(tok, old, []byte(`"`+name+`"`)), bytes.ReplaceAll(named, old, []byte(`"`+name+`"`))
	}
	var vocab struct {
		Added []struct{ ID int } `json:"added_tokens"`
	}
	if err := json.Unmarshal(tok, &vocab); err != nil {
		t.Fatal(err)
	}
	size := vocab.Added[len(vocab.Added)-1].ID + 1
	write("tokenizer.json", tok)
	write("tokenizer_config.json", named)
	write("chat_template.jinja", []byte(f.template))
	write("preprocessor_config.json", preprocessor)

	var g struct {
		Config  map[string]any       `json:"config"`
		Tensors [][4]json.RawMessage `json:"tensors"`
	}
	if err := json.Unmarshal(read(t, "model", "testdata", "vision", typ+".json"), &g); err != nil {
		t.Fatal(err)
	}
	text := g.Config
	if inner, ok := text["text_config"].(map[string]any); ok {
		text = inner
	}
	text["vocab_size"], text["max_position_embeddings"] = size, context
	if tower, ok := g.Config["vision_config"].(map[string]any); ok && patch > 0 {
		tower["patch_size"] = patch
	}
	if _, ok := text["vocab_size_per_layer_input"]; ok { // of gemma4
		text["vocab_size_per_layer_input"] = size
	}
	maps.Copy(text, f.text)
	config, err := json.Marshal(g.Config)
	if err != nil {
		t.Fatal(err)
	}
	write("config.json", config)
	r := rand.New(rand.NewPCG(7, 7))
	var tensors []safetensors.Tensor
	for _, line := range g.Tensors {
		x := safetensors.Tensor{DType: "F32"}
		var base, amp float64
		for i, to := range []any{&x.Name, &x.Shape, &base, &amp} {
			if err := json.Unmarshal(line[i], to); err != nil {
				t.Fatal(err)
			}
		}
		if strings.Contains(x.Name, "embed_tokens") || x.Name == "lm_head.weight" {
			x.Shape[0] = size
		}
		if n := len(x.Shape); strings.HasSuffix(x.Name, "patch_embed.proj.weight") && patch > 0 {
			x.Shape[n-2], x.Shape[n-1] = patch, patch
		}
		n := 1
		for _, k := range x.Shape {
			n *= k
		}
		for range n {
			x.Bytes = le(x.Bytes, float32(base+amp*(2*r.Float64()-1)))
		}
		tensors = append(tensors, x)
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, tensors, nil); err != nil {
		t.Fatal(err)
	}
	write("model.safetensors", b.Bytes())
	return dir
}

func le(b []byte, f float32) []byte {
	v := math.Float32bits(f)
	return append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
}

// PNG is a picture of coloured noise, another one for each seed.
func PNG(t testing.TB, w, h int, seed uint64) []byte {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.SetNRGBA(x, y, color.NRGBA{uint8(r.IntN(256)), uint8(r.IntN(256)), uint8(r.IntN(256)), 255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Base64 is a PNG as clients send it.
func Base64(t testing.TB, w, h int, seed uint64) []byte {
	t.Helper()
	return []byte(base64.StdEncoding.EncodeToString(PNG(t, w, h, seed)))
}
