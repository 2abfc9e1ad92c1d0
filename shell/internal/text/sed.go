package text

import (
	"context"
	"strings"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var sed = tool.Tool{
	Name: "sed",
	Options: "n,quiet,silent e:,expression f:,file i::,in-place E,regexp-extended r s,separate " +
		"z,null-data u,unbuffered posix l: debug sandbox",
	Args: "[-i[SFX]] [-nrE] [-f FILE]... [-e CMD]... [FILE]...\nor: sed [-i[SFX]] [-nrE] CMD [FILE]...",
	Help: "\t-e CMD\tAdd CMD to sed commands to be executed\n" +
		"\t-f FILE\tAdd FILE contents to sed commands to be executed\n" +
		"\t-i[SFX]\tEdit files in-place (otherwise write to stdout)\n" +
		"\t\tOptionally back files up, appending SFX\n" +
		"\t-n\tSuppress automatic printing of pattern space\n" +
		"\t-r,-E\tUse extended regex syntax",
	Run: func(_ context.Context, c *tool.Call) error {
		script, files, err := sedScript(c)
		if err != nil {
			return err
		}
		quiet := c.Opts.Has("n")
		if strings.HasPrefix(script, "#n\n") || script == "#n" {
			quiet = true
		}
		program, err := parseSed(script, c.Opts.Has("E") || c.Opts.Has("r"))
		if err != nil {
			return c.Fail(1, "%v", err)
		}
		ed := newEditor(c, program, quiet)
		defer ed.close()
		return ed.run(files)
	},
}

// sedScript puts the script together from -e and -f, or takes the first operand.
func sedScript(c *tool.Call) (script string, files []string, err error) {
	var parts []string
	for _, opt := range c.Opts.InOrder() {
		switch opt.Name {
		case "e":
			parts = append(parts, opt.Value)
		case "f":
			data, err := c.ReadAll(opt.Value)
			if err != nil {
				return "", nil, c.Fail(1, "can't open '%s': %s", opt.Value, tool.Reason(err))
			}
			parts = append(parts, strings.TrimSuffix(string(data), "\n"))
		}
	}
	if parts != nil {
		return strings.Join(parts, "\n"), c.Args, nil
	}
	if len(c.Args) == 0 {
		return "", nil, c.Usage()
	}
	return c.Args[0], c.Args[1:], nil
}
