package mlx

import "fmt"

// join meets the other ranks over MLX's ring of sockets, and counts them.
func (l *lib) join() error {
	if l.world <= 1 {
		return nil
	}
	start, ok := l.Symbol("mlx_distributed_init")
	if ok {
		l.sum, ok = l.Symbol("mlx_distributed_all_sum")
	}
	if !ok {
		return fmt.Errorf("%s has no functions for several ranks: %s", l.path, install)
	}
	ring := uintptr(l.cText("ring"))
	if l.layout.forceFused {
		*l.res = 0
		l.Call(start, l.out(), flag(true), ring)
		l.ranks = uintptr(*l.res)
	} else {
		l.ranks = l.Call(start, flag(true), ring)
	}
	if err := l.takeErr(); err != nil || l.ranks == 0 {
		return fmt.Errorf("meet the other ranks: %w: set MLX_RANK, and MLX_HOSTFILE to a file that lists their addresses", err)
	}
	ones, want := make([]float32, l.world), make([]float32, l.world)
	ones[l.rank] = 1
	for i := range want {
		want[i] = 1
	}
	err := l.try(&check{"the sum over ranks", func() handle { return l.allSum(upload(l, ones, f32, l.world)) }, want})
	if err != nil {
		return fmt.Errorf("rank %d of %d: %w: every process needs a rank of its own", l.rank, l.world, err)
	}
	return nil
}

// allSum adds the arrays of all ranks.
func (l *lib) allSum(x handle) handle {
	if l.err != nil {
		return 0
	}
	return l.made(l.Call(l.sum, l.result(), uintptr(x), l.ranks, uintptr(l.stream)))
}
