package flagd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/aiopslab/aiopslab/kit"
)

// settings are what the command line says, or else FLAGD_ variables.
type settings struct {
	port, management, ofrep uint16
	files                   []string
	json                    bool // log lines are JSON
}

const usage = `Flagd is a feature flag daemon with OpenFeature compliance.

Usage:
  flagd [command]

Available Commands:
  start       Start flagd
  version     Print the version number of flagd

`

// read takes the arguments after "start" apart.
func (s *settings) read(env *kit.Env, args []string) error {
	f := pflag.NewFlagSet("start", pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Uint16VarP(&s.port, "port", "p", 8013, "port for evaluations, over gRPC and HTTP")
	f.Uint16VarP(&s.management, "management-port", "m", 8014, "port for health and metrics")
	f.Uint16VarP(&s.ofrep, "ofrep-port", "r", 8016, "port for OFREP")
	uris := f.StringArrayP("uri", "f", nil, "a source of flags, as file:PATH; several are merged, the last one wins")
	sources := f.StringP("sources", "s", "", `sources as JSON: [{"uri":"PATH","provider":"file"}]`)
	format := f.StringP("log-format", "z", "console", "console or json")
	f.BoolP("debug", "x", false, "ignored")
	f.Uint16P("sync-port", "g", 8015, "ignored: flags are not served as a source for others")
	f.StringP("metrics-exporter", "t", "", "ignored: metrics are on the management port")
	f.StringP("otel-collector-uri", "o", "", "ignored")
	if err := f.Parse(args); errors.Is(err, pflag.ErrHelp) {
		return fmt.Errorf("%w\nUsage:\n  flagd start [flags]\n\n%s", err, f.FlagUsages())
	} else if err != nil {
		return err
	}
	// What the command line says counts. A pod beside a Service named flagd has FLAGD_PORT=tcp://... from Kubernetes.
	var errs []error
	f.VisitAll(func(o *pflag.Flag) {
		v := env.Getenv("FLAGD_" + strings.ToUpper(strings.ReplaceAll(o.Name, "-", "_")))
		if v == "" || o.Changed {
			return
		}
		if err := f.Set(o.Name, v); err != nil {
			errs = append(errs, fmt.Errorf("variable of --%s: %w", o.Name, err))
		}
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%q is not a flag of start", f.Arg(0))
	}
	if s.json = *format == "json"; !s.json && *format != "console" {
		return fmt.Errorf("--log-format %s: want console or json", *format)
	}
	return s.readSources(*uris, *sources)
}

// readSources finds the files. There is no other kind of source here.
func (s *settings) readSources(uris []string, text string) error {
	for _, u := range uris {
		path, ok := strings.CutPrefix(u, "file:")
		if !ok || path == "" {
			return fmt.Errorf("--uri %s: only files can be a source here; write it as file:PATH", u)
		}
		s.files = append(s.files, path)
	}
	if text != "" {
		var list []struct {
			URI      string `json:"uri"`
			Provider string `json:"provider"`
		}
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return fmt.Errorf("--sources: %w", err)
		}
		for _, one := range list {
			if one.Provider != "file" && one.Provider != "fsnotify" && one.Provider != "fileinfo" || one.URI == "" {
				return fmt.Errorf("--sources: a source of provider %q; only file can be one here", one.Provider)
			}
			s.files = append(s.files, one.URI)
		}
	}
	if len(s.files) == 0 {
		return errors.New("no source of flags is given; use --uri file:PATH")
	}
	if sorted := slices.Sorted(slices.Values(s.files)); len(slices.Compact(sorted)) != len(s.files) {
		return errors.New("a source of flags is given twice")
	}
	return nil
}
