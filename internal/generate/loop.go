package generate

// Loop says when a reply goes round in circles: its last tokens are MinCount times the same run of MinSize to MaxSize
// tokens. The zero value finds none. The fields are those of generation_config.json's repetition_detection, which is
// vLLM's name for it.
type Loop struct {
	MinSize, MaxSize, MinCount int
}

// found looks at the tokens of a reply so far.
func (l Loop) found(ids []int32) bool {
	if l.MinCount < 2 {
		return false
	}
	for size := max(l.MinSize, 1); size <= l.MaxSize && size*l.MinCount <= len(ids); size++ {
		if periodic(ids[len(ids)-size*l.MinCount:], size) {
			return true
		}
	}
	return false
}

func periodic(ids []int32, size int) bool {
	for i := len(ids) - 1; i >= size; i-- { // from the end, where a token that breaks the run shows first
		if ids[i] != ids[i-size] {
			return false
		}
	}
	return true
}
