package sample

func addBias(logits []float32, bias map[int32]float32) {
	for id, b := range bias {
		if int(id) < len(logits) && id >= 0 {
			logits[id] += b
		}
	}
}
