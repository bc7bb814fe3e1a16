package config

import (
	"strings"
	"testing"
	"time"
)

// Networks, addresses and names of proxies, and times in seconds, are read as they are meant, and nothing else is.
func TestProxiesAndSeconds(t *testing.T) {
	c, _, err := load(t, nil, "--trusted-proxies=10.1.2.3/8, ::ffff:192.0.2.1,loopback,unix", "--timeout=1.5", "--max-queue-wait=2m")
	if err != nil {
		t.Fatal(err)
	}
	const want = "10.0.0.0/8,192.0.2.1/32,127.0.0.0/8,::1/128,unix"
	if got := proxies(&c.Proxies).String(); got != want || !c.Proxies.Unix {
		t.Errorf("%s, want %s", got, want)
	}
	if c.Timeout != 1500*time.Millisecond || c.QueueWait != 2*time.Minute {
		t.Errorf("%v, %v", c.Timeout, c.QueueWait)
	}
	for arg, want := range map[string]string{
		"--trusted-proxies=10.0.0.0/33":   `"10.0.0.0/33" is no address, network such as`,
		"--trusted-proxies=proxy.example": "is no address",
		"--timeout=-1":                    "want a time such as 30s or 2m, or a number of seconds",
		"--timeout=1e30":                  "want a time such as",
		"--listen=unix:":                  "names no file",
		"--listen=unix:@hearth":           "names no file",
		"--listen=fd:2":                   "want the number of a descriptor from 3",
		"--listen=fd:":                    "want the number of a descriptor from 3",
		"--listen=fd:-4":                  "want the number of a descriptor from 3",
		"--listen=fd:2147483648":          "want the number of a descriptor from 3",
		"--listen=8080":                   "want unix:PATH or ADDRESS:PORT",
		"--listen=127.0.0.1:65536":        "want unix:PATH or ADDRESS:PORT",
		"--listen=127.0.0.1:http":         "want unix:PATH or ADDRESS:PORT",
		"--rate-limit=-1":                 "want a whole number from 0",
	} {
		if _, _, err := load(t, nil, arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", arg, err)
		}
	}
}
