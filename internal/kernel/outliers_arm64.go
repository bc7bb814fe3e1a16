//go:build arm64 && !purego

package kernel

// outlierTile is how many rows share a list of quads: every row has its own.
func outlierTile() int { return 1 }

func splitAsm(*splitArgs) bool { return false }
