package config

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"hearth/internal/regular"
)

// Env looks up an environment variable. An empty value counts as not set.
type Env func(name string) (string, bool)

// Environ is the process's environment.
func Environ(name string) (string, bool) { return os.LookupEnv(name) }

// Environment is all of it, as Strays takes it.
func Environment() []string { return os.Environ() }

// Register adds the flags of the groups to fs; parsing them fills c.
func (c *Config) Register(fs *pflag.FlagSet, groups ...Group) {
	c.register(fs, func(k *Knob) bool { return slices.Contains(groups, k.Group) })
}

// RegisterOnly is Register for single flags.
func (c *Config) RegisterOnly(fs *pflag.FlagSet, flags ...string) {
	c.register(fs, func(k *Knob) bool { return slices.Contains(flags, k.Flag) })
}

func (c *Config) register(fs *pflag.FlagSet, wanted func(*Knob) bool) {
	also := map[string]string{}
	for i := range Knobs {
		k := &Knobs[i]
		if !wanted(k) {
			continue
		}
		v := k.bind(c)
		f := fs.VarPF(v, k.Flag, "", k.Doc)
		if v.Type() == "bool" {
			f.NoOptDefVal = "true"
		}
		if zero(f.DefValue) {
			f.DefValue = ""
		}
		for _, name := range k.Also {
			also[name] = k.Flag
		}
	}
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		name = strings.ReplaceAll(name, "_", "-")
		if own, ok := also[name]; ok {
			name = own
		}
		return pflag.NormalizedName(name)
	})
}

// zero reports defaults that say nothing in help: the documentation line tells what they mean.
func zero(def string) bool { return def == "0" || def == "false" }

// Load completes c after fs was parsed: registered knobs that the command line left alone are read from the environment, and
// what that does not have from the settings file; of each of the three, a knob's own names come before flags of other servers,
// and of such a flag the strongest source decides, also that it is off. warn gets one line for each value that was ignored.
func (c *Config) Load(fs *pflag.FlagSet, env Env, warn func(string)) error {
	file, err := c.readFile(fs, env, warn)
	if err != nil {
		return err
	}
	foreign, err := foreignEnv(fs, env, warn)
	if err != nil {
		return err
	}
	typed, exported := forKnobs(c.foreign), forKnobs(c.add(foreign))
	for i := range Knobs {
		k := &Knobs[i]
		f := fs.Lookup(k.Flag)
		if f == nil {
			continue
		}
		if f.Changed {
			c.origin[k.Flag] = "--" + k.Flag
		} else if err := c.fromForeign(k, typed); err != nil {
			return err
		}
		if c.origin[k.Flag] != "" {
			continue
		}
		if err := c.fromEnv(k, env, warn); err != nil {
			return err
		}
		if c.origin[k.Flag] != "" {
			continue
		}
		if err := c.fromForeign(k, exported); err != nil {
			return err
		}
	}
	if file != nil {
		if err := c.fromFile(file, fs); err != nil {
			return err
		}
	}
	c.user = home(env)
	c.expandPaths()
	c.HubCache = c.hubCache(env)
	c.aliasFile = findAliasFile(env)
	c.hubTokenFile = c.findHubToken(env)
	if fs.Lookup("api-key-file") != nil {
		if err := c.readKeys(env); err != nil {
			return err
		}
	}
	if c.Private {
		c.keepPrivate()
	}
	if fs.Lookup("prefix-cache-dir") != nil {
		c.prefixFolder = c.findPrefixFolder(env)
	}
	if fs.Lookup("store-dir") != nil {
		c.storeFolder, c.archiveFolder = c.findStoreFolders(env)
	}
	return nil
}

// fromEnv sets k from the strongest of its names that is set.
func (c *Config) fromEnv(k *Knob, env Env, warn func(string)) error {
	for _, name := range k.variables() {
		s, ok := env(name)
		if !ok || s == "" {
			continue
		}
		if !strings.HasPrefix(name, ownPrefix) {
			err := k.bind(Default()).Set(s)
			if err == nil && k.shared != nil {
				err = k.shared(s)
			}
			if err != nil {
				warn(fmt.Sprintf("ignoring %s=%s: %v", name, regular.Quote(s), err))
				continue
			}
		}
		if err := k.bind(c).Set(s); err != nil {
			return fmt.Errorf("environment variable %s=%s: %w", name, regular.Quote(s), err)
		}
		c.origin[k.Flag] = name
		return nil
	}
	return nil
}

// fromForeign sets k to what foreign flags say of it, if they do.
func (c *Config) fromForeign(k *Knob, said map[string]given) error {
	g, ok := said[k.Flag]
	if !ok {
		return nil
	}
	if err := k.bind(c).Set(g.value); err != nil {
		return fmt.Errorf("%s: %s for %s: %w", g.from, regular.Quote(g.value), k.Flag, err)
	}
	c.origin[k.Flag] = g.from
	return nil
}

// add keeps, and returns, what a weaker level says of foreign flags that the stronger ones do not speak of.
func (c *Config) add(level map[string]given) map[string]given {
	fresh := map[string]given{}
	for name, g := range level {
		if _, ok := c.foreign[name]; !ok {
			c.foreign[name], fresh[name] = g, g
		}
	}
	return fresh
}

// SetModel is for a model that is an argument of the command.
func (c *Config) SetModel(name string) {
	if from := c.origin["model"]; c.source(from) == FromFlag && c.Model != expand(name, c.user) {
		c.overruled = append(c.overruled, fmt.Sprintf("MODEL, which is %s, comes before %s %s", name, from, c.Model))
	}
	c.Model, c.origin["model"] = expand(name, c.user), string(FromArgument)
}

// expandPaths replaces a leading ~ where no shell has done so: in values of variables and of the file, and after an = sign.
func (c *Config) expandPaths() {
	for _, p := range []*string{&c.Model, &c.AdapterPath, &c.SmallModel, &c.EmbeddingModel, &c.RerankModel, &c.MLXLib, &c.Script, &c.DebugRequestDir, &c.ChatTemplate, &c.APIKeyFile, &c.MCPConfig, &c.TLSCert, &c.TLSKey} {
		*p = expand(*p, c.user)
	}
	for i, dir := range c.ModelsDir {
		c.ModelsDir[i] = expand(dir, c.user)
	}
}

// fromFile sets what the file has of the registered knobs, and neither flags nor environment.
func (c *Config) fromFile(f *file, fs *pflag.FlagSet) error {
	c.file, c.sections = f.path, f.sections
	for i := range f.settings {
		s := &f.settings[i]
		if fs.Lookup(s.knob.Flag) == nil || c.origin[s.knob.Flag] != "" {
			continue
		}
		if err := s.set(c); err != nil {
			return fmt.Errorf("settings file %s: %s: %w", s.where, s.knob.Flag, err)
		}
		c.origin[s.knob.Flag] = s.where
	}
	said := forKnobs(c.add(f.foreign))
	for i := range Knobs {
		k := &Knobs[i]
		if fs.Lookup(k.Flag) == nil || c.origin[k.Flag] != "" {
			continue
		}
		if err := c.fromForeign(k, said); err != nil {
			return fmt.Errorf("settings file %w", err)
		}
	}
	return nil
}

// lookupTimeout bounds the name lookup of HOST: a resolver that is out of reach must not hold up the start.
const lookupTimeout = 200 * time.Millisecond

// checkHost accepts what could be listened on. Some shells export the compiler's target triple as HOST, which is a valid
// host name as far as its letters go, and some resolvers answer every name; so a name must lead to an address of this
// machine.
func checkHost(s string) error {
	if _, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return nil
	}
	if strings.ContainsAny(s, "_/: \t") {
		return fmt.Errorf("no address and no host name")
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", s)
	if err != nil {
		return fmt.Errorf("no address and no name that resolves")
	}
	own := OwnAddresses()
	for _, a := range found {
		if a = a.Unmap(); a.IsLoopback() || a.IsUnspecified() || slices.Contains(own, a) {
			return nil
		}
	}
	return fmt.Errorf("no address of this machine")
}

// OwnAddresses are those of this machine's interfaces, none where the system does not say.
func OwnAddresses() []netip.Addr {
	as, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var out []netip.Addr
	for _, a := range as {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Addr().Unmap())
		}
	}
	return out
}
