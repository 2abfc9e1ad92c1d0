package cli

import "regexp"

// docRule says what becomes of commands of the documents that are not simply run to a status of 0.
type docRule struct {
	command *regexp.Regexp // of "FILE: COMMAND"
	never   string         // why it is read and not run
	until   string         // what it prints when it is ready, if it runs until it is stopped
	always  bool           // it is run by every test, not only by make docs-test
	status  int
	with    string // a program of this test that it is run by
}

// The first rule that fits holds.
var docRules = []docRule{
	{command: regexp.MustCompile(`: make `), never: "the targets are there; to run them is to build or to test the whole of it"},
	{command: regexp.MustCompile(`: go test `), never: "make test does"},
	{command: regexp.MustCompile(`^docs/install.md: `), never: "there is no release; internal/dist tests what is in one"},
	{command: regexp.MustCompile(`--cloud kubeconfig|--on cluster|: aiopslab cleanup|: helm |secret generic |service/lab-aiopslab`), never: "the cluster is the reader's; TestScripts has one"},
	{command: regexp.MustCompile(`: aiopslab (doctor$|adopt )`), always: true}, // The second makes what later commands use.
	{command: regexp.MustCompile(`test/realcluster/`), never: "it takes root or hours; it has tests of its own"},
	{command: regexp.MustCompile(`--telemetry -o `), never: "TestScripts/run does, of a run that has some"},
	{command: regexp.MustCompile(`--endpoint `), never: "there is no collector; package export has a stand-in"},
	{command: regexp.MustCompile(`: claude `), never: "TestMCP is such a client"},
	{command: regexp.MustCompile(`--model (qwen|openai/meta)`), never: "the model is somebody else's"},
	{command: regexp.MustCompile(`images build (--self )?--(push|containerd)`), never: "there is no registry and no containerd; package oci has stand-ins"},
	{command: regexp.MustCompile(`--suite mitigation -j`), never: "it takes hours"},
	{command: regexp.MustCompile(`: aiopslab bench --suite operation`), never: "it takes hours; TestScripts/bench has a shorter one"},
	{command: regexp.MustCompile(`: aiopslab bench --agent \S+ --suite aiopslab .*--results results/paper`), never: "it takes hours; TestScripts/bench has a shorter one"},
	{command: regexp.MustCompile(`: aiopslab bench (nightly|--agent react)`), never: "the model is somebody else's; TestScripts/bench has agents without one"},
	{command: regexp.MustCompile(`: aiopslab (shift |(play|report) .*shift)`), never: "it takes minutes; TestScripts/shift is a short one"},
	{command: regexp.MustCompile(`: aiopslab audit`), never: "it takes hours; TestScripts/audit is a short one"},
	{command: regexp.MustCompile(`--model openai/gpt-4o --max-cost 1$`), with: "withmodel"},
	{command: regexp.MustCompile(`--model openai/gpt-4o --max-cost 0.50`), with: "withmodel", status: ExitUnsolved}, // The stand-in detects, and no more.
	{command: regexp.MustCompile(`: aiopslab serve`), until: "listening on"},
	{command: regexp.MustCompile(`aiopslab mcp .* --addr`), until: "serving MCP at"},
	{command: regexp.MustCompile(`: aiopslab up$`), until: "Stop with Ctrl-C", always: true},
	{command: regexp.MustCompile(`: aiopslab up [^|]*--app [-a-z]+$`), until: "Stop with Ctrl-C"},
	{command: regexp.MustCompile(`: aiopslab up (--from good.snap )?-- `), always: true},
	{command: regexp.MustCompile(`: (bin/)?aiopslab (agents|apps|describe|export|faults|problems|report)( .*)?$`), always: true},
	{command: regexp.MustCompile(`aiopslab play \S+$`), status: ExitUnsolved}, // Nothing is typed, unless the document shows it.
}

// docRuleOf is the rule for a command.
func docRuleOf(d *docText, c *docCommand) docRule {
	for _, rule := range docRules {
		if rule.command.MatchString(d.file + ": " + c.plain()) {
			return rule
		}
	}
	return docRule{}
}

// used reports whether there is a command that the rule is for.
func (rule docRule) used(docs []docText) bool {
	for i := range docs {
		for _, c := range docs[i].commands {
			if !c.inline && docRuleOf(&docs[i], &c).command == rule.command {
				return true
			}
		}
	}
	return false
}
