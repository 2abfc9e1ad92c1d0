package runbook

import "github.com/aiopslab/aiopslab/internal/term"

// kind is what can be found wrong with a component.
type kind int

const (
	// Causes: what somebody or something did to the component itself.
	volumeUnbound kind = iota + 1
	unschedulable
	scaledToZero
	wrongPort
	tlsRequired
	loginRefused
	changed // its Deployment was changed, and it has not worked since
	badImage
	diskFailing
	kernelFailing
	// Disturbances: what happens to the component from outside.
	outOfMemory
	killed
	replaced
	networkFailing
	cpuStarved
	// Symptoms: it does not work, for whatever reason.
	silent
	crashing
	failing
	slow
)

// rank is how far a kind of finding explains what is wrong. Where several are found, the higher one
// is the cause.
var rank = map[kind]int{
	volumeUnbound: 95, unschedulable: 95, scaledToZero: 95, wrongPort: 95, badImage: 92, tlsRequired: 90,
	loginRefused: 90, changed: 85, diskFailing: 80, kernelFailing: 80,
	outOfMemory: 70, killed: 65, replaced: 65, networkFailing: 62, cpuStarved: 60,
	silent: 40, crashing: 35, failing: 20, slow: 15,
}

const (
	certain    = 80 // the rank of what needs no further evidence
	suspicious = 60 // the rank of what is no mere symptom
)

// cause is a root cause in AIOpsLab's terms.
type cause struct {
	Level string `json:"system_level"`
	Type  string `json:"fault_type"`
}

// causes are what the findings mean.
var causes = map[kind]cause{
	volumeUnbound:  {term.Virtualization, term.OperationError},
	unschedulable:  {term.Virtualization, term.Misconfiguration},
	scaledToZero:   {term.Virtualization, term.OperationError},
	wrongPort:      {term.Virtualization, term.Misconfiguration},
	badImage:       {term.Virtualization, term.Misconfiguration},
	tlsRequired:    {term.Application, term.Misconfiguration},
	loginRefused:   {term.Application, term.Authentication},
	changed:        {term.Application, term.Misconfiguration},
	diskFailing:    {term.Hardware, term.NetworkStorage},
	kernelFailing:  {term.OperatingSystem, term.NetworkStorage},
	outOfMemory:    {term.OperatingSystem, term.OperationError},
	killed:         {term.Virtualization, term.OperationError},
	replaced:       {term.Virtualization, term.OperationError},
	networkFailing: {term.Virtualization, term.NetworkStorage},
	cpuStarved:     {term.OperatingSystem, term.OperationError},
	silent:         {term.Virtualization, term.OperationError},
	crashing:       {term.Application, term.CodeDefect},
	failing:        {term.Application, term.CodeDefect},
	slow:           {term.Virtualization, term.NetworkStorage},
}

// finding is one thing that is wrong, and where.
type finding struct {
	kind      kind
	component string
	evidence  string // a clause that says what was seen
	// What a repair needs to know.
	object string // the Service, volume or the like
	port   int    // the index of a Service's port
	value  int    // what a port should be
	node   string // where the pod runs
	over   bool   // it has happened, and works again
}

func (f finding) rank() int { return rank[f.kind] }

// vague reports whether a finding does not say what could be set right.
func (f finding) vague() bool { return f.kind == failing || f.kind == slow }
