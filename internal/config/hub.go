package config

import (
	"path/filepath"
	"strings"

	"hearth/internal/regular"
)

// maxToken bounds the file of a token.
const maxToken = 64 << 10

// HubToken is the token for the hub: that of --hf-token and the variables, else that of the file that Hugging Face's own
// commands keep it in; "" if there is none.
func (c *Config) HubToken() string {
	if c.HFToken != "" || c.hubTokenFile == "" {
		return c.HFToken
	}
	b, err := regular.Read(c.hubTokenFile, maxToken)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// findHubToken is the file of a token: HF_TOKEN_PATH, or token in the folder of Hugging Face clients.
func (c *Config) findHubToken(env Env) string {
	user := home(env)
	if file, _ := env("HF_TOKEN_PATH"); file != "" {
		return expand(file, user)
	}
	if dir := c.hfHome(env, user); dir != "" {
		return filepath.Join(dir, "token")
	}
	return ""
}
