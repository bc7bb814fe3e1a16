package sample

// uniform gives a number in [0, 1) that depends on the seed and the token's index alone: position index of the
// SplitMix64 stream (Steele et al. 2014) that starts at the mixed seed.
func uniform(seed, index uint64) float64 {
	const gamma = 0x9e3779b97f4a7c15
	return float64(mix(mix(seed+gamma)+(index+1)*gamma)>>11) / (1 << 53)
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
