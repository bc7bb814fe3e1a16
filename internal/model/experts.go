package model

import "fmt"

// checkExperts refuses numbers of experts that no model has. key and pick are what config.json calls all of them and those
// that a token uses.
func checkExperts(key string, n int, pick string, k int) error {
	switch {
	case n <= 0 || n > maxExperts:
		return fmt.Errorf("%s %d is missing or out of range", key, n)
	case k <= 0 || k > n:
		return fmt.Errorf("%s %d is missing or more than the %d experts", pick, k, n)
	}
	return nil
}

const maxExperts = 4096
