package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"hearth/internal/backend"
	"hearth/internal/kv"
	"hearth/internal/model"
	"hearth/internal/sched"
)

// Image is a picture in a prompt: what the tower makes of it takes the places of Tower.Rows tokens from index At on. Those tokens
// are the model's placeholder.
type Image struct {
	model.Image // not copied: it must not change
	// Open, if Patches are nil, gets them when the tower is to run: what is cached needs none. It may take long, and must end
	// with ctx; it is called on a goroutine of its own, and again if the tower has to run again. Its error ends the sequence.
	Open   func(ctx context.Context) (Patches, error)
	Each   int      // numbers of a patch, where Open gets them
	At     int      // at least 1: a prompt begins with text
	Digest [32]byte // of the prepared picture; two with the same digest are one picture
}

// Patches gives the numbers of patches [from, to) of an image, one patch behind the other. It makes them, or has them: they are
// not to be written to. It is called from the loop, and must do nothing else.
type Patches func(from, to int) []float32

// Opened is Open, or gives the patches that are there.
func (img *Image) Opened(ctx context.Context) (Patches, error) {
	if img.Patches == nil && img.Open != nil {
		return img.Open(ctx)
	}
	each := img.EachPatch()
	return func(from, to int) []float32 { return img.Patches[from*each : to*each] }, nil
}

// EachPatch is how many numbers a patch has.
func (img *Image) EachPatch() int {
	if img.Patches == nil {
		return img.Each
	}
	return len(img.Patches) / max(img.patches(), 1)
}

// patches is how many they are.
func (img *Image) patches() int { return img.Grid[0] * img.Grid[1] * img.Grid[2] }

// numbers is how many numbers the patches have.
func (img *Image) numbers() int {
	if img.Patches == nil && img.Open != nil {
		return img.patches() * img.Each
	}
	return len(img.Patches)
}

// ImageError refuses a prompt for one of its images.
type ImageError struct {
	Image int // which, from 0
	Err   error
}

func (e *ImageError) Error() string { return fmt.Sprintf("image %d: %v", e.Image+1, e.Err) }
func (e *ImageError) Unwrap() error { return e.Err }

// placed is an image in a sequence.
type placed struct {
	*Image
	rows  int
	line  int   // see model.Tower.Line
	from  int32 // where it is on the axes of positions, and what follows it
	after int32
}

// place finds out where images are among so many tokens, or what is wrong with one. A step runs chunk tokens.
func place(tower *model.Tower, images []Image, tokens, chunk int) ([]placed, error) {
	var all []placed
	end, shift := 1, 0
	for i := range images {
		img := &images[i]
		bad := func(format string, args ...any) ([]placed, error) {
			return nil, &ImageError{Image: i, Err: fmt.Errorf(format, args...)}
		}
		if tower == nil {
			return bad("the model cannot see")
		}
		if err := tower.Check(img.Grid, img.numbers()); err != nil {
			return nil, &ImageError{Image: i, Err: err}
		}
		n := tower.Rows(img.Grid)
		if img.At < end || n > tokens-img.At {
			return bad("%d tokens from index %d on are not between index %d and the %d tokens of the prompt", n, img.At, end, tokens)
		}
		if tower.Together && n > chunk {
			return bad("its %d tokens run in one step, which runs %d at most", n, chunk)
		}
		p := placed{Image: img, rows: n, line: tower.Line(img.Grid), from: int32(img.At + shift)}
		p.after = p.from + int32(tower.Extent(img.Grid))
		end = img.At + n
		shift = int(p.after) - end
		all = append(all, p)
	}
	return all, nil
}

// position is where the token at an index is on the axes of positions.
func (q *sequence) position(tower *model.Tower, index int) [3]int32 {
	pos := int32(index)
	for i := range q.images {
		p := &q.images[i]
		if index < p.At {
			break
		}
		if index < p.At+p.rows {
			at := tower.At(p.Grid, index-p.At)
			for i := range at {
				at[i] += p.from
			}
			return at
		}
		pos = p.after + int32(index-p.At-p.rows)
	}
	return [3]int32{pos, pos, pos}
}

// mostNumbers is how many digests have a number at once. One that has lost it gets another, and misses what was stored under the
// first.
const mostNumbers = 1 << 16

// numbers gives digests of images numbers for the keys of the prefix tree. A number is never used for another digest.
type numbers struct {
	mu     sync.Mutex
	of     map[[32]byte]uint32
	digest map[uint32][32]byte
	next   uint32 // 2^31 of them last for years
}

func (n *numbers) number(digest [32]byte) uint32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if id, ok := n.of[digest]; ok {
		return id
	}
	if n.of == nil {
		n.of, n.digest = map[[32]byte]uint32{}, map[uint32][32]byte{}
	}
	id := n.next
	n.next++
	n.of[digest], n.digest[id] = id, digest
	if old, ok := n.digest[id-mostNumbers]; ok {
		delete(n.of, old)
		delete(n.digest, id-mostNumbers)
	}
	return id
}

// known is the digest of a number.
func (n *numbers) known(id uint32) ([32]byte, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d, ok := n.digest[id]
	return d, ok
}

// mark puts images into a key.
func (n *numbers) mark(key []kv.Elem, salt *kv.Salt, images []placed) {
	for i := range images {
		p := &images[i]
		id := n.number(p.Digest)
		for row := range p.rows {
			if _, ok := model.Feature(p.line, row); !ok {
				continue // a token of text
			}
			key[p.At+row] = salt.Elem(p.At+row, kv.Media(id, row))
		}
	}
}

// sights are what the tower has made of images, by digest. It belongs to the loop.
type sights struct {
	tower  *model.Tower
	be     backend.Backend
	opts   backend.Options
	limit  int64 // bytes that are kept beyond what sequences still need
	memory *memory
	made   map[[32]byte]*sight
	bytes  int64
	clock  int64
	took   time.Duration // in this step
	openings

	encoded, reused int64
	pace            float64   // nanoseconds a patch took when an image was encoded last
	planned         []*placed // images that the next step encodes
}

// shorten ends a part of a step before an image whose patches are not there yet. Beside decodes, with a target, it also ends it
// before one that would make the tower take longer, with what it encodes in that step anyway; it encodes one, however long that
// takes.
func (s *sights) shorten(q *sequence, end int, target time.Duration) int {
	stop := end
	for i := range q.images {
		p := &q.images[i]
		if p.At >= end || q.Table.Len >= p.At+p.rows {
			continue
		}
		took, there := float64(p.patches())*s.pace, s.made[p.Digest] != nil
		for _, o := range s.planned {
			took += float64(o.patches()) * s.pace
			there = there || o.Digest == p.Digest
		}
		if there {
			continue
		}
		before := min(stop, max(p.At, q.Table.Len))
		if target > 0 && len(s.planned) > 0 && (s.pace == 0 || took > float64(target)) {
			return before
		}
		switch ready, begun := s.open(q, i); {
		case q.unseen != nil: // it ends with that, and encodes nothing that others could count on
			return end
		case !begun:
			return before
		case !ready:
			stop = before // those behind it may be got meanwhile
		case stop == end:
			s.planned = append(s.planned, p)
		}
	}
	return stop
}

type sight struct {
	features model.Features
	bytes    int64
	used     int64 // clock of the last step that needed it
}

// step begins a step.
func (s *sights) step() {
	s.clock++
	s.took = 0
}

// need gives the features of an image, which it makes unless they are there. A panic of the tower is an error of who needs it.
func (s *sights) need(img *Image, seqs map[sched.ID]*sequence) (f *model.Features, err error) {
	if v := s.made[img.Digest]; v != nil {
		if v.used != s.clock {
			s.reused++
		}
		v.used = s.clock
		return &v.features, nil
	}
	defer func(began time.Time) {
		s.took += time.Since(began)
		v := recover()
		if cut := backend.Unreadable(v); cut != nil {
			err = &StepError{Err: cut}
		} else if v != nil {
			err = &StepError{Err: fmt.Errorf("panic: %v", v), Stack: debug.Stack()}
		}
	}(time.Now())
	more := s.tower.FeatureBytes(img.Grid) + s.held
	if kept := s.memory.tower.kept; s.memory.tower.told && s.bytes+more > kept {
		s.trim(seqs, max(min(s.limit, kept-more), 0))
	}
	if err := s.memory.see(s.tower, s.opts, img.Grid, s.bytes+more); err != nil {
		return nil, err
	}
	if err := s.tower.Load(s.be, s.opts); err != nil {
		return nil, fmt.Errorf("load the part that sees: %w", err)
	}
	patches, err := s.patches(img)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	made, err := s.tower.Encode(s.be, patches)
	if err != nil {
		return nil, &StepError{Err: err}
	}
	s.pace = float64(time.Since(began)) / float64(img.patches())
	v := &sight{features: made, bytes: made.Bytes(), used: s.clock}
	if s.made == nil {
		s.made = map[[32]byte]*sight{}
	}
	s.made[img.Digest] = v
	s.bytes += v.bytes
	s.encoded++
	s.drop(img.Digest)
	return &v.features, nil
}

// trim forgets what was not needed for longest, until the rest is within a limit. What running sequences still need stays.
func (s *sights) trim(seqs map[sched.ID]*sequence, limit int64) {
	if s.bytes <= limit {
		return
	}
	needed := map[[32]byte]bool{}
	for _, q := range seqs {
		for i := range q.images {
			if p := &q.images[i]; q.open && q.Table.Len < p.At+p.rows {
				needed[p.Digest] = true
			}
		}
	}
	for s.bytes > limit {
		var oldest [32]byte
		var found *sight
		for d, v := range s.made {
			if !needed[d] && (found == nil || v.used < found.used) {
				oldest, found = d, v
			}
		}
		if found == nil {
			return
		}
		s.forget(oldest, found)
	}
}

func (s *sights) forget(digest [32]byte, v *sight) {
	v.features.Free(s.be)
	s.bytes -= v.bytes
	delete(s.made, digest)
}

// close forgets everything.
func (s *sights) close() {
	for digest := range s.opened {
		s.drop(digest)
	}
	for d, v := range s.made {
		s.forget(d, v)
	}
}

// see makes what the rows of an item need of images, and puts it into the batch, where they begin at row.
func (r *runner) see(q *sequence, start, tokens, row int) error {
	for i := range q.images {
		p := &q.images[i]
		from, to := max(start, p.At), min(start+tokens, p.At+p.rows)
		if from >= to {
			continue
		}
		if q.stream.ctx.Err() != nil || q.stream.Finish() != Running {
			return context.Canceled // a tower's step is long: it is not run for nobody
		}
		if q.unseen != nil {
			return q.unseen
		}
		f, err := r.sights.need(p.Image, r.seqs)
		if err != nil {
			return err
		}
		in := backend.Insert{Features: f.Rows, Deep: f.Deep}
		for at := from; at < to; at++ {
			feature, ok := model.Feature(p.line, at-p.At)
			if !ok {
				continue
			}
			if len(in.Rows) == 0 {
				in.From = feature
			}
			in.Rows = append(in.Rows, int32(row+at-start))
		}
		if len(in.Rows) > 0 {
			r.batch.Media = append(r.batch.Media, in)
		}
	}
	return nil
}

// both lists what of a sequence's images is in [from, to), where their rows see each other.
func (r *runner) both(q *sequence, from, to int) (all []backend.Range) {
	if len(q.images) == 0 || !r.sights.tower.Together {
		return nil
	}
	for i := range q.images {
		p := &q.images[i]
		if a, b := max(from, p.At), min(to, p.At+p.rows); a < b {
			all = append(all, backend.Range{From: a, To: b})
		}
	}
	return all
}
