package interp

import "slices"

// options are what set changes.
type options struct {
	allExport, errExit, noGlob, noExec, noUnset, xTrace, noClobber, verbose, monitor, pipeFail bool
	noLog, ignoreEOF, notify, hashAll, privileged, braceExpand, emacs, vi, posix, errTrace     bool
	funcTrace, interactive, readStdin, command, physical                                       bool

	shopt map[string]bool // bash's
}

// option is a name for one of them. letter is 0 if it has none.
type option struct {
	letter byte
	name   string
	field  func(*options) *bool
}

var optionTable = []option{
	{'a', "allexport", func(o *options) *bool { return &o.allExport }},
	{'B', "braceexpand", func(o *options) *bool { return &o.braceExpand }},
	{'e', "errexit", func(o *options) *bool { return &o.errExit }},
	{'E', "errtrace", func(o *options) *bool { return &o.errTrace }},
	{'T', "functrace", func(o *options) *bool { return &o.funcTrace }},
	{'h', "hashall", func(o *options) *bool { return &o.hashAll }},
	{0, "ignoreeof", func(o *options) *bool { return &o.ignoreEOF }},
	{'m', "monitor", func(o *options) *bool { return &o.monitor }},
	{'C', "noclobber", func(o *options) *bool { return &o.noClobber }},
	{'n', "noexec", func(o *options) *bool { return &o.noExec }},
	{'f', "noglob", func(o *options) *bool { return &o.noGlob }},
	{0, "nolog", func(o *options) *bool { return &o.noLog }},
	{'b', "notify", func(o *options) *bool { return &o.notify }},
	{'u', "nounset", func(o *options) *bool { return &o.noUnset }},
	{'P', "physical", func(o *options) *bool { return &o.physical }},
	{0, "pipefail", func(o *options) *bool { return &o.pipeFail }},
	{0, "posix", func(o *options) *bool { return &o.posix }},
	{'p', "privileged", func(o *options) *bool { return &o.privileged }},
	{'v', "verbose", func(o *options) *bool { return &o.verbose }},
	{0, "vi", func(o *options) *bool { return &o.vi }},
	{0, "emacs", func(o *options) *bool { return &o.emacs }},
	{'x', "xtrace", func(o *options) *bool { return &o.xTrace }},
}

func (o *options) byLetter(letter byte) *bool {
	for _, opt := range optionTable {
		if opt.letter == letter && letter != 0 {
			return opt.field(o)
		}
	}
	return nil
}

func (o *options) byName(name string) *bool {
	for _, opt := range optionTable {
		if opt.name == name {
			return opt.field(o)
		}
	}
	return nil
}

// letters is the value of $-.
func (o *options) letters() string {
	var letters []byte
	for _, opt := range optionTable {
		if opt.letter != 0 && *opt.field(o) {
			letters = append(letters, opt.letter)
		}
	}
	for letter, on := range map[byte]bool{'i': o.interactive, 's': o.readStdin, 'c': o.command} {
		if on {
			letters = append(letters, letter)
		}
	}
	slices.Sort(letters)
	return string(letters)
}

// shoptNames are bash's options that are known here. Those that change nothing are accepted, since
// scripts set them for the sake of a terminal.
var shoptNames = []string{
	"checkwinsize", "cmdhist", "dotglob", "expand_aliases", "extglob", "failglob", "globasciiranges",
	"globstar", "histappend", "huponexit", "inherit_errexit", "interactive_comments", "lastpipe",
	"nocaseglob", "nocasematch", "nullglob", "progcomp", "promptvars", "sourcepath",
}

func (o *options) shopted(name string) bool { return o.shopt[name] }
