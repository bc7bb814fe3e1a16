package mlx

import "hearth/internal/backend/mlx/dl"

// system opens libraries through the system's loader.
func system(path string) (Library, error) {
	l, err := dl.Open(path)
	if err != nil {
		return nil, err
	}
	return l, nil
}
