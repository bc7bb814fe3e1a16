package config

import (
	"cmp"
	"strconv"
)

// largeMemory is from how many bytes of a machine's memory on MLX's own settings are changed: they were measured there.
const largeMemory = 64 << 30

// MLXEnviron is what the process of a model has in its environment for MLX, which reads it when its library is opened, on a
// machine of so many bytes of memory: "NAME=value" each.
func (c *Config) MLXEnviron(memory int64) (env []string) {
	large := memory >= largeMemory
	fast, mb, ops := large, 0, 0
	if large {
		mb, ops = 512, 100
	}
	if c.MLXFastSynch != nil {
		fast = *c.MLXFastSynch
	}
	if fast || c.MLXFastSynch != nil {
		n := 0
		if fast {
			n = 1
		}
		env = append(env, "MLX_METAL_FAST_SYNCH="+strconv.Itoa(n))
	}
	if mb = cmp.Or(c.MLXBufferMB, mb); mb > 0 {
		env = append(env, "MLX_MAX_MB_PER_BUFFER="+strconv.Itoa(mb))
	}
	if ops = cmp.Or(c.MLXBufferOps, ops); ops > 0 {
		env = append(env, "MLX_MAX_OPS_PER_BUFFER="+strconv.Itoa(ops))
	}
	return env
}
