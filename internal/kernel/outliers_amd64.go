//go:build amd64 && !purego

package kernel

// outlierTile is how many rows share a list of quads: those of the tallest tile.
func outlierTile() int {
	switch {
	case mulSet >= setVNNI:
		return maxTile
	case mulSet == setAVX512:
		return 8
	}
	return tallRows
}

// splitAsm runs the routine, if there is one.
func splitAsm(a *splitArgs) bool {
	if useAVX2 {
		splitAVX2(a)
	}
	return useAVX2
}

//go:noescape
func splitAVX2(a *splitArgs)
