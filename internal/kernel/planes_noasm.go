//go:build (!amd64 && !arm64) || purego

package kernel

func hasPlanes() bool { return false }

func hasSmall() bool { return false }

func hasTall(Format) bool { return false }

func callTall(Format, *wideArgs) {}
