//go:build (amd64 || arm64) && !purego

package kernel

// keyBlock is how many numbers of a key tile go past the queries at a time: half of the nearest cache, or less.
const keyBlock = 4096

// portion tells how many of n queries the next call takes, groups of so many rows: never a lone row if that can be helped.
func portion(n, most int) (rows, groups int) {
	if n <= most {
		return n, 1
	}
	rows, groups = most, n/most
	if left := n % most; left > 0 && 2*left <= most {
		groups--
	}
	if groups == 0 {
		rows = (n + 1) / 2
		groups = n / rows
	}
	return rows, groups
}

// span is how many numbers of a row are alike: all, or those under one scale.
func (r *Rows) span() int {
	if r.Type.Quantised() {
		return r.Group
	}
	return r.Width
}

// tail is where in a row of codes the scales begin.
func (r *Rows) tail() int {
	if r.Type.Quantised() {
		return r.codeBytes()
	}
	return 0
}

// mulTile picks the routine for at most n rows and tells how many it takes: as even a share as the tallest tile allows.
func mulTile(f Format, p Precision, n int) (routine, int) {
	if mulSet < 0 {
		return 0, n
	}
	k := productKind(f, p)
	tiles := (n + mulMost[mulSet][k] - 1) / mulMost[mulSet][k]
	n = (n + tiles - 1) / tiles
	return mulBase[mulSet][k] + routine(n), n
}
