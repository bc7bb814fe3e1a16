package sample

import "slices"

// Number is a parameter of a processor, by its place in Params.Numbers. The processor's file has it; 0 is off.
type Number int

var numbers []string // by Number: what requests call it

func number(name string) Number {
	numbers = append(numbers, name)
	return Number(len(numbers) - 1)
}

// Set gives the parameter that requests call name a value. It reports false where there is none.
func (p *Params) Set(name string, x float64) bool {
	switch name {
	case "temperature":
		p.Temperature = float32(x)
	case "top_p":
		p.TopP = float32(x)
	case "min_p":
		p.MinP = float32(x)
	case "top_k":
		p.TopK = max(int(x), 0)
	default:
		n := slices.Index(numbers, name)
		if n < 0 {
			return false
		}
		p.Numbers[n] = float32(x)
	}
	return true
}

// processor changes logits or drops candidates, for the sequences that ask for it: edit or filter is set.
type processor struct {
	place  int                // order among edits, or among filters; no two of a kind have the same
	on     func(*Params) bool // whether a sequence asks for it
	counts bool               // it needs Sampler.counts
	edit   func(s *Sampler, logits []float32)
	filter func(s *Sampler, w *Work)
	due    func(*Sampler) bool // whether a filter acts on the next token; nil: it always does
}

var processors []*processor // by place

// add is called for a variable of the processor's file.
func add(pr processor) *processor {
	processors = append(processors, &pr)
	slices.SortFunc(processors, func(a, b *processor) int { return a.place - b.place })
	return &pr
}
