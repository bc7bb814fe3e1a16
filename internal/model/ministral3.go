package model

import (
	"encoding/json"
	"fmt"

	"hearth/internal/nn"
)

func init() {
	register("ministral3", newMinistral3)
	register("mistral3", newMistral3)
}

type ministral3Args struct {
	common
	windows
}

// newMinistral3 is llama whose queries grow with the logarithm of their position, once that is past the context the model
// was first trained on.
func newMinistral3(cfg []byte, b *Build) (Generator, error) {
	a, err := parse[ministral3Args](cfg)
	if err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	p := a.Parameters
	a.Theta = 0 // the base in rope_parameters is the one that counts
	rope, err := nn.NewRope(a.HeadDim, a.rope(10000))
	if err != nil {
		return nil, err
	}
	queries := *rope
	queries.QBeta, queries.QOrig = float32(p.Beta), int(p.Orig)
	return newDecoder(&a.common, b, func(i int) decoderLayer {
		t := gqa(b, &a.common, i, a.window(i), rope)
		t.QRope = &queries
		return preNorm(&a.common, b, t)
	}), nil
}

// growth checks what makes queries grow.
func (c *common) growth() error {
	switch p := c.Parameters; {
	case p == nil:
		return fmt.Errorf("rope_parameters is missing")
	case !(p.Orig >= 1 && p.Orig <= maxSize):
		return fmt.Errorf("rope_parameters: original_max_position_embeddings %g is missing or out of range", float64(p.Orig))
	case !(p.Beta >= 0 && p.Beta <= 100):
		return fmt.Errorf("rope_parameters: llama_4_scaling_beta %g is out of range", float64(p.Beta))
	}
	return nil
}

func (a *ministral3Args) check() error {
	if err := a.growth(); err != nil {
		return err
	}
	if err := a.common.check(); err != nil {
		return err
	}
	return a.checkWindows(a.Layers)
}

// newMistral3 is the language model of a model of text and images: ministral3, mistral4 or llama, with a head of its own unless the
// config says otherwise.
func newMistral3(cfg []byte, b *Build) (Generator, error) {
	text, err := textConfig(cfg)
	if err != nil {
		return nil, err
	}
	var head struct {
		Type string `json:"model_type"`
		Tied *bool  `json:"tie_word_embeddings"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, tidyJSON(err)
	}
	mk := newLlama // also for types that nobody knows, as in mlx-lm
	switch head.Type {
	case "ministral3":
		mk = newMinistral3
	case "mistral4":
		mk = newMistral4
	}
	g, err := mk(text, b)
	if err != nil {
		return nil, err
	}
	m := g.(*decoder)
	m.nested = true
	if head.Tied == nil {
		m.Head.Tied = nn.TieNever
	}
	return m, nil
}
