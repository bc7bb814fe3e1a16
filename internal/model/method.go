package model

import (
	"encoding/json"
	"fmt"
	"slices"

	"hearth/internal/quant"
	"hearth/internal/regular"
)

// methodJSON are the keys that tell one tool's "quantization_config" from another's.
type methodJSON struct {
	Method     string     `json:"quant_method"`
	Format     string     `json:"format"`            // compressed-tensors
	Checkpoint string     `json:"checkpoint_format"` // gptq
	Bits       int        `json:"bits"`              // awq, gptq
	ScaleType  string     `json:"scale_fmt"`         // fp8
	Block      []int      `json:"weight_block_size"` // fp8
	Algorithm  string     `json:"quant_algo"`        // modelopt
	Nested     *nestedAlg `json:"quantization"`      // modelopt, in its file of its own
	Linear     string     `json:"linear_class"`      // bitnet
}

type nestedAlg struct {
	Algorithm string `json:"quant_algo"`
}

// parseMethod reads a quantization_config of file. Without a method, or with one of that name, it is MLX's dictionary.
func parseMethod(raw json.RawMessage, file string) (quantization, error) {
	var c methodJSON
	if err := json.Unmarshal(raw, &c); err != nil {
		return quantization{}, &LoadError{File: file, Err: fmt.Errorf("quantization_config: %w", tidyJSON(err))}
	}
	if c.Nested != nil {
		c.Algorithm = c.Nested.Algorithm
		if c.Method == "" {
			c.Method = "modelopt"
		}
	}
	if c.Method == "" || c.Method == "mlx" {
		return parseSchemes(raw)
	}
	q, name := c.translate()
	if name != "" {
		return q, &LoadError{File: file, Problem: fmt.Sprintf("quantisation method %s is not supported", name),
			Hint: "use a conversion to MLX's own quantisation"}
	}
	return q, nil
}

// translate finds the scheme and the layout of a method, or else what to call it when refusing.
func (c *methodJSON) translate() (q quantization, refused string) {
	set := func(m quant.Mode, f *foreign) (quantization, string) {
		q.Scheme, _ = m.Default()
		q.foreign = f
		return q, ""
	}
	switch c.Method {
	case "mxfp4":
		return set(quant.MXFP4, nil)
	case "bitnet":
		return set(quant.Affine, ternary(c.Linear != "autobitlinear"))
	case "mxfp8":
		return set(quant.MXFP8, &blockFP8)
	case "fp8":
		if c.ScaleType == "ue8m0" && slices.Equal(c.Block, []int{32, 32}) {
			return set(quant.MXFP8, &blockFP8)
		}
		if len(c.Block) == 0 {
			return q, `"fp8" with a scale per tensor`
		}
		if c.ScaleType == "" {
			return q, fmt.Sprintf(`"fp8" with blocks of %v`, c.Block)
		}
		return q, fmt.Sprintf(`"fp8" with blocks of %v and scales of type %q`, c.Block, c.ScaleType)
	case "compressed-tensors":
		switch c.Format {
		case "pack-quantized":
			return set(quant.Affine, &packedInts)
		case "mxfp4-pack-quantized":
			return set(quant.MXFP4, &packedMXFP4)
		case "nvfp4-pack-quantized":
			return set(quant.NVFP4, &packedNVFP4)
		}
		return q, fmt.Sprintf(`"compressed-tensors" in format %q`, c.Format)
	case "modelopt":
		if c.Algorithm == "NVFP4" {
			return set(quant.NVFP4, &modelopt)
		}
		return q, fmt.Sprintf(`"modelopt" with algorithm %q`, c.Algorithm)
	case "awq", "gptq":
		if c.Bits != 0 && c.Bits != 4 {
			return q, fmt.Sprintf("%s with %d bits", regular.Quote(c.Method), c.Bits)
		}
		switch {
		case c.Method == "awq":
			return set(quant.Affine, &awq)
		case c.Checkpoint == "gptq_v2":
			return set(quant.Affine, &gptq2)
		}
		return set(quant.Affine, &gptq)
	}
	return q, regular.Quote(c.Method)
}
