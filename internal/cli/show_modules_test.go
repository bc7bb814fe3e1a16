package cli

import (
	"fmt"
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/quant"
)

// TestShownModules: a kind that is stored in several ways tells which modules are how, whatever order they come in; a tensor
// that is taken apart counts once.
func TestShownModules(t *testing.T) {
	s := &surveyor{}
	note := func(name string, use backend.Use, scheme quant.Scheme) {
		p := backend.Part{Weight: &backend.Tensor{Name: name, DType: "BF16", Shape: []int{4, 64}}, Scheme: scheme}
		s.note(backend.WeightSpec{Name: strings.TrimSuffix(name, ".weight"), Use: use, In: 64, Parts: []backend.Part{p}})
	}
	affine := func(bits, group int) quant.Scheme { return quant.Scheme{Mode: quant.Affine, Bits: bits, Group: group} }
	fp8, _ := quant.MXFP8.Default()
	note("language_model.model.embed_tokens.weight", backend.UseTable, affine(6, 32))
	for i := range 3 {
		l := fmt.Sprintf("language_model.model.layers.%d.", i)
		for range 2 {
			note(l+"self_attn.kv_b_proj.weight", backend.UseHeads, affine(4, 64))
		}
		note(l+"self_attn.o_proj.weight", backend.UseLinear, []quant.Scheme{affine(4, 64), {}, fp8}[i])
		note(l+"input_layernorm.weight", backend.UseVector, quant.Scheme{})
		for e := range 2 {
			note(fmt.Sprintf("%smlp.experts.%d.up_proj.weight", l, e), backend.UseExperts, affine(2+i+e, 128))
		}
	}
	note("lm_head.weight", backend.UseLinear, affine(8, 64))
	var got []string
	printLayers(func(name, format string, args ...any) {
		line, _, _ := strings.Cut(name+" "+fmt.Sprintf(format, args...), " parameters")
		got = append(got, line)
	}, s.layers, s.modules)
	want := []string{
		"  embeddings affine 6 bits, group 32, 256",
		"  attention affine 4 bits, group 64, 1,792",
		"  attention BF16, 256",
		"  attention mxfp8 8 bits, group 32, 256",
		"    self_attn.kv_b_proj 4 bits g64 ×3",
		"    self_attn.o_proj 4 bits g64 ×1, BF16 ×1, mxfp8 ×1",
		"  norms BF16, 768",
		"  experts affine 2 bits, group 128, 256",
		"  experts affine 3 bits, group 128, 512",
		"  experts affine 4 bits, group 128, 512",
		"  experts affine 5 bits, group 128, 256",
		"    mlp.experts.*.up_proj 2 bits g128 ×1, 3 bits g128 ×2, 4 bits g128 ×2, 5 bits g128 ×1",
		"  head affine 8 bits, group 64, 256",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("rows\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
