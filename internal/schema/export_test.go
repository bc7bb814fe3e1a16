package schema

import (
	"maps"
	"sync"
	"testing"
)

// OnRead counts how often documents are read until a test ends, by their text.
func OnRead(t *testing.T) (counts func() map[string]int) {
	var mu sync.Mutex
	read := map[string]int{}
	onRead = func(d *Document) {
		mu.Lock()
		defer mu.Unlock()
		read[string(d.Raw)]++
	}
	t.Cleanup(func() { onRead = nil })
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(read)
	}
}
