package config

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"hearth/internal/regular"
)

// Proxies are those whose word about the address of who asks counts.
type Proxies struct {
	Networks []netip.Prefix
	Unix     bool // clients of a Unix socket
}

// proxies is a list of networks and addresses, and of names for some.
func proxies(p *Proxies) *value[Proxies] {
	parse := func(s string) (Proxies, error) {
		out := *p
		for _, word := range strings.Split(s, ",") {
			switch word = strings.TrimSpace(word); word {
			case "":
			case "unix":
				out.Unix = true
			case "loopback":
				out.Networks = append(out.Networks, netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))
			default:
				n, err := netip.ParsePrefix(word)
				if a, err2 := netip.ParseAddr(word); err2 == nil {
					n, err = netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), nil
				}
				if err != nil {
					return Proxies{}, fmt.Errorf("%s is no address, network such as 10.0.0.0/8, loopback or unix", regular.Quote(word))
				}
				out.Networks = append(out.Networks, n.Masked())
			}
		}
		return out, nil
	}
	return &value[Proxies]{p, "list", parse, func(p Proxies) string {
		var words []string
		for _, n := range p.Networks {
			words = append(words, n.String())
		}
		if p.Unix {
			words = append(words, "unix")
		}
		return strings.Join(words, ",")
	}}
}

// seconds is a duration that may be a plain number of them, as other servers have it.
func seconds(p *time.Duration) *value[time.Duration] {
	v := duration(p)
	plain := v.parse
	v.parse = func(s string) (time.Duration, error) {
		const most = 1 << 30
		if n, err := strconv.ParseFloat(s, 64); err == nil && n >= 0 && n < most {
			return time.Duration(n * float64(time.Second)), nil
		}
		d, err := plain(s)
		if err != nil {
			err = fmt.Errorf("want a time such as 30s or 2m, or a number of seconds")
		}
		return d, err
	}
	return v
}
