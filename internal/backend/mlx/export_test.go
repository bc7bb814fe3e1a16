package mlx

// PeakOf is how many bytes more than before f had at once.
func (b *Backend) PeakOf(f func()) int64 {
	b.flush()
	var before int64
	b.o.wait(func() {
		b.o.Call(b.o.fns[fnResetPeak])
		before = b.o.size(fnActive)
	})
	f()
	b.flush()
	b.o.wait(b.o.gauge)
	return b.Memory().Peak - before
}

func (b *Backend) SetTile(bytes int) { b.tileBytes = bytes }

// Provoke makes an op fail and gives MLX's error.
func (b *Backend) Provoke() (err error) {
	b.flush()
	b.o.wait(func() {
		b.o.reshape(b.o.num(1), 7)
		err = b.o.takeErr()
	})
	return err
}

// LiveNow is Live while an engine that has nothing to do uses the backend.
func (b *Backend) LiveNow() (n int) {
	b.o.wait(func() { n = b.o.live })
	return n
}

// ResetPeak may be called while an engine uses the backend.
func (b *Backend) ResetPeak() { b.o.wait(func() { b.o.Call(b.o.fns[fnResetPeak]) }) }
