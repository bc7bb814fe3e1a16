package sample

// presence subtracts the penalty once for every token generated so far.
func presence(logits []float32, counts map[int32]int32, penalty float32) {
	if penalty == 0 {
		return
	}
	for id := range counts {
		if int(id) < len(logits) {
			logits[id] -= penalty
		}
	}
}
