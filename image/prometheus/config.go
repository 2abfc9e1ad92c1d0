package prometheus

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"strings"

	httpconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/kubernetes"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/aiopslab/aiopslab/kit"
)

// configuration is a configuration file.
type configuration struct {
	shown *config.Config // as it was written
	used  *config.Config // with the container's own files, network and cluster
	rules []string       // the rule files
}

// load reads the configuration file. What would not work here is an error or a warning, never
// silently ignored.
func load(env *kit.Env, file string, cluster *cluster, log *slog.Logger) (*configuration, error) {
	text, err := env.ReadFile(file)
	if err != nil {
		return nil, err
	}
	c := &configuration{}
	for _, cfg := range []**config.Config{&c.shown, &c.used} {
		if *cfg, err = config.Load(string(text), log); err != nil {
			return nil, fmt.Errorf("parsing YAML file %s: %w", file, err)
		}
		(*cfg).SetDirectory(path.Dir(env.Path(file)))
	}
	switch {
	case len(c.used.RemoteWriteConfigs) > 0:
		return nil, errors.New("remote_write: this Prometheus has no remote storage; remove the section")
	case len(c.used.RemoteReadConfigs) > 0:
		return nil, errors.New("remote_read: this Prometheus has no remote storage; remove the section")
	case len(c.used.ScrapeConfigFiles) > 0:
		return nil, errors.New("scrape_config_files: put the jobs into scrape_configs instead")
	case len(c.used.AlertingConfig.AlertmanagerConfigs) > 0:
		log.Warn("No Alertmanager is notified here; alerts are in /api/v1/alerts", "file", file)
	}
	for _, job := range c.used.ScrapeConfigs {
		useSecrets(&job.HTTPClientConfig)
		for i, sd := range job.ServiceDiscoveryConfigs {
			if k, ok := sd.(*kubernetes.SDConfig); ok {
				job.ServiceDiscoveryConfigs[i] = &clusterConfig{SDConfig: k, cluster: cluster}
			}
		}
	}
	for _, pattern := range c.used.RuleFiles {
		found, err := fs.Glob(files{env}, strings.TrimPrefix(pattern, "/"))
		if err != nil {
			return nil, fmt.Errorf("error retrieving rule files for %s: %w", pattern, err)
		}
		for _, name := range found {
			c.rules = append(c.rules, "/"+name)
		}
	}
	return c, nil
}

// discoveries are the ways to find targets, by job.
func (c *configuration) discoveries() map[string]discovery.Configs {
	all := map[string]discovery.Configs{}
	for _, job := range c.used.ScrapeConfigs {
		all[job.JobName] = job.ServiceDiscoveryConfigs
	}
	return all
}

// useSecrets turns the names of files into references to secrets: Prometheus reads files of the
// machine, but asks for secrets, which are the container's files.
func useSecrets(c *httpconfig.HTTPClientConfig) {
	move := func(file, ref *string) {
		if *file != "" {
			*ref, *file = *file, ""
		}
	}
	move(&c.TLSConfig.CAFile, &c.TLSConfig.CARef)
	move(&c.TLSConfig.CertFile, &c.TLSConfig.CertRef)
	move(&c.TLSConfig.KeyFile, &c.TLSConfig.KeyRef)
	if a := c.Authorization; a != nil {
		move(&a.CredentialsFile, &a.CredentialsRef)
	}
	if b := c.BasicAuth; b != nil {
		move(&b.UsernameFile, &b.UsernameRef)
		move(&b.PasswordFile, &b.PasswordRef)
	}
	if o := c.OAuth2; o != nil {
		move(&o.ClientSecretFile, &o.ClientSecretRef)
		move(&o.TLSConfig.CAFile, &o.TLSConfig.CARef)
		move(&o.TLSConfig.CertFile, &o.TLSConfig.CertRef)
		move(&o.TLSConfig.KeyFile, &o.TLSConfig.KeyRef)
	}
}

// files are a container's files, for those who take an fs.FS or a secret manager.
type files struct{ env *kit.Env }

var (
	_ fs.ReadDirFS             = files{}
	_ fs.StatFS                = files{}
	_ httpconfig.SecretManager = files{}
)

func (f files) Open(name string) (fs.File, error) {
	return f.env.FS.OpenFile("/"+name, os.O_RDONLY, 0)
}
func (f files) ReadDir(name string) ([]fs.DirEntry, error) { return f.env.FS.ReadDir("/" + name) }
func (f files) Stat(name string) (fs.FileInfo, error)      { return f.env.FS.Stat("/" + name) }

// Fetch reads the secret whose name is that of its file.
func (f files) Fetch(_ context.Context, name string) (string, error) {
	b, err := f.env.ReadFile(name)
	return strings.TrimSpace(string(b)), err
}

// ruleLoader reads rule files.
type ruleLoader struct {
	env    *kit.Env
	parser parser.Parser
	log    *slog.Logger
}

func (l ruleLoader) Load(file string, ignoreUnknown bool, names model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	b, err := l.env.ReadFile(file)
	if err != nil {
		return nil, []error{err}
	}
	groups, errs := rulefmt.Parse(b, ignoreUnknown, names, l.parser, l.log)
	for i := range errs {
		errs[i] = fmt.Errorf("%s: %w", file, errs[i])
	}
	return groups, errs
}

func (l ruleLoader) Parse(query string) (parser.Expr, error) { return l.parser.ParseExpr(query) }
