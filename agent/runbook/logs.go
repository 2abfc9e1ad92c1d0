package runbook

import (
	"fmt"
	"regexp"
	"strings"
)

// logsCommand prints what the pods with a label said lately that speaks of trouble. Some servers log a
// login that failed as information.
func logsCommand(namespace, label string) string {
	return fmt.Sprintf("kubectl logs -n %s -l %s --prefix --since=60s --tail=200 --max-log-requests=100 | complaints",
		namespace, label)
}

// commonLabel is the label that most pods have, whatever its value.
func (s *system) commonLabel() string {
	count := map[string]int{}
	best := ""
	for _, d := range s.deployments {
		for k := range d.Spec.Template.Labels {
			count[k]++
			if best == "" || count[k] > count[best] || count[k] == count[best] && k < best {
				best = k
			}
		}
	}
	return best
}

// prefixed is a line of kubectl logs --prefix, after uniq -c.
var prefixed = regexp.MustCompile(`^\s*(?:\d+\s+)?\[pod/([^/\]]+)/[^\]]+\]\s?(.*)$`)

// readLogs notes lines by component.
func (s *system) readLogs(text string) {
	for line := range strings.Lines(text) {
		if m := prefixed.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			s.note(s.component(m[1]), m[2])
		}
	}
}

// maxLines is how many lines of a component are kept.
const maxLines = 200

func (s *system) note(component, line string) {
	if component != "" && len(s.logs[component]) < maxLines {
		s.logs[component] = append(s.logs[component], line)
	}
}

// The ways in which logs speak of a cause rather than of a symptom.
var (
	speaksOfLogin = regexp.MustCompile(
		`(?i)authentication ?failed|not authorized|authorization failed|could not find user|unauthorized\b|access denied|\bNOAUTH\b|\bWRONGPASS\b|user not found`)
	speaksOfTLS = regexp.MustCompile(
		`(?i)requireTLS|only allow (ssl|tls) connections|(ssl|tls) ?handshake ?failed|(ssl|tls) is required|first record does not look like a TLS handshake`)
	speaksOfDisk = regexp.MustCompile(
		`(?i)input/output error|\bEIO\b|i/o error|read-only file ?system|no space left on device|\bENOSPC\b`)
	speaksOfKern = regexp.MustCompile(
		`(?i)cannot allocate memory|\bENOMEM\b|too many open files|\bEMFILE\b|\bENFILE\b|no buffer space available|\bENOBUFS\b`)
)

// hungUp is said of a client that was gone before it had said who it is, as those are who only look whether a port
// answers. Nobody has refused it.
var hungUp = regexp.MustCompile(`\bEOF\b`)

// said returns the first line of a component's logs that matches.
func (s *system) said(component string, what *regexp.Regexp) (string, bool) {
	for _, line := range s.logs[component] {
		if what.MatchString(line) && (what != speaksOfLogin || !hungUp.MatchString(line)) {
			return line, true
		}
	}
	return "", false
}

// address finds hosts with ports.
var address = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9.-]*|\d+\.\d+\.\d+\.\d+):(\d{2,5})\b`)

// named are the other components that a line names by address.
func (s *system) named(component, line string) (names []string) {
	for _, m := range address.FindAllStringSubmatch(line, -1) {
		if owner, ok := s.owner(m[1]); ok && owner != component {
			names = append(names, owner)
		}
	}
	return names
}

// quote is a line short enough for a sentence.
func quote(line string) string { return excerpt(line, nil) }

// excerpt is the part of a line around what matches, short enough for a sentence.
func excerpt(line string, what *regexp.Regexp) string {
	const before, most = 30, 130
	r := []rune(strings.Join(strings.Fields(line), " "))
	from := 0
	if what != nil {
		if m := what.FindStringIndex(string(r)); m != nil {
			from = max(0, len([]rune(string(r)[:m[0]]))-before)
		}
	}
	text := string(r[from:min(len(r), from+most)])
	if from > 0 {
		text = "..." + text
	}
	if from+most < len(r) {
		text += "..."
	}
	return "\"" + text + "\""
}
