package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// FuzzFlags: a flag takes a text or refuses it in few words; what a knob has taken is printed so that it is taken again and means
// the same (but for keys, which are not shown), and what a variable of the environment says is what the flag would say.
func FuzzFlags(f *testing.F) {
	c := Default()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	c.Register(fs, Groups...)
	c.RegisterForeign(fs)
	var names []string
	fs.VisitAll(func(flag *pflag.Flag) {
		f.Add(len(names), flag.DefValue)
		names = append(names, flag.Name)
	})
	for i, s := range []string{"512MB", "2GiB", "1e300", "NaN", "-1", "30s", "1h2m", "loopback, unix,10.0.0.1/8,::ffff:1.2.3.4/120", "[::1]:80", `{"a":1,"a":2}`, "\xff", "0x10", "1_000", "a,b,,c", "+5", "q8", "none"} {
		f.Add(i*7, s)
	}
	f.Fuzz(func(t *testing.T, at int, s string) {
		name := names[uint(at)%uint(len(names))]
		set := func(s string) (string, error) {
			c := Default()
			fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
			c.Register(fs, Groups...)
			c.RegisterForeign(fs)
			err := fs.Set(name, s)
			return fs.Lookup(name).Value.String(), err
		}
		got, err := set(s)
		if err != nil {
			if said := strings.ReplaceAll(err.Error(), fmt.Sprintf("%q", s), ""); len(said) > 1000+len(s) {
				t.Errorf("--%s %q: an error of %d bytes", name, s, len(said))
			}
			return
		}
		again, err := set(got)
		if got != "" && !strings.HasPrefix(name, "api-key") && (err != nil || again != got) {
			t.Errorf("--%s %q is %q, which is %q, %v", name, s, got, again, err)
		}
		if strings.ContainsRune(s, 0) || s == "" || name == "config" || name == "api-key-file" {
			return // no variable can say that, or what is on this machine is read
		}
		own := variable(name)
		var warned []string
		c := Default()
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		c.Register(fs, Groups...)
		c.RegisterForeign(fs)
		if err := c.Load(fs, func(k string) (string, bool) { return s, k == own }, func(s string) { warned = append(warned, s) }); err == nil {
			if v := fs.Lookup(name).Value.String(); v != got && !strings.HasPrefix(s, "~") {
				t.Errorf("%s=%q is %q, the flag is %q; %q", own, s, v, got, warned)
			}
			c.Replies()
		}
	})
}
