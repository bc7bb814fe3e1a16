package convert

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/regular"
)

// recipe gives some modules more bits than the others, as mlx-lm's recipes of these names do.
type recipe struct{ low, high int }

var recipes = map[string]recipe{"mixed_2_6": {2, 6}, "mixed_3_4": {3, 4}, "mixed_3_6": {3, 6}, "mixed_4_6": {4, 6}}

// Recipes lists the names that Options.Recipe takes.
func Recipes() []string { return slices.Sorted(maps.Keys(recipes)) }

// rule says how a module is stored: as the default, with a scheme of its own, or as floats.
type rule struct {
	named  bool // it has an entry in config.json
	scheme quant.Scheme
}

// precise is what routers and a few others get: their errors cost more than their bytes.
var precise = quant.Scheme{Mode: quant.Affine, Bits: 8, Group: 64}

// preciseParts are the ends of names of such modules, by type.
var preciseParts = map[string][]string{
	"qwen3_moe":    {"mlp.gate"},
	"qwen3_vl_moe": {"mlp.gate"},
	"qwen3_next":   {"mlp.gate", "shared_expert_gate"},
	"qwen3_5_moe":  {"mlp.gate", "shared_expert_gate"},
	"gpt_oss":      {"router"},
	"gemma4":       {"router.proj"}, "gemma4_text": {"router.proj"}, "gemma4_unified": {"router.proj"},
	"granite":            {"self_attn.o_proj", "mlp.down_proj", "lm_head"},
	"granitemoe":         {"self_attn.o_proj", "mlp.down_proj", "lm_head", "block_sparse_moe.router.layer"},
	"bailing_moe":        {"mlp.gate.gate_proj"},
	"afmoe":              {"router.gate"},
	"mellum":             {"mlp.gate"},
	"laguna":             {"mlp.gate.proj"},
	"kimi_linear":        {"mlp.gate"},
	"lfm2_moe":           {"feed_forward.gate"},
	"jamba":              {"feed_forward.router"},
	"step3p5":            {"mlp.gate.gate"},
	"granitemoehybrid":   {"router.layer"},
	"bailing_moe_linear": {"mlp.gate.gate_proj"},
	"minimax":            {"block_sparse_moe.gate"}, "minimax_m2": {"block_sparse_moe.gate"},
}

// floatParts are the ends of names of matrices that mlx-lm reads as floats only.
var floatParts = map[string][]string{
	"glm4_moe": {"mlp.gate"}, "glm4_moe_lite": {"mlp.gate"},
	"deepseek_v2": {"mlp.gate"}, "deepseek_v3": {"mlp.gate"}, "kimi_k2": {"mlp.gate"}, "kimi_k25": {"mlp.gate"}, "kimi_vl": {"mlp.gate"},
	"joyai_llm_flash": {"mlp.gate"}, "deepseek": {"mlp.gate"}, "dots1": {"mlp.gate"}, "solar_open": {"mlp.gate"}, "exaone_moe": {"mlp.gate"},
	"nemotron_h": {"mixer.gate"}, "mimo_v2_flash": {"mlp.gate"},
}

// keepTogether are the types in which mlx-lm has kv_b_proj as a module.
var keepTogether = []string{"deepseek_v2", "minicpm3", "youtu_llm"}

// compared are the types whose folders were held against mlx-lm's own conversion. Of others it is not known which matrices
// mlx-lm would look for as floats.
var compared = strings.Fields(`afmoe apertus bailing_moe cohere cohere2 deepseek deepseek_v2 deepseek_v3 dots1 ernie4_5 ernie4_5_moe exaone exaone4
	exaone_moe gemma gemma2 gemma3 gemma3_text gemma4 gemma4_text gemma4_unified glm glm4 glm4_moe glm4_moe_lite gpt_neox gpt_oss
	lfm2 lfm2-vl lfm2_moe mamba mamba2 falcon_mamba nemotron_h granitemoehybrid falcon_h1 jamba plamo2 kimi_linear bailing_moe_linear
	gpt2 gpt_bigcode gptj mimo_v2_flash step3p5 mellum laguna
	granite granitemoe helium hunyuan_v1_dense internlm2 internlm3 iquestcoder joyai_llm_flash kimi_k2 kimi_k25 kimi_vl
	llama llama4 llava mimo minicpm minicpm3 minimax minimax_m2 ministral3 mistral mistral3 mistral4 mixtral nanochat nemotron
	nemotron-nas olmo2 olmo3 olmoe phi phi3 pixtral qwen2 qwen2_5_vl qwen2_moe qwen2_vl qwen3 qwen3_5 qwen3_5_moe
	qwen3_moe qwen3_next qwen3_vl qwen3_vl_moe seed_oss smollm3 solar_open stablelm starcoder2 telechat3 xverse youtu_llm`)

// marks are ends of names of tensors by which a model of the type is the one that mlx-lm has: transformers calls MiniMax-Text-01
// what mlx-lm calls MiniMax-M2.
var marks = map[string]string{"minimax": "e_score_correction_bias"}

// inner are the language models that mlx-lm has within others, first the one that is meant where text_config does not say. It
// takes what it does not know for a llama.
var inner = map[string][]string{
	"llava":    {"llama", "mistral", "ministral3", "mistral4"},
	"mistral3": {"mistral", "llama", "ministral3", "mistral4"},
}

// asItIs is what to do with a model that mlx-lm does not have.
const asItIs = "mlx-lm does not have it; hearth runs the folder as it is"

// unsupported says why mlx-lm would not read the model that is to be written as it is read here, and what to do; "" if it would.
func (p *conversion) unsupported() (why, hint string) {
	if !slices.Contains(compared, p.modelType) {
		hint = asItIs
		if slices.Contains(model.Types(), p.modelType) {
			hint = "convert it with mlx-lm"
		}
		return "quantize does not know what mlx-lm quantises of " + regular.Quote(p.modelType), hint
	}
	typ, known := innerType(p.config), inner[p.modelType]
	if typ == "" || known == nil || slices.Contains(known, typ) {
		return "", ""
	}
	return fmt.Sprintf("mlx-lm takes text_config.model_type %s for a llama within %s", regular.Quote(typ), p.modelType), asItIs
}

// What mlx-lm 0.32.2 does not do, whatever config.json says: stretch positions, give layers windows, turn a part of the columns
// alone.
var (
	unstretched = strings.Fields(`cohere cohere2 ernie4_5 ernie4_5_moe gemma gemma2 glm glm4 glm4_moe gpt_neox gptj helium mimo_v2_flash minimax minimax_m2
		mixtral nanochat phi qwen3_moe qwen3_vl_moe solar_open stablelm starcoder2`)
	windowless = strings.Fields(`dots1 mistral mixtral phi3 qwen2 qwen2_5_vl qwen2_moe qwen2_vl qwen3 qwen3_moe qwen3_vl qwen3_vl_moe starcoder2`)
	allColumns = strings.Fields(`glm`)
)

// fixed are keys that mlx-lm 0.32.2 does not look at, with the values by which it computes.
var fixed = map[string]map[string][]string{
	"deepseek_v3": {"rope_interleave": {"true"}}, "joyai_llm_flash": {"rope_interleave": {"true"}}, "kimi_k2": {"rope_interleave": {"true"}},
	"gpt2":        {"activation_function": geluTanh},
	"gpt_bigcode": {"activation_function": geluErf, "multi_query": {"true"}},
	"gpt_neox":    {"hidden_act": geluTanh},
	"gptj":        {"activation_function": geluTanh},
	"nemotron":    {"hidden_act": {"relu2"}},
	"phi":         {"hidden_act": geluTanh},
	"stablelm":    {"hidden_act": {"silu", "swish"}},
	"starcoder2":  {"hidden_act": geluErf},
}

// Names of the two curves that are called gelu.
var (
	geluErf  = strings.Fields(`gelu gelu_python`)
	geluTanh = strings.Fields(`gelu_new gelu_fast gelu_pytorch_tanh gelu_python_tanh gelu_accurate`)
)

// apartFromMLX tells what of a config changes the numbers here, and not in mlx-lm: what is written is right, and mlx-lm computes
// something else with it.
func (p *conversion) apartFromMLX(r *model.Reading, context int) (list []string) {
	typ := p.modelType
	if known := inner[typ]; known != nil {
		typ = cmp.Or(innerType(p.config), known[0])
	}
	tell := func(what, from string) {
		line := fmt.Sprintf("config.json: mlx-lm does not know %s (%s) in %s: its numbers of what is written are others", what, from, typ)
		if !slices.Contains(list, line) {
			list = append(list, line)
		}
	}
	for _, rope := range r.Rotations {
		if rope.Type != "default" && rope.Type != "mrope" && slices.Contains(unstretched, typ) {
			tell("positions stretched by "+rope.Type, rope.From)
		}
		if dim := int(number(p.spelled, "head_dim")); rope.Columns < dim && slices.Contains(allColumns, typ) {
			tell("heads that turn in part", "partial_rotary_factor")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(fixed[typ])) {
		if value := strings.Trim(string(p.config[key]), `"`); given(p.config, key) && !slices.Contains(fixed[typ][key], value) {
			tell(regular.Clip(key+" "+value), "it takes "+fixed[typ][key][0])
		}
	}
	for _, w := range r.Windows {
		if w.Positions > 0 && typ == "mimo_v2_flash" {
			tell(fmt.Sprintf("the first of %d positions that windows have", w.Positions), w.Whence)
		}
		if w.Positions > 0 && (context == 0 || w.Positions < context) && slices.Contains(windowless, typ) {
			tell(fmt.Sprintf("windows of %d tokens", w.Positions), w.Whence)
		}
	}
	return list
}

func endsWith(path string, ends []string) bool {
	return slices.ContainsFunc(ends, func(e string) bool { return strings.HasSuffix(path, e) })
}

// rule is that of the matrix of a module with so many columns.
func (p *conversion) rule(path string, in int) rule {
	s := p.options.Scheme
	switch {
	case in%s.Group != 0, endsWith(path, floatParts[p.modelType]):
		return rule{}
	case p.options.Recipe != "":
		return rule{named: true, scheme: p.mixed(path)}
	case endsWith(path, preciseParts[p.modelType]):
		return rule{named: true, scheme: precise}
	}
	return rule{scheme: s}
}

// mixed gives more bits to the head and, in the first and last eighth of the layers and every third between, to what errors
// come through.
func (p *conversion) mixed(path string) quant.Scheme {
	r := recipes[p.options.Recipe]
	s := quant.Scheme{Mode: quant.Affine, Bits: r.low, Group: p.options.Scheme.Group}
	n, i := p.layers, layerOf(path)
	more := i < n/8 || i >= 7*n/8 || floorMod(i-n/8, 3) == 2
	switch {
	case strings.Contains(path, "lm_head"),
		more && slices.ContainsFunc([]string{"v_proj", "v_a_proj", "v_b_proj", "down_proj"}, func(k string) bool { return strings.Contains(path, k) }):
		s.Bits = r.high
	}
	return s
}

// layerOf is the first number in a path, 0 without one.
func layerOf(path string) int {
	for _, part := range strings.Split(path, ".") {
		if n, err := strconv.Atoi(part); err == nil {
			return n
		}
	}
	return 0
}

func floorMod(a, b int) int { return ((a % b) + b) % b }

// keepsType reports whether a tensor is not brought to the type of the others.
func keepsType(modelType, name string) bool {
	switch {
	case strings.HasSuffix(name, ".A_log"):
		return strings.HasPrefix(modelType, "qwen3_5") || modelType == "nemotron_h" || modelType == "kimi_linear"
	case strings.HasSuffix(name, ".dt_bias"):
		return modelType == "kimi_linear"
	case modelType == "lfm2_moe" || modelType == "bailing_moe_linear":
		return strings.HasSuffix(name, ".expert_bias")
	case modelType == "step3p5":
		return strings.HasSuffix(name, ".router_bias")
	}
	return strings.Contains(name, "e_score_correction_bias")
}
