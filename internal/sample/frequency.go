package sample

// frequency subtracts the penalty for every occurrence of a token generated so far.
func frequency(logits []float32, counts map[int32]int32, penalty float32) {
	if penalty == 0 {
		return
	}
	for id, n := range counts {
		if int(id) < len(logits) {
			logits[id] -= penalty * float32(n)
		}
	}
}
