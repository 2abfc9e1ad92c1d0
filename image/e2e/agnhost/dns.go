package agnhost

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func (p *program) newDNSSuffix() *cobra.Command {
	return command("dns-suffix", "Print the search list of /etc/resolv.conf", p.printResolver("search"))
}

func (p *program) newDNSServerList() *cobra.Command {
	return command("dns-server-list", "Print the name servers of /etc/resolv.conf", p.printResolver("nameserver"))
}

func (p *program) newEtcHosts() *cobra.Command {
	return command("etc-hosts", "Print /etc/hosts", func(context.Context) error {
		data, err := p.env.ReadFile("/etc/hosts")
		if err != nil {
			return err
		}
		fmt.Fprintln(p.env.Stdout, string(data))
		return nil
	})
}

// printResolver returns a command that prints the values of the first line of that kind.
func (p *program) printResolver(keyword string) func(context.Context) error {
	return func(context.Context) error {
		values, err := p.resolverConfig(keyword)
		if err != nil {
			return err
		}
		fmt.Fprintln(p.env.Stdout, strings.Join(values, ","))
		return nil
	}
}

func (p *program) resolverConfig(keyword string) ([]string, error) {
	data, err := p.env.ReadFile("/etc/resolv.conf")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == keyword {
			return fields[1:], nil
		}
	}
	return nil, fmt.Errorf("no %q line in /etc/resolv.conf", keyword)
}
