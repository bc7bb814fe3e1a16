//go:build (!amd64 && !arm64) || purego

package cpu

//go:noinline
func pause() {}
