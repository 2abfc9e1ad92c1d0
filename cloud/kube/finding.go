package kube

import "slices"

// Level says how bad a finding is.
type Level string

// The levels of findings.
const (
	OK      Level = "ok"
	Warning Level = "warning" // some of the lab does not work, or it is not known whether it does
	Problem Level = "problem" // the lab does not work
)

// Finding is what an examination has to say of one thing.
type Finding struct {
	Check string `json:"check"` // what was looked at, in a word
	Level Level  `json:"level"`
	Text  string `json:"text"`         // what is so, in a line
	Do    string `json:"do,omitempty"` // what to do about it, in a line
}

// The checks whose findings say that others may depend on the cluster.
const (
	checkName      = "name"
	checkWorkloads = "workloads"
)

// Production are the findings for which a run must not use the cluster unless its user says that he knows.
func Production(findings []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool {
		return f.Level == OK || f.Check != checkName && f.Check != checkWorkloads
	})
}

// Problems are the findings for which the lab does not work.
func Problems(findings []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return f.Level != Problem })
}
