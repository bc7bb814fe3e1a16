package convert

import (
	"context"
	"encoding/json"
	"fmt"

	"hearth/internal/backend"
	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/safetensors"
)

// RandomOptions say what Random writes.
type RandomOptions struct {
	Config []byte // config.json; its quantization keys say what is quantised
	Seed   uint64
	Shard  int64 // most bytes of tensors in a file, unless one weight has more; 0: 5 GiB
	// Progress is told how many bytes of tensors are written, of how many; nil: nobody is.
	Progress func(done, total int64)
}

// Random writes the folder dst, which must not exist or be empty: a model of the sizes in its config whose weights are the
// numbers of model.Synthetic, with a tokenizer that fills its vocabulary, so that it loads and answers like a published one.
// One weight at a time is in memory, and all are made twice: the header of a file comes before its tensors. As with Quantize,
// there is nothing under the name dst until everything is written.
func Random(ctx context.Context, dst string, o RandomOptions) (*Report, error) {
	to, err := create(dst)
	if err != nil {
		return nil, fmt.Errorf("write a random model: %w", err)
	}
	defer to.abandon()
	r, err := o.write(ctx, to)
	if err == nil {
		err = to.commit()
	}
	if err != nil {
		return nil, fmt.Errorf("write a random model: %w", err)
	}
	return r, nil
}

func (o *RandomOptions) write(ctx context.Context, to *folder) (*Report, error) {
	if o.Shard <= 0 {
		o.Shard = mostShard
	}
	w := &randomWriter{ctx: ctx, to: to, most: o.Shard, progress: o.Progress}
	m, err := o.pass(w)
	if err != nil {
		return nil, err
	}
	w.writing = true
	_, err = o.pass(w)
	if err := w.end(err); err != nil {
		return nil, err
	}
	ix := index{Files: w.files}
	ix.Meta.Bytes, ix.Meta.Parameters = w.total, m.Params
	if err := to.json(map[string]any{"config.json": json.RawMessage(o.Config), "model.safetensors.index.json": ix}); err != nil {
		return nil, err
	}
	return &Report{Modules: w.modules, Quantised: w.quantised, Parameters: m.Params, Bytes: w.total}, writeText(to, m.Vocab)
}

// pass makes every weight once.
func (o *RandomOptions) pass(w *randomWriter) (*model.Loaded, error) {
	m, err := model.Synthetic{Config: o.Config, Seed: o.Seed, Type: quant.BF16}.Load(backend.Visitor(w.weight), backend.Options{})
	if err != nil {
		return nil, err
	}
	return m, m.Close()
}

// randomWriter writes the weights it is shown, or in a first pass only divides them among files.
type randomWriter struct {
	ctx      context.Context
	to       *folder
	most     int64
	progress func(done, total int64)

	shards             [][]safetensors.Tensor // without bytes
	size               int64                  // of the last shard
	total, done        int64
	modules, quantised int
	files              map[string]string // tensor -> file

	writing bool
	shard   int // being written
	left    int // of its tensors
	out     *output
	tensors *safetensors.Writer
}

func (w *randomWriter) weight(s backend.WeightSpec) (backend.Weight, error) {
	for i := range s.Parts {
		p := &s.Parts[i]
		if s.Use == backend.UseConv { // one input for every column
			t := *p.Weight
			t.Shape = append(t.Shape[:2:2], 1)
			p.Weight = &t
		}
		for _, t := range []*backend.Tensor{p.Weight, p.Scales, p.Biases, p.Global, p.Bias} {
			if t == nil {
				continue
			}
			if err := w.ctx.Err(); err != nil {
				return nil, err
			}
			if !w.writing {
				w.note(t)
			} else if err := w.put(t); err != nil {
				return nil, err
			}
		}
		if !w.writing && s.Use != backend.UseVector && s.Use != backend.UseConv {
			w.modules++
			if !p.Scheme.None() {
				w.quantised++
			}
		}
	}
	return nil, nil
}

// note gives a tensor its place in a file.
func (w *randomWriter) note(t *backend.Tensor) {
	n := int64(len(t.Bytes))
	if len(w.shards) == 0 || w.size+n > w.most {
		w.shards, w.size = append(w.shards, nil), 0
	}
	last := &w.shards[len(w.shards)-1]
	*last = append(*last, safetensors.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape})
	w.size += n
	w.total += n
}

// put writes a tensor, which is the next one noted.
func (w *randomWriter) put(t *backend.Tensor) error {
	if w.left == 0 {
		if err := w.next(); err != nil {
			return err
		}
	}
	if _, err := w.tensors.Write(t.Bytes); err != nil {
		return err
	}
	w.left--
	w.done += int64(len(t.Bytes))
	if w.progress != nil {
		w.progress(w.done, w.total)
	}
	return nil
}

// next ends a file and starts the one after it.
func (w *randomWriter) next() error {
	if w.out != nil {
		if err := w.end(nil); err != nil {
			return err
		}
		w.shard++
	}
	name, tensors := shardName(w.shard, len(w.shards)), w.shards[w.shard]
	if w.files == nil {
		w.files = map[string]string{}
	}
	for _, t := range tensors {
		w.files[t.Name] = name
	}
	w.left = len(tensors)
	var err error
	if w.out, err = w.to.open(name); err != nil {
		return err
	}
	w.tensors, err = safetensors.NewWriter(w.out, tensors, map[string]string{"format": "mlx"})
	return err
}

// end closes the file that is being written, if any, after err.
func (w *randomWriter) end(err error) error {
	if w.out == nil {
		return err
	}
	if err == nil && w.tensors != nil {
		err = w.tensors.Close()
	}
	err = w.out.close(err)
	w.out, w.tensors = nil, nil
	return err
}
