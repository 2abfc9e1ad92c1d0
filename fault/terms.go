package fault

// SystemLevels and FaultTypes are the terms in which AIOpsLab asks for a root cause.
var (
	SystemLevels = []string{"Hardware", "Operating System", "Virtualization", "Application"}
	FaultTypes   = []string{
		"Misconfiguration", "Code Defect", "Authentication Issue", "Network/Storage Issue", "Operation Error", "Dependency Problem",
	}
)

// The blunt remedies: what an agent may try that understands nothing.
const (
	RestartEverything  = "restart-everything"   // rollout restart of all Deployments
	RollBackEverything = "roll-back-everything" // rollout undo of all Deployments
	ScaleToZero        = "scale-to-zero"        // of the faulty workload
	DeleteTheWorkload  = "delete-the-workload"
	LimitsToInfinity   = "limits-to-infinity" // no resource limits on any Deployment
	SilenceTheAlerts   = "silence-the-alerts" // no alerting rules
)

// Remedies are all blunt remedies.
var Remedies = []string{RestartEverything, RollBackEverything, ScaleToZero, DeleteTheWorkload, LimitsToInfinity, SilenceTheAlerts}
