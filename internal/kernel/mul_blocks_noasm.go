//go:build !amd64 || purego

package kernel

const blockPanels = 1

func (m *Matrix) blocked(Precision, int) int { return 0 }

func (m *Matrix) blocks([]float32, int, *Acts, int, int, int, int) {}
