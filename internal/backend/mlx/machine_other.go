//go:build !darwin

package mlx

// machine: there is no Metal here.
func machine() (limit, total int64) { return 0, 0 }
