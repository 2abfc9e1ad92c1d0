package system

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// journalDir is where a node keeps what its services log: a directory with a file of
// "time TAB unit[pid] TAB text" lines.
const journalDir = "/run/log/journal"

var journalctl = tool.Tool{
	Name: "journalctl",
	Options: "u:,unit n:,lines o:,output S:,since U:,until g:,grep r,reverse f,follow no-pager utc q,quiet " +
		"a,all x,catalog e,pager-end b::,boot no-hostname",
	Args: "[OPTIONS...]",
	Help: "Query the journal.\n" +
		"\n" +
		"\t-u --unit=UNIT\t\tShow logs from the specified unit\n" +
		"\t-n --lines=N\t\tNumber of journal entries to show\n" +
		"\t-S --since=DATE\t\tShow entries not older than the specified date\n" +
		"\t-U --until=DATE\t\tShow entries not newer than the specified date\n" +
		"\t-g --grep=PATTERN\tShow entries with MESSAGE matching PATTERN\n" +
		"\t-r --reverse\t\tShow the newest entries first\n" +
		"\t-o --output=STRING\tshort, short-precise, short-iso or cat",
	Run: func(_ context.Context, c *tool.Call) error {
		if c.Opts.Has("f") {
			return c.Fail(1, "the journal cannot be followed here; use -n and ask again")
		}
		q, err := readJournalQuery(c)
		if err != nil {
			return c.Fail(1, "%v", err)
		}
		entries := q.entries(c)
		if c.Opts.Has("r") {
			slices.Reverse(entries)
		}
		if len(entries) == 0 {
			c.Out.Line("-- No entries --")
		}
		for _, e := range entries {
			c.Out.Line(e.line(c))
		}
		return nil
	},
}

type journalEntry struct {
	at           time.Time
	source, text string // source is unit[pid]
}

func (e journalEntry) line(c *tool.Call) string {
	at := e.at.In(tool.Location(c.Env))
	stamp := at.Format("Jan 02 15:04:05")
	switch c.Opts.Get("o", "short") {
	case "cat":
		return e.text
	case "short-precise":
		stamp = at.Format("Jan 02 15:04:05.000000")
	case "short-iso":
		stamp = at.Format("2006-01-02T15:04:05-07:00")
	}
	return stamp + " " + c.Env.Hostname + " " + e.source + ": " + e.text
}

type journalQuery struct {
	units        []string
	since, until time.Time
	lines        int // -1 is all
	pattern      *regexp.Regexp
}

func readJournalQuery(c *tool.Call) (q journalQuery, err error) {
	q.lines = -1
	now := time.Now().In(tool.Location(c.Env))
	for name, to := range map[string]*time.Time{"S": &q.since, "U": &q.until} {
		if text := c.Opts.Get(name, ""); text != "" {
			if *to, err = tool.ParseTime(text, now); err != nil {
				return q, err
			}
		}
	}
	if text := c.Opts.Get("n", "all"); text != "all" {
		if q.lines, err = strconv.Atoi(text); err != nil || q.lines < 0 {
			return q, &strconv.NumError{Func: "--lines", Num: text, Err: strconv.ErrSyntax}
		}
	}
	if text := c.Opts.Get("g", ""); text != "" {
		if text == strings.ToLower(text) {
			text = "(?i)" + text
		}
		q.pattern, err = regexp.Compile(text)
	}
	for _, u := range c.Opts.All("u") {
		q.units = append(q.units, strings.TrimSuffix(u, ".service"))
	}
	return q, err
}

// entries reads the journal.
func (q journalQuery) entries(c *tool.Call) (list []journalEntry) {
	dirs, _ := c.Env.FS.ReadDir(journalDir) // A machine without a journal has no entries.
	for _, d := range dirs {
		text, err := c.ReadAll(path.Join(journalDir, d.Name(), "system.journal"))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			stamp, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			e := journalEntry{}
			e.source, e.text, _ = strings.Cut(rest, "\t")
			if e.at, err = time.Parse(time.RFC3339Nano, stamp); err == nil && q.selects(e) {
				list = append(list, e)
			}
		}
	}
	if q.lines >= 0 && len(list) > q.lines {
		list = list[len(list)-q.lines:]
	}
	return list
}

func (q journalQuery) selects(e journalEntry) bool {
	unit, _, _ := strings.Cut(e.source, "[")
	return (len(q.units) == 0 || slices.Contains(q.units, unit)) &&
		!e.at.Before(q.since) && (q.until.IsZero() || !e.at.After(q.until)) &&
		(q.pattern == nil || q.pattern.MatchString(e.text))
}
