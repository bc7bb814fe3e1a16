//go:build arm64 && !purego

package kernel

// outlierTile is how many rows share a list of quads: every row has its own.
func outlierTile() int { return 1 }

// splitAsm runs the routine, if there is one.
func splitAsm(a *splitArgs) bool {
	switch {
	case !useNEON:
		return false
	case a.group == 32:
		split32NEON(a)
	case a.group == 64:
		split64NEON(a)
	case a.group == 128:
		split128NEON(a)
	default:
		return false
	}
	return true
}

//go:noescape
func split32NEON(a *splitArgs)

//go:noescape
func split64NEON(a *splitArgs)

//go:noescape
func split128NEON(a *splitArgs)
