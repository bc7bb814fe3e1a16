//go:build arm64 && !purego

package kernel

// outlierTile is how many rows share a list of quads: the routine takes one.
func outlierTile() int { return 1 }

// outlierAsm runs the routine for a row and tells that it took one.
func outlierAsm(a *outlierArgs, _ int) int {
	if !useNEON {
		return 0
	}
	mulOutliersNEON(a)
	return 1
}

//go:noescape
func mulOutliersNEON(a *outlierArgs)
