package bench

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/kernel"
	"hearth/internal/model"
	"hearth/internal/quant"
)

// seeing2B has the tower of Qwen3-VL-2B.
const seeing2B = `{"model_type":"qwen3_vl","text_config":{"hidden_size":2048},"vision_config":{"depth":24,"hidden_size":1024,"intermediate_size":4096,
"num_heads":16,"patch_size":16,"spatial_merge_size":2,"temporal_patch_size":2,"out_hidden_size":2048,"num_position_embeddings":2304,
"deepstack_visual_indexes":[5,11,17],"hidden_act":"gelu_pytorch_tanh"}}`

// BenchmarkTower is what a tower takes for an image, and what share that is of what the processor's multiplications allow,
// measured before and after. Run it with -benchtime 1x and up.
func BenchmarkTower(b *testing.B) {
	for _, side := range []int{32, 64} { // of the image, in patches
		b.Run(fmt.Sprintf("%d", side*side), func(b *testing.B) { benchTower(b, side) })
	}
}

func benchTower(b *testing.B, side int) {
	tower, err := model.Synthetic{Config: []byte(seeing2B), Seed: 1, Type: quant.BF16}.Tower()
	if err != nil {
		b.Fatal(err)
	}
	be := cpu.New()
	if err := tower.Load(be, backend.Options{Threads: 2}); err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := tower.Close(); err != nil {
			b.Error(err)
		}
	}()
	img := &model.Image{Grid: [3]int{1, side, side}, Patches: make([]float32, side*side*tower.Patch)}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range img.Patches {
		img.Patches[i] = float32(r.NormFloat64())
	}
	probe := kernel.NewProbe(256 << 20)
	defer probe.Close()
	look := func() limits {
		return limits{probe.Read(be.Spread), probe.Int8(be.Spread), probe.Float(be.Spread), probe.Half(be.Spread)}
	}
	l, work, n := look(), be.Work(), 0
	for b.Loop() {
		f, err := tower.Encode(be, img)
		if err != nil {
			b.Fatal(err)
		}
		f.Free(be)
		n++
	}
	took, after := b.Elapsed().Seconds()/float64(n), be.Work()
	l = l.over(look())
	each := int64(n)
	work = cpu.Work{Read: (after.Read - work.Read) / each, Fast: (after.Fast - work.Fast) / each, Half: (after.Half - work.Half) / each,
		Floats: (after.Floats - work.Floats) / each, Attend: (after.Attend - work.Attend) / each}
	b.Logf("limits %+v, work %+v", l, work)
	b.ReportMetric(float64(side*side)/took, "patches/s")
	b.ReportMetric(100*l.seconds(work, 0, inFloat)/took, "%limit")
}
