//go:build amd64 && !purego

package kernel

// outlierTile is how many rows share a list of quads.
func outlierTile() int {
	if mulSet >= setVNNI {
		return maxTile
	}
	return 4
}

// outlierAsm runs the routine for at most n rows and tells how many it took.
func outlierAsm(a *outlierArgs, n int) int {
	switch {
	case !useAVX2:
		return 0
	case n >= maxTile && mulSet >= setVNNI:
		mulOutliersVNNIx12(a)
		return maxTile
	case n >= 4:
		mulOutliersAVX2x4(a)
		return 4
	}
	mulOutliersAVX2x1(a)
	return 1
}

//go:noescape
func mulOutliersAVX2x1(a *outlierArgs)

//go:noescape
func mulOutliersAVX2x4(a *outlierArgs)

//go:noescape
func mulOutliersVNNIx12(a *outlierArgs)
