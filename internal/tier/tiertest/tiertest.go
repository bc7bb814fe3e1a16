// Package tiertest helps tests of the tier and of who uses it.
package tiertest

import "sync"

// Notes collects what a tier has to say. Its zero value is ready.
type Notes struct {
	mu    sync.Mutex
	lines []string
}

// Add is a tier.Options.Warn.
func (n *Notes) Add(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, line)
}

// Take gives and forgets the lines so far.
func (n *Notes) Take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	lines := n.lines
	n.lines = nil
	return lines
}
