// Package term has the words that AIOpsLab's agents are asked and answer in: the tasks, and what a root cause is made
// of. Whoever else needs them takes them from here.
package term

// The tasks.
const (
	Detection    = "detection"    // is there an anomaly?
	Localization = "localization" // which components are faulty?
	Analysis     = "analysis"     // what is the root cause?
	Mitigation   = "mitigation"   // set it right
	Incident     = "incident"     // all of these questions, one after another
	Operation    = "operation"    // do what is asked of services, and report
	OnCall       = "shift"        // incidents come and go, and whoever is on call is paged
)

// Page is what an agent on call answers: the question that each page of a shift is.
const Page = "page"

// Questions are what can be asked of an agent, in the order in which an incident is worked on.
var Questions = []string{Detection, Localization, Analysis, Mitigation}

// Tasks are all tasks: each question by itself, the incident that has several of them, operations and shifts.
var Tasks = append(Questions[:len(Questions):len(Questions)], Incident, Operation, OnCall)

// The system levels, where a root cause is.
const (
	Hardware        = "Hardware"
	OperatingSystem = "Operating System"
	Virtualization  = "Virtualization"
	Application     = "Application"
)

// SystemLevels are all levels.
var SystemLevels = []string{Hardware, OperatingSystem, Virtualization, Application}

// The fault types, what a root cause is.
const (
	Misconfiguration  = "Misconfiguration"
	CodeDefect        = "Code Defect"
	Authentication    = "Authentication Issue"
	NetworkStorage    = "Network/Storage Issue"
	OperationError    = "Operation Error"
	DependencyProblem = "Dependency Problem"
)

// FaultTypes are all types.
var FaultTypes = []string{
	Misconfiguration, CodeDefect, Authentication, NetworkStorage, OperationError, DependencyProblem,
}
