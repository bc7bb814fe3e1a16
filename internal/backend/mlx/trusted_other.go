//go:build !unix

package mlx

// trusted: owners are not looked at where there is no MLX.
func trusted(string) bool { return false }
