package node

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	nodeLogDir   = "/var/log"
	maxTailLines = 100000
	maxServices  = 4
)

// unsafeService is what a kubelet does not take in the name of a service.
var unsafeService = regexp.MustCompile(`[^a-zA-Z\-_.:0-9@]`)

// serveNodeLogs answers for what the node itself logs, as a kubelet with enableSystemLogQuery does:
// files of /var/log by path, services by query. Files and journal are the node's, in memory: the
// kubelet's own code would read those of the host.
func (k *kubelet) serveNodeLogs(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	q, services, files, err := parseLogQuery(query)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case len(services)+len(files) == 0 && len(query) > 0:
		http.Error(w, "query: Required value: cannot be empty with options", http.StatusNotAcceptable)
		return
	case len(services)+len(files) > 0 && strings.Trim(r.URL.Path, "/") != "logs":
		http.Error(w, "path not allowed in query mode", http.StatusNotAcceptable)
		return
	case len(services) > 0 && len(files) > 0:
		http.Error(w, "query: Invalid value: cannot specify a file and service", http.StatusNotAcceptable)
		return
	case len(files) > 1:
		http.Error(w, "query: Invalid value: cannot specify more than one file", http.StatusNotAcceptable)
		return
	case len(services) > 0:
		w.Header().Set("Content-Type", "text/plain;charset=UTF-8")
		k.writeServiceLogs(w, q, services, len(query) > 1)
		return
	}
	r = r.Clone(r.Context())
	if len(files) == 1 {
		r.URL.Path = "/logs/" + strings.TrimPrefix(strings.ReplaceAll(files[0], `\`, "/"), "/")
	}
	http.StripPrefix("/logs", http.FileServer(nodeDir{k.machine})).ServeHTTP(w, r)
}

// parseLogQuery reads the parameters of a query.
func parseLogQuery(query url.Values) (q journalQuery, services, files []string, err error) {
	for _, s := range query["query"] {
		switch {
		case strings.ContainsAny(s, `/\`):
			files = append(files, s)
		case strings.TrimSpace(s) == "":
			return q, nil, nil, fmt.Errorf("query: Invalid value: %q: may not be empty", s)
		case unsafeService.MatchString(s):
			return q, nil, nil, fmt.Errorf("query: Invalid value: %q: input contains unsupported characters", s)
		default:
			services = append(services, s)
		}
	}
	if len(services) > maxServices {
		return q, nil, nil, fmt.Errorf("query: Too many: %d: must have at most %d items", len(services), maxServices)
	}
	for name, to := range map[string]**time.Time{"sinceTime": &q.since, "untilTime": &q.until} {
		if text := query.Get(name); text != "" {
			t, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return q, nil, nil, fmt.Errorf("%s: Invalid value: %q: invalid time format", name, text)
			}
			*to = &t
		}
	}
	if text := query.Get("tailLines"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > maxTailLines {
			return q, nil, nil, fmt.Errorf("tailLines: Invalid value: %q: must be between 0 and %d, inclusive", text,
				maxTailLines)
		}
		q.tail = &n
	}
	if text := query.Get("boot"); text != "" && text != "0" {
		return q, nil, nil, fmt.Errorf("boot: Invalid value: %q: no persistent journal was found", text)
	}
	if text := query.Get("pattern"); text != "" {
		if !strings.ContainsFunc(text, func(r rune) bool { return 'A' <= r && r <= 'Z' }) {
			text = "(?i)" + text // As journalctl --grep.
		}
		if q.pattern, err = regexp.Compile(text); err != nil {
			return q, nil, nil, fmt.Errorf("pattern: Invalid value: %w", err)
		}
	}
	return q, services, files, nil
}

// writeServiceLogs prints the journal of services, and the files of those that do not log there.
func (k *kubelet) writeServiceLogs(w io.Writer, q journalQuery, services []string, options bool) {
	others := slices.DeleteFunc(slices.Clone(services), k.machine.journal.has)
	if q.units = slices.DeleteFunc(services, func(s string) bool {
		return !k.machine.journal.has(s)
	}); len(q.units) > 0 {
		_ = k.machine.journal.write(w, q) // There is nobody to tell.
	}
	if len(others) > 0 && options {
		fmt.Fprintf(w, "\noptions present and query resolved to log files for %v\ntry without specifying options\n",
			others)
		return
	}
	for _, s := range others {
		fmt.Fprint(w, k.fileLog(s))
	}
}

// fileLog returns the log of a service that writes it to a file.
func (k *kubelet) fileLog(service string) string {
	env := k.machine.env()
	for _, name := range []string{service, service + ".log", service + "/" + service + ".log"} {
		text, err := env.ReadFile(path.Join(nodeLogDir, name))
		if err == nil {
			return string(text)
		}
	}
	return fmt.Sprintf("\nlog not found for %s\n", service)
}

// nodeDir is /var/log of the node as an http.FileSystem.
type nodeDir struct{ machine *machine }

func (d nodeDir) Open(name string) (http.File, error) {
	env := d.machine.env()
	name = path.Join(nodeLogDir, path.Clean("/"+name))
	fi, err := env.FS.Stat(name)
	if err != nil {
		return nil, err
	}
	f := &nodeFile{env: env, name: name, info: fi, Reader: bytes.NewReader(nil)}
	if !fi.IsDir() {
		text, err := env.ReadFile(name)
		if err != nil {
			return nil, err
		}
		f.Reader = bytes.NewReader(text)
	}
	return f, nil
}

// nodeFile is a file as it was when it was opened.
type nodeFile struct {
	*bytes.Reader
	env  *kit.Env
	name string
	info fs.FileInfo
}

func (f *nodeFile) Close() error               { return nil }
func (f *nodeFile) Stat() (fs.FileInfo, error) { return f.info, nil }

func (f *nodeFile) Readdir(int) (list []fs.FileInfo, err error) {
	entries, err := f.env.FS.ReadDir(f.name)
	for _, e := range entries {
		if fi, ierr := e.Info(); ierr == nil {
			list = append(list, fi)
		} else {
			err = errors.Join(err, ierr)
		}
	}
	return list, err
}
